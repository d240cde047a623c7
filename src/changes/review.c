#include "changes/review.h"

#include "base/map.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/bare.h"
#include "changes/changes.h"
#include "changes/classify.h"
#include "changes/digest.h"
#include "changes/excludes.h"
#include "changes/gitindex.h"
#include "changes/hiding.h"
#include "changes/patch.h"
#include "changes/scan.h"
#include "changes/tricks.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define autobytes __attribute__((cleanup(patch_bytes_free)))

struct reviewing {
    const struct patch_source *source;
    struct changes *changes;
    struct review *out;
    size_t *directories; /* one for each change: length of the ignored directory in its path, 0: none */
    struct map folds;    /* directory -> its place in out->folds, from 1 */
};

void review_free(struct review *review)
{
    for (size_t i = 0; i < review->items_len; i++)
        free(review->items[i].hides);
    for (size_t i = 0; i < review->len; i++)
        free(review->folds[i].directory);
    free(review->items);
    free(review->contents);
    free(review->folds);
    free(review->too_long);
    *review = REVIEW_NONE;
}

/* --- what can run --- */

static mode_t mode_of(const struct side *side)
{
    static const mode_t kinds[] = { [SIDE_NONE] = 0,
                                    [SIDE_FILE] = S_IFREG,
                                    [SIDE_LINK] = S_IFLNK,
                                    [SIDE_DIRECTORY] = S_IFDIR,
                                    [SIDE_OTHER] = S_IFIFO };

    return side->type == SIDE_NONE ? 0 : kinds[side->type] | side->mode;
}

static struct classify_side side_of(const struct side *side, const struct patch_bytes *bytes)
{
    return (struct classify_side){ .mode = mode_of(side),
                                   .bytes = bytes->bytes,
                                   .len = bytes->len,
                                   .cut = side->type == SIDE_FILE && !bytes->bytes };
}

/* What goes away with a rename may be what held something back. */
static void judge_old_place(const struct change *change, const struct patch_bytes *old,
                            struct classify_verdict *out)
{
    struct classify_input gone = { .path = change->from,
                                   .path_len = strlen(change->from),
                                   .old = side_of(&change->old, old) };
    struct classify_verdict verdict;

    classify(&gone, &verdict);
    if (verdict.class > out->class)
        *out = verdict;
}

static void read_both(const struct patch_source *source, const struct change *change, int copy,
                      struct patch_bytes *old, struct patch_bytes *new)
{
    patch_read(source, change, old, new);
    if (copy < 0)
        return;
    patch_bytes_free(new);
    patch_read_open(copy, new);
}

/* What cannot be read counts as changed.  So first nothing is read: what is harmless even then is harmless,
 * and most files are. */
void review_judge(const struct patch_source *source, const struct change *change, const char *in_bare, int copy,
                  struct classify_verdict *out, struct digest *content)
{
    autobytes struct patch_bytes old = { 0 }, new = { 0 };
    struct classify_input input = { .path = change->path,
                                    .path_len = strlen(change->path),
                                    .in_bare = in_bare };

    for (int round = 0; round < 2; round++) {
        if (round)
            read_both(source, change, copy, &old, &new);
        if (change->kind != CHANGE_RENAMED)
            input.old = side_of(&change->old, &old);
        input.new = side_of(&change->new, &new);
        classify(&input, out);
        if (change->from)
            judge_old_place(change, &old, out);
        if (out->class == CLASSIFY_ORDINARY)
            break;
    }
    if (content && change->new.type == SIDE_FILE &&new.bytes)
        digest_bytes(new.bytes, new.len, content);
}

/* The piece without which git would not take the directory for a repository, a directory too: what lies
 * beside it, a `config` above all, acts as soon as it is there. */
static void judge_piece(const struct change *change, const char *in_bare, struct classify_verdict *out)
{
    for (size_t i = 0; in_bare && change->new.type != SIDE_NONE &&i < CLASSIFY_TELLING; i++)
        if (strcasecmp(in_bare, classify_telling[i]) == 0 && out->class != CLASSIFY_AUTORUN)
            *out = (struct classify_verdict){ .class = CLASSIFY_AUTORUN,
                                              .reason = "with it git takes the directory for a repository" };
}

static void judge_all(struct reviewing *reviewing)
{
    struct bare bare = { .source = reviewing->source, .changes = reviewing->changes };

    for (size_t i = 0; i < reviewing->changes->len; i++) {
        struct change *change = &reviewing->changes->items[i];
        const char *in_bare = bare_below(&bare, change->path);

        change->flags |= in_bare ? FLAG_REPOSITORY : 0;
        review_judge(reviewing->source, change, in_bare, -1, &reviewing->out->items[i].verdict,
                     &reviewing->out->contents[i]);
        judge_piece(change, in_bare, &reviewing->out->items[i].verdict);
    }
    bare_free(&bare);
}

/* --- what is ignored --- */

