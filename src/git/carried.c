#include "git/carried.h"

#include "base/error.h"
#include "base/map.h"
#include "base/own.h"
#include "base/text.h"
#include "git/answers.h"
#include "git/barepaths.h"
#include "git/shadow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LIST_BYTES_MAX (256ULL << 20)
#define BLOB_BYTES_MAX (65ULL << 20)

/* Changed is what differs from each parent: what a merge takes from one of them was there already, or is
 * in a line of its own.  Behind an empty word stand all paths of the tip. */
static const char list_script[] =
    "set -e\n"
    "{ echo $1; cat mine; } | git rev-list --stdin >/tmp/list\n"
    "git diff-tree --stdin -r -z -c --root --raw --no-commit-id --no-renames --no-abbrev \\\n"
    "  --ignore-submodules=none </tmp/list\n"
    "printf '\\0'\n"
    "git ls-tree -r -z --name-only --full-tree $1\n";

/* What is left out, because it is large or there is too much of it, counts as changed. */
static const char blob_script[] =
    "set -e\n"
    "git cat-file --batch-check='%(objectname) %(objecttype) %(objectsize)' <blobs >/tmp/sizes\n"
    "total=0\n"
    "while read -r hash kind size; do\n"
    "  [ \"$kind\" = blob ] && [ \"$size\" -le 1048576 ] || continue\n"
    "  total=$((total + size + 100))\n"
    "  [ $total -le 67108864 ] || break\n"
    "  echo $hash\n"
    "done </tmp/sizes >/tmp/wanted\n"
    "git cat-file --batch </tmp/wanted\n";

struct blobs {
    struct blob *items; /* sorted by hash */
    size_t len, cap;
};

/* What is being found out. */
struct carrying {
    struct barepaths bare;
    struct diff_line *items; /* what may be of a class, if its content says so */
    size_t len, cap;
    struct blobs blobs;
    struct map places; /* path -> its place in `found`, from 1 */
    struct carried found;
};

static void carrying_free(struct carrying *carrying)
{
    barepaths_free(&carrying->bare);
    free(carrying->items);
    free(carrying->blobs.items);
    map_free(&carrying->places);
    carried_free(&carrying->found);
}

void carried_free(struct carried *carried)
{
    for (size_t i = 0; i < carried->len; i++)
        free(carried->items[i].path);
    free(carried->items);
    *carried = CARRIED_NONE;
}

/* --- judging -------------------------------------------------------------------------------- */

static int by_hash(const void *a, const void *b)
{
    return strcmp(((const struct blob *)a)->hash, ((const struct blob *)b)->hash);
}

static struct classify_side side_of(const struct blobs *blobs, mode_t mode, const char *hash)
{
    struct classify_side side = { .mode = mode, .cut = mode != 0 };
    struct blob key = { .len = 0 };
    const struct blob *blob;

    memcpy(key.hash, hash, sizeof key.hash);
    blob = blobs->len ? bsearch(&key, blobs->items, blobs->len, sizeof key, by_hash) : NULL;
    if (mode && blob)
        side = (struct classify_side){ .mode = mode, .bytes = blob->bytes, .len = blob->len };
    return side;
}

/* What a submodule brings along is not known: it counts as any file at its place. */
static void judge_submodule(const char *path, struct classify_verdict *out)
{
    autofree char *any = text_format("%s/cove-any-name", path);
    struct classify_input input = { .path = any,
                                    .path_len = strlen(any),
                                    .new = { .mode = S_IFREG | 0644, .cut = true } };

    classify(&input, out);
}

static void judge(const struct carrying *carrying, const struct diff_line *line, struct classify_verdict *out)
{
    struct classify_input input = { .path = line->path,
                                    .path_len = strlen(line->path),
                                    .in_bare = barepaths_below(&carrying->bare, line->path),
                                    .old = side_of(&carrying->blobs, line->old_mode, line->old_hash),
                                    .new = side_of(&carrying->blobs, line->new_mode, line->new_hash) };

    classify(&input, out);
    if (out->class == CLASSIFY_ORDINARY && S_ISDIR(line->new_mode))
        judge_submodule(line->path, out);
}

/* Of several commits that change a path the worst counts. */
static void note(struct carrying *carrying, const char *path, const struct classify_verdict *verdict)
{
    uint64_t place = map_get(&carrying->places, path);
    struct carried_file *file;

    if (!place) {
        array_add(&carrying->found)->path = text_copy(path);
        place = map_add(&carrying->places, path, carrying->found.len);
    }
    assert(carrying->found.items && place);
    file = &carrying->found.items[place - 1];
    if (verdict->class > file->verdict.class)
        file->verdict = *verdict;
}

/* --- asking git ----------------------------------------------------------------------------- */

static int nonsense(struct error *err)
{
    return error_set(err, ERROR_REFUSED, "what git says the commits change cannot be read");
}

