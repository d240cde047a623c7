#include "changes/hiding.h"

#include "base/array.h"
#include "base/text.h"
#include "changes/changes.h"
#include "changes/gitindex.h"
#include "changes/lines.h"
#include "changes/patch.h"
#include "changes/scan.h"

#include <string.h>
#include <strings.h>

enum { NAMED_MAX = 5 /* so many are told by name */ };

/* --- attributes --- */

/* What they begin with, up to the first that does. */
static const char *const looking_away[] = {
    "-diff",
    "!diff",
    "diff=",
    "binary",
    "filter=",
    "merge=",
    "-merge",
    "-filter",
    "export-ignore",
    "linguist-generated",
    "linguist-vendored",
    "linguist-documentation",
    "gitlab-generated",
    "working-tree-encoding=",
};

static bool is_looking_away(const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(looking_away); i++) {
        size_t known = strlen(looking_away[i]);

        if (len >= known && memcmp(word, looking_away[i], known) == 0)
            return true;
    }
    return false;
}

/* The next word of a line, which *at moves behind. */
static size_t next_word(const char **at, const char *end, const char **word)
{
    while (*at < end && strchr(" \t\r", **at))
        (*at)++;
    *word = *at;
    while (*at < end && !strchr(" \t\r", **at))
        (*at)++;
    return (size_t)(*at - *word);
}

/* The pattern is a word too, but none that begins so; a quoted one may have blanks. */
static bool has_attribute(const char *line, size_t len)
{
    const char *at = line, *word, *end = line + len;
    size_t word_len = next_word(&at, end, &word);

    if (!word_len || *word == '#')
        return false;
    while ((word_len = next_word(&at, end, &word)))
        if (is_looking_away(word, word_len))
            return true;
    return false;
}

static void tell_line(void *owner, const char *line, size_t len)
{
    struct text *says = owner;

    if (says->len > 200)
        return;
    text_add(says, says->len ? "; " : "attributes: ");
    text_add_bytes(says, line, len < 80 ? len : 80);
}

static bool look_at_attributes(const struct patch_bytes *old, const struct patch_bytes *new, struct text *says)
{
    size_t before = says->len;

    if (new->binary) {
        text_add(says, "attributes that cannot be read");
        return true;
    }
    lines_added(old->bytes ? old->bytes : "", old->len, new->bytes ? new->bytes : "", new->len, has_attribute,
                tell_line, says);
    return says->len > before;
}

/* --- the index --- */

struct marked {
    struct strings paths; /* "a" and "s" before them: assumed, skipped */
    struct gitindex index;
};

static void collect(void *owner, const struct gitindex_entry *entry)
{
    struct marked *marked = owner;

    if (entry->assumed)
        strings_take(&marked->paths, text_format("a%s", entry->path));
    if (entry->skipped)
        strings_take(&marked->paths, text_format("s%s", entry->path));
}

static bool read_marked(int root, const char *path, struct marked *out)
{
    autotext struct text bytes = TEXT_NONE;
    bool read = content_text(root, path, GITINDEX_BYTES_MAX, &bytes) &&
                gitindex_read(text_string(&bytes), bytes.len, collect, out, &out->index) == 0;

    strings_sort(&out->paths);
    return read;
}

/* Those of `new` that `old` has not, both sorted. */
static size_t newly_marked(const struct strings *old, const struct strings *new, char kind, struct text *names)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < new->len; i++) {
        while (at < old->len && strcmp(old->items[at], new->items[i]) < 0)
            at++;
        if (new->items[i][0] != kind || (at < old->len && strcmp(old->items[at], new->items[i]) == 0))
            continue;
        if (count++ < NAMED_MAX)
            text_addf(names, "%s%s", count > 1 ? ", " : "", new->items[i] + 1);
    }
    return count;
}

static void tell_marked(const struct marked *old, const struct marked *new, struct text *says)
{
    static const struct {
        char kind;
        const char *says;
    } kinds[] = { { 'a', "assume-unchanged" }, { 's', "skip-worktree" } };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        autotext struct text names = TEXT_NONE;
        size_t count = newly_marked(&old->paths, &new->paths, kinds[i].kind, &names);

        if (count)
            text_addf(says, "%sthe index says %s of %zu file%s: %s%s", says->len ? "; " : "", kinds[i].says,
                      count, count == 1 ? "" : "s", text_string(&names), count > NAMED_MAX ? ", ..." : "");
    }
    if (new->index.fsmonitor && !old->index.fsmonitor)
        text_addf(says, "%sthe index says which files need not be looked at (fsmonitor)",
                  says->len ? "; " : "");
    if (new->index.split && !old->index.split)
        text_addf(says, "%sthe index is split, and its other part was not read", says->len ? "; " : "");
}

static bool look_at_index(const struct patch_source *source, const struct change *change, struct text *says)
{
    struct marked old = { 0 }, new = { 0 };
    size_t before = says->len;

    if (change->new.type == SIDE_FILE && !read_marked(source->upper, change->path, &new))
        text_add(says, "an index that cannot be read");
    if (change->old.type == SIDE_FILE)
        (void)read_marked(source->base, change->from ? change->from : change->path, &old);
    tell_marked(&old, &new, says);
    strings_free(&old.paths);
    strings_free(&new.paths);
    return says->len > before;
}

/* --- which file is what --- */

static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return strcasecmp(slash ? slash + 1 : path, name) == 0;
}

static bool is_in_git(const char *path)
{
    return strncasecmp(path, ".git/", 5) == 0 || strcasestr(path, "/.git/");
}

bool hiding_of(const struct patch_source *source, const struct change *change, const struct patch_bytes *old,
               const struct patch_bytes *new, struct text *says)
{
    const char *path = change->path;

    if (change->new.type == SIDE_NONE || change->new.type == SIDE_DIRECTORY)
        return false;
    if (is_named(path, ".gitattributes") || (is_in_git(path) && is_named(path, "attributes")))
        return look_at_attributes(old, new, says);
    if (is_in_git(path) && is_named(path, "index"))
        return look_at_index(source, change, says);
    if (is_in_git(path) && (is_named(path, "exclude") || is_named(path, "sparse-checkout"))) {
        text_add(says, "it tells git which files not to show");
        return true;
    }
    return false;
}