static bool is_directory(const struct change *change)
{
    return (change->new.type == SIDE_NONE ? change->old.type : change->new.type) == SIDE_DIRECTORY;
}

struct tracked {
    const struct changes *changes;
};

/* Git does not ignore what it tracks, whatever the rules say. */
static void show_tracked(void *owner, const struct gitindex_entry *entry)
{
    const struct tracked *tracked = owner;
    struct change *change = changes_find(tracked->changes, entry->path);

    if (change)
        change->flags &= ~(unsigned)FLAG_LEFT_OUT;
}

/* Only of the workspace's own repository is the index looked at; elsewhere what was there counts as tracked. */
static void show_all_tracked(struct reviewing *reviewing, bool any)
{
    autotext struct text bytes = TEXT_NONE;
    struct tracked tracked = { reviewing->changes };
    struct gitindex index = { 0 };

    if (any && content_text(reviewing->source->base, ".git/index", GITINDEX_BYTES_MAX, &bytes) &&
        gitindex_read(text_string(&bytes), bytes.len, show_tracked, &tracked, &index) == 0 && !index.split)
        return;
    for (size_t i = 0; any && i < reviewing->changes->len; i++)
        if (reviewing->changes->items[i].old.type != SIDE_NONE)
            reviewing->changes->items[i].flags &= ~(unsigned)FLAG_LEFT_OUT;
}

/* What was moved to an ignored place is gone from another one, and what is only counted may be tracked. */
static bool is_more_than_its_path(const struct change *change)
{
    return change->from || change->count;
}

static void find_ignored(struct reviewing *reviewing)
{
    struct excludes excludes = { .base = reviewing->source->base };
    bool any = false;

    for (size_t i = 0; i < reviewing->changes->len; i++) {
        struct change *change = &reviewing->changes->items[i];
        struct excludes_answer answer;

        excludes_ask(&excludes, change->path, is_directory(change), &answer);
        if (answer.too_long && !reviewing->out->too_long)
            reviewing->out->too_long = text_copy(answer.rule);
        if (!answer.ignored || (answer.nested && change->old.type != SIDE_NONE) ||
            is_more_than_its_path(change))
            continue;
        change->flags |= FLAG_LEFT_OUT;
        reviewing->directories[i] = answer.directory;
        any = any || change->old.type != SIDE_NONE;
    }
    excludes_free(&excludes);
    show_all_tracked(reviewing, any);
}

static void say_hides(struct reviewing *reviewing, const struct excludes_answer *answer, const char *path)
{
    struct change *rule = changes_find(reviewing->changes, answer->rule);
    struct review_item *item = rule ? &reviewing->out->items[rule - reviewing->changes->items] : NULL;

    if (!rule)
        return;
    rule->flags |= FLAG_HIDES;
    if (!item->hides)
        item->hides = answer->too_long
                          ? text_copy("its rules take too long to follow; what they hide is not known")
                          : text_format("it makes git ignore %s and maybe more", path);
}

/* What only the sandbox's own rules hide is shown, and the rule beside it. */
static void find_unseen(struct reviewing *reviewing)
{
    struct changes *changes = reviewing->changes;
    struct excludes excludes = { .base = reviewing->source->base,
                                 .inside = true,
                                 .upper = reviewing->source->upper };

    for (size_t i = 0; i < changes->len; i++) {
        struct change *change = &changes->items[i];
        struct excludes_answer answer;

        /* What was there before may be tracked, and is seen then. */
        if (change->flags & FLAG_LEFT_OUT || (change->kind != CHANGE_ADDED && change->kind != CHANGE_RENAMED))
            continue;
        excludes_ask(&excludes, change->path, is_directory(change), &answer);
        if (!answer.ignored && !answer.too_long)
            continue;
        change->flags |= answer.ignored ? FLAG_UNSEEN : 0;
        say_hides(reviewing, &answer, change->path);
    }
    excludes_free(&excludes);
}

/* --- folding --- */

/* A name below "node_modules" names what is ignored there; "." does not. */
static bool is_named(const struct reviewing *reviewing, size_t index, const struct strings *named)
{
    const char *path = reviewing->changes->items[index].path;
    size_t least = reviewing->directories[index] ? reviewing->directories[index] : strlen(path);

    for (size_t i = 0; named && i < named->len; i++) {
        size_t len = strlen(named->items[i]);

        if (len >= least && strncmp(path, named->items[i], len) == 0 && (!path[len] || path[len] == '/'))
            return true;
    }
    return false;
}

/* What is shown needs the directories around it. */
static void unfold_around(struct reviewing *reviewing, const char *path)
{
    autofree char *around = text_copy(path);

    for (char *slash; (slash = strrchr(around, '/'));) {
        *slash = '\0';

        const struct change *change = changes_find(reviewing->changes, around);

        if (change)
            reviewing->out->items[change - reviewing->changes->items].folded = false;
    }
}