/* First nothing of the contents is known: what is harmless even then is harmless, and most files are. */
static int take_list(struct carrying *carrying, size_t digits, const char *bytes, size_t len, struct error *err)
{
    const char *at = bytes, *end = bytes + len, *path;
    struct diff_line line;
    enum answer answer;

    while ((answer = answer_diff(&at, end, digits, &line)) == ANSWER_ONE)
        barepaths_add(&carrying->bare, line.path);
    if (answer != ANSWER_END)
        return nonsense(err);
    while ((path = answer_word(&at, end)))
        barepaths_add(&carrying->bare, path);
    if (at != end)
        return nonsense(err);
    for (at = bytes; answer_diff(&at, end, digits, &line) == ANSWER_ONE;) {
        struct classify_verdict verdict;

        judge(carrying, &line, &verdict);
        note(carrying, line.path, &(struct classify_verdict){ .class = CLASSIFY_ORDINARY, .reason = "" });
        if (verdict.class != CLASSIFY_ORDINARY)
            *array_add(carrying) = line;
    }
    return 0;
}

static void want(struct strings *hashes, mode_t mode, const char *hash)
{
    if (S_ISREG(mode) || S_ISLNK(mode))
        strings_add(hashes, hash);
}

static int write_wanted(const struct carrying *carrying, const struct shadow *shadow, struct error *err)
{
    autostrings struct strings hashes = STRINGS_NONE;
    autotext struct text lines = TEXT_NONE;

    for (size_t i = 0; i < carrying->len; i++) {
        want(&hashes, carrying->items[i].old_mode, carrying->items[i].old_hash);
        want(&hashes, carrying->items[i].new_mode, carrying->items[i].new_hash);
    }
    strings_sort(&hashes);
    for (size_t i = 0; i < hashes.len; i++)
        text_addf(&lines, "%s\n", hashes.items[i]);
    return shadow_write(shadow, "blobs", text_string(&lines), lines.len, err);
}

static int take_blobs(struct blobs *blobs, size_t digits, const char *bytes, size_t len, struct error *err)
{
    const char *at = bytes;
    struct blob blob = { 0 };
    enum answer answer;

    while ((answer = answer_blob(&at, bytes + len, digits, &blob)) == ANSWER_ONE)
        *array_add(blobs) = blob;
    if (answer != ANSWER_END)
        return nonsense(err);
    if (blobs->len)
        qsort(blobs->items, blobs->len, sizeof *blobs->items, by_hash);
    return 0;
}

static char *ask(const struct shadow *shadow, struct shadow_script *script, size_t *len, struct error *err)
{
    autoclose int out = shadow_file(shadow, "answer", err);

    script->out = out;
    if (out < 0 || shadow_run(shadow, script, err) < 0)
        return NULL;
    return shadow_read(out, len, err);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct carried_file *)a)->path, ((const struct carried_file *)b)->path);
}

/* Only class A is told one by one. */
static void give(struct carrying *carrying, struct carried *out)
{
    struct carried *found = &carrying->found;

    *out = (struct carried){ .files = found->len };
    for (size_t i = 0; i < found->len; i++) {
        out->build += found->items[i].verdict.class == CLASSIFY_BUILD;
        if (found->items[i].verdict.class != CLASSIFY_AUTORUN)
            continue;
        *array_add(out) = found->items[i];
        found->items[i].path = NULL;
    }
    if (out->len)
        qsort(out->items, out->len, sizeof *out->items, by_path);
}

int carried_find(const struct shadow *shadow, size_t digits, const char *tip, const char *mine,
                 struct carried *out, struct error *err)
{
    __attribute__((cleanup(carrying_free))) struct carrying carrying = { 0 };
    struct shadow_script list = { .doing = "listing what the commits change",
                                  .text = list_script,
                                  .words = { tip },
                                  .output_most = LIST_BYTES_MAX };
    struct shadow_script read = { .doing = "reading what the commits change",
                                  .text = blob_script,
                                  .output_most = BLOB_BYTES_MAX };
    autofree char *listed = NULL, *contents = NULL;
    size_t len;

    if (shadow_write(shadow, "mine", mine, strlen(mine), err) < 0)
        return -1;
    listed = ask(shadow, &list, &len, err);
    if (!listed || take_list(&carrying, digits, listed, len, err) < 0)
        return -1;
    if (carrying.len) {
        if (write_wanted(&carrying, shadow, err) < 0)
            return -1;
        contents = ask(shadow, &read, &len, err);
        if (!contents || take_blobs(&carrying.blobs, digits, contents, len, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < carrying.len; i++) {
        struct classify_verdict verdict;

        judge(&carrying, &carrying.items[i], &verdict);
        note(&carrying, carrying.items[i].path, &verdict);
    }
    give(&carrying, out);
    return 0;
}