static void count_fold(struct reviewing *reviewing, size_t index)
{
    struct review *out = reviewing->out;
    const struct change *change = &reviewing->changes->items[index];
    const char *slash = strrchr(change->path, '/');
    size_t whole = reviewing->directories[index], len = whole   ? whole
                                                        : slash ? (size_t)(slash - change->path)
                                                                : 0;
    autofree char *directory = text_format("%.*s", (int)len, change->path);
    uint64_t place = map_get(&reviewing->folds, directory);

    if (!place) {
        *(struct review_fold *)array_grow((void **)&out->folds, &out->len, &out->cap, sizeof *out->folds) =
            (struct review_fold){ .directory = text_copy(directory), .whole = whole };
        place = map_add(&reviewing->folds, directory, out->len);
    }

    struct review_fold *fold = &out->folds[place - 1];

    out->folded++;
    fold->files += !is_directory(change);
    fold->bytes += change->new.size;
}

static void fold(struct reviewing *reviewing, const struct strings *named)
{
    const struct changes *changes = reviewing->changes;
    struct review_item *items = reviewing->out->items;

    for (size_t i = 0; i < changes->len; i++)
        items[i].folded = changes->items[i].flags & FLAG_LEFT_OUT &&
                          items[i].verdict.class != CLASSIFY_AUTORUN && !is_named(reviewing, i, named);
    for (size_t i = changes->len; i-- > 0;)
        if (!items[i].folded && changes->items[i].flags & FLAG_LEFT_OUT)
            unfold_around(reviewing, changes->items[i].path);
    for (size_t i = 0; i < changes->len; i++)
        if (items[i].folded)
            count_fold(reviewing, i);
}

/* --- what tries not to be seen --- */

static bool has_new_bytes(const struct change *change)
{
    return change->new.type == SIDE_FILE && change->kind != CHANGE_MODE && change->kind != CHANGE_RENAMED;
}

static void look_at_content(struct reviewing *reviewing, size_t index)
{
    struct change *change = &reviewing->changes->items[index];
    struct review_item *item = &reviewing->out->items[index];
    autobytes struct patch_bytes old = { 0 }, new = { 0 };
    autotext struct text says = TEXT_NONE;

    patch_read(reviewing->source, change, &old, &new);
    if (hiding_of(reviewing->source, change, &old, &new, &says)) {
        change->flags |= FLAG_HIDES;
        free(item->hides);
        item->hides = text_steal(&says);
    }
    if (!has_new_bytes(change) || new.binary || !new.bytes)
        return;
    item->tricks = tricks_added(old.bytes ? old.bytes : "", old.bytes ? old.len : 0, new.bytes, new.len);
    change->flags |= item->tricks ? FLAG_TRICK : 0;
}

static void count(struct reviewing *reviewing)
{
    struct review *out = reviewing->out;

    for (size_t i = 0; i < out->items_len; i++) {
        if (out->items[i].folded)
            continue;
        out->autorun += out->items[i].verdict.class == CLASSIFY_AUTORUN;
        out->build += out->items[i].verdict.class == CLASSIFY_BUILD;
        out->base_changed += (reviewing->changes->items[i].flags & FLAG_BASE_CHANGED) != 0;
    }
}

static void leave_to_others(struct reviewing *reviewing, bool (*elsewhere)(const struct change *change))
{
    for (size_t i = 0; elsewhere && i < reviewing->changes->len; i++) {
        const struct change *change = &reviewing->changes->items[i];
        struct review_item *item = &reviewing->out->items[i];

        if (item->folded || change->flags & (FLAG_HIDES | FLAG_REPOSITORY) || !elsewhere(change))
            continue;
        item->folded = true;
        reviewing->out->elsewhere++;
    }
}

void review_changes(const struct patch_source *source, struct changes *changes, const struct review_wish *wish,
                    struct review *out)
{
    autofree size_t *directories = memory_zero((changes->len + 1) * sizeof *directories);
    struct reviewing reviewing = { source, changes, out, directories, MAP_NONE };

    out->items = memory_zero((changes->len + 1) * sizeof *out->items);
    out->items_len = changes->len;
    out->contents = memory_zero((changes->len + 1) * sizeof *out->contents);
    judge_all(&reviewing);
    find_ignored(&reviewing);
    find_unseen(&reviewing);
    if (!wish->all)
        fold(&reviewing, wish->named);
    map_free(&reviewing.folds);
    for (size_t i = 0; i < changes->len; i++)
        if (!out->items[i].folded)
            look_at_content(&reviewing, i);
    leave_to_others(&reviewing, wish->elsewhere);
    count(&reviewing);
}

void review_digest(const struct patch_source *source, const struct changes *changes, struct review *review)
{
    static const struct digest none;

    for (size_t i = 0; i < changes->len; i++) {
        struct changes one = { .items = &changes->items[i], .len = 1 };

        if (!review->items[i].folded && digest_equal(&review->contents[i], &none))
            digest_contents(source->upper, &one, &review->contents[i]);
    }
}
