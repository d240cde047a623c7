#include "cli/changed.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/tree.h"
#include "changes/moved.h"
#include "changes/patch.h"
#include "changes/review.h"
#include "cli/say.h"
#include "cli/whereabouts.h"
#include "git/own.h"
#include "keeper/upper.h"
#include "spec/node.h"
#include "store/bottom.h"
#include "store/lineage.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kind_names[] = {
    [CHANGE_REMOVED] = "removed", [CHANGE_ADDED] = "added",     [CHANGE_CHANGED] = "changed",
    [CHANGE_MODE] = "mode",       [CHANGE_RETYPED] = "retyped", [CHANGE_RENAMED] = "renamed",
};

static const char *const side_names[] = {
    [SIDE_NONE] = "none",           [SIDE_FILE] = "file",          [SIDE_LINK] = "link",
    [SIDE_DIRECTORY] = "directory", [SIDE_OTHER] = "special file",
};

/* In the order of their bits. */
static const struct {
    const char *name, *says;
} flags[] = {
    { "empty", NULL },
    { "link-out", "a link that leads out of the workspace" },
    { "link-absolute", "an absolute link" },
    { "hard-link", "a hard link" },
    { "set-id", "setuid or setgid" },
    { "special", NULL },
    { "hidden", "in the place of a file that was hidden from it" },
    { "base-changed", "base changed since" },
    { "twin", "a name that looks like another one" },
    { "odd-name", "an odd name" },
    { "unreadable", "cannot be read" },
    { "trojan-source", NULL },
    { "hides", NULL },
    { "unseen", "ignored by git, but only by rules that the sandbox wrote" },
    { "ignored", "ignored by git" },
    { "repository", "in a directory that git takes for a repository" },
    { "too-deep", "nested too deep to be brought home" },
};

const char *changed_kind_name(enum change_kind kind)
{
    return kind_names[kind];
}

const char *changed_side_name(enum side_type type)
{
    return side_names[type];
}

const char *changed_flag_name(unsigned bit)
{
    return bit < ARRAY_LEN(flags) ? flags[bit].name : NULL;
}

void changed_describe(const struct change *change, struct text *out)
{
    const char *before = " (";

    text_add_inert(out, change->path);
    if (change->from) {
        text_add(out, " <- ");
        text_add_inert(out, change->from);
    }
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (change->flags >> i & 1 && flags[i].says) {
            text_addf(out, "%s%s", before, flags[i].says);
            before = ", ";
        }
    text_add(out, *before == ',' ? ")" : "");
}

/* --- reading --- */

void changed_free(struct changed *changed)
{
    changes_free(&changed->changes);
    prints_free(&changed->ours);
    strings_free(&changed->paths);
    record_free(&changed->own.record);
    free(changed->from);
    free(changed->to);
    own_close(&changed->upper);
    own_close(&changed->base);
    own_close(&changed->tree);
    which_free(&changed->which);
}

const struct record_layer *changed_layer(const struct record *record)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (strcmp(record->layers.items[i].why, TREE_WHY_WORKSPACE) == 0)
            return &record->layers.items[i];
    return NULL;
}

/* The tree must be the one that the sandbox was started on: another one under its name would be
 * compared with changes that were never made to it. */
static int open_tree(const struct record_layer *layer, struct error *err)
{
    autoclose int fd = sys_openat2(AT_FDCWD, layer->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                   RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open the workspace %.200s", layer->source);
    if (status.st_dev != layer->device || status.st_ino != layer->inode)
        return error_set(err, ERROR_REFUSED,
                         "%.200s is not the directory that the sandbox was started on; it was replaced since",
                         layer->source);
    return steal_fd(&fd);
}

static int open_sides(struct changed *changed, const struct record_layer *layer, struct error *err)
{
    autoclose int dir = kept_open(&changed->which.all, changed->kept, err);

    if (dir < 0)
        return -1;
    kept_settle(changed->kept, dir);
    changed->upper = upper_open(dir, &changed->kept->record, layer->number, &changed->linked, err);
    if (changed->upper < 0)
        return -1;
    changed->tree = open_tree(layer, err);
    if (changed->tree < 0)
        return -1;

    autoclose int prints = openat(dir, STORE_PRINTS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    prints_read(prints, &changed->ours);
    if (record_is_on_copy(&changed->kept->record, layer)) {
        changed->base = bottom_open(dir, layer->number, err);
        return changed->base < 0 ? -1 : 0;
    }
    changed->base = fcntl(changed->tree, F_DUPFD_CLOEXEC, 0);
    return changed->base < 0 ? error_sys(err, "open what the sandbox was given") : 0;
}

/* Only a layer that the kernel wrote, over a tree that goes on, can tell what was brought there. */
static bool can_tell_home(const struct record *record)
{
    return strcmp(record->mode, "cow") == 0 || strcmp(record->mode, "live") == 0;
}

/* The layers that the merged directory stands for, below the state directory; none if they cannot be read. */
static void read_line(const struct changed *changed, const struct record_layer *layer, struct strings *out)
{
    autostrings struct strings steps = STRINGS_NONE;
    struct error ignored;
    autoclose int dir = kept_open(&changed->which.all, changed->kept, &ignored),
                  layers = layers_beside(changed->which.all.parent, &ignored);
    unsigned long long number = layer->number;
    char top[ID_LENGTH + 1];

    if (dir < 0 || layers < 0 || stack_top(dir, top, &ignored) < 0 ||
        lineage_steps(layers, top, &steps, &ignored) < 0)
        return;
    strings_take(out, text_format("sandboxes/%s/u%llu", changed->kept->id, number));
    for (size_t i = 0; i < steps.len; i++)
        strings_take(out, text_format("layers/%s/u%llu", steps.items[i], number));
}

static int scan(struct changed *changed, bool home, struct error *err)
{
    const struct record *record = &changed->kept->record;
    const struct record_layer *layer = changed_layer(record);

    if (!layer)
        return error_set(err, ERROR_MISSING, "sandbox %.12s has no workspace that it could change",
                         changed->kept->id);
    if (open_sides(changed, layer, err) < 0)
        return -1;

    bool copied = record_is_on_copy(record, layer);
    struct timespec never = { 0 };
    autostrings struct strings line = STRINGS_NONE;
    autoclose int state = openat(changed->which.all.parent, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (changed->linked)
        read_line(changed, layer, &line);

    struct changes_source source = { .upper = changed->upper,
                                     .base = changed->base,
                                     .marks = record->shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER,
                                     .inside = layer->source, /* a link that comes home leads from there */
                                     .hide = &layer->hide,
                                     .since = copied ? never : record_since(record),
                                     .ours = &changed->ours,
                                     .home = home && can_tell_home(record),
                                     .linked = changed->linked,
                                     .line = &line,
                                     .line_at = state,
                                     .shift = record->shifted ? (uid_t)record->base : 0 };

    if (changes_scan(&source, &changed->changes, err) < 0)
        return -1;
    if (copied)
        changes_flag_moved(&changed->changes, changed->base, changed->tree);
    return 0;
}

const struct kept *changed_choose(const struct which *which, const struct strings *words, size_t *paths,
                                  struct error *err)
{
    const struct kept *kept = words->len ? which_sandbox(which, words->items[0], err) : NULL;

    *paths = kept ? 1 : 0;
    /* Less than what an id may be shortened to is a path, whatever ids begin with. */
    if (!kept && words->len && err->kind != ERROR_MISSING && strlen(words->items[0]) >= 3)
        return NULL;
    if (!kept)
        kept = which_sandbox(which, NULL, err);
    if (!kept && words->len) {
        autotext struct text shown = TEXT_NONE;

        node_show_text(words->items[0], &shown);
        (void)error_while(err, "no sandbox is called %s", text_string(&shown));
    }
    return kept;
}

/* --- paths --- */

char *changed_normal_path(const char *directory, const char *word)
{
    autofree char *joined = *word == '/' ? text_copy(word) : text_format("%s/%s", directory, word);
    struct text out = TEXT_NONE;

    for (char *rest = joined, *part; (part = strsep(&rest, "/"));) {
        if (!*part || strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") != 0) {
            text_addf(&out, "/%s", part);
            continue;
        }
        while (out.len && out.data[--out.len] != '/')
            continue;
        text_cut(&out, out.len);
    }
    return text_steal(&out);
}

int changed_paths(const struct changed *changed, const struct strings *words, size_t first, struct strings *out,
                  struct error *err)
{
    const char *root = changed->kept->record.workspace, *cwd = changed->which.host.cwd;

    for (size_t i = first; i < words->len; i++) {
        autofree char *path = changed_normal_path(path_within(cwd, root) ? cwd : root, words->items[i]);

        if (!path_within(path, root))
            return error_set(err, ERROR_INVALID, "%.200s is not in the workspace %.200s", words->items[i],
                             root);
        strings_add(out, path + strlen(root) + (path[strlen(root)] == '/'));
    }
    return 0;
}

static bool is_below(const char *path, const char *wanted)
{
    return !*wanted || path_within(path, wanted);
}

bool changed_is_listed(const struct strings *paths, const char *path)
{
    for (size_t i = 0; i < paths->len; i++)
        if (is_below(path, paths->items[i]))
            return true;
    return false;
}

/* What lies in a new directory cannot come home without it. */
static bool is_around(const struct change *change, const struct strings *paths)
{
    if (change->new.type != SIDE_DIRECTORY || change->kind == CHANGE_MODE)
        return false;
    for (size_t i = 0; i < paths->len; i++)
        if (path_within(paths->items[i], change->path))
            return true;
    return false;
}

static bool is_wanted(const struct change *change, const struct strings *paths)
{
    return !paths->len || changed_is_listed(paths, change->path) ||
           (change->from && changed_is_listed(paths, change->from)) || is_around(change, paths);
}

static bool is_matched(const struct changes *changes, char **path)
{
    struct strings one = { .items = path, .len = 1 };

    for (size_t i = 0; i < changes->len; i++)
        if (is_wanted(&changes->items[i], &one))
            return true;
    return false;
}

/* Mistyped names would else look like files without a change. */
void changed_warn(const struct changed *changed, const struct strings *paths)
{
    for (size_t i = 0; i < paths->len; i++)
        if (!is_matched(&changed->changes, &paths->items[i]))
            say_warning("the sandbox changed nothing at %.300s", *paths->items[i] ? paths->items[i] : ".");
}

/* The first word may have been meant for a sandbox. */
static int check_first(const struct changed *changed, const struct strings *words, size_t first,
                       struct error *err)
{
    if (first > 0 || !changed->paths.len || is_matched(&changed->changes, &changed->paths.items[0]) ||
        faccessat(changed->tree, changed->paths.items[0], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    error_set(err, ERROR_MISSING, "'%.100s' is neither a sandbox nor a path that is there or was changed",
              words->items[0]);
    error_hint(err, "`cove ls` lists sandboxes");
    return strchr(words->items[0], '@') ? error_hint(err, "what lies between two steps: cove diff ID A..B")
                                        : -1;
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whoever names it, or a directory in it, is asking again; the workspace as a whole is no name. */
static bool is_settled(const struct changed *changed, const struct change *change)
{
    const struct strings *settled = &changed->kept->record.settled;

    return settled->len && !changed->from &&
           bsearch(&change->path, settled->items, settled->len, sizeof *settled->items, by_string) &&
           (strings_have(&changed->paths, "") || !changed_is_listed(&changed->paths, change->path));
}

static void keep_wanted(struct changed *changed)
{
    struct changes *changes = &changed->changes;
    struct changes kept = { .looked_at = changes->looked_at, .twins_unsure = changes->twins_unsure };
    struct changes dropped = CHANGES_NONE;

    for (size_t i = 0; i < changes->len; i++) {
        bool wanted = is_wanted(&changes->items[i], &changed->paths),
             settled = wanted && is_settled(changed, &changes->items[i]);
        struct changes *to = wanted && !settled ? &kept : &dropped;

        changed->settled += settled;
        *array_add(to) = changes->items[i];
    }
    free(changes->items);
    *changes = kept;
    changes_free(&dropped);
}

void changed_keep(struct changed *changed)
{
    changed_warn(changed, &changed->paths);
    changed->all = !changed->paths.len;
    keep_wanted(changed);
}

static int find_workspace(struct changed *changed, const char *to, struct error *err)
{
    struct kept *kept = &changed->which.all.items[changed->kept - changed->which.all.items];
    struct error ignored;
    autofree char *here = which_work_tree(&changed->which, &ignored);

    if (kept->state != KEPT_BROKEN)
        return whereabouts_find(&kept->record, here, to, err);
    *err = kept->problem;
    return -1;
}

/* What a command is just writing may be looked at, but is not taken. */
static int check_running(const struct kept *kept, bool allowed, struct error *err)
{
    if (!kept_is_alive(kept))
        return 0;
    if (!allowed && kept->record.stays) {
        error_set(err, ERROR_REFUSED, "sandbox %s still runs", kept_word(kept).text);
        return error_hint(err, "stop it first: cove stop %s; `cove diff` shows what it has changed so far",
                          kept_word(kept).text);
    }
    if (!allowed) {
        error_set(err, ERROR_REFUSED, "sandbox %s still runs; wait for its end", kept_word(kept).text);
        return error_hint(err, "`cove diff` shows what it has changed so far");
    }
    if (strcmp(kept->record.mode, "rw") == 0)
        return error_set(err, ERROR_REFUSED, "sandbox %s still runs, and writes to %.200s itself",
                         kept_word(kept).text, kept->record.workspace);
    say_warning("sandbox %s still runs; this may change", kept_word(kept).text);
    return 0;
}

static bool is_empty(int dir, const struct record *record, uint64_t number)
{
    struct error ignored;
    autoclose int fd = upper_open(dir, record, number, NULL, &ignored);
    DIR *list = fd < 0 ? NULL : fdopendir(steal_fd(&fd));
    size_t count = 0;

    while (list && readdir(list))
        count++;
    if (list)
        closedir(list);
    return count <= 2; /* "." and ".." */
}

void changed_tell_elsewhere(const struct changed *changed)
{
    const struct record *record = &changed->kept->record;
    struct error ignored;
    autoclose int dir = kept_open(&changed->which.all, changed->kept, &ignored);
    autotext struct text where = TEXT_NONE;

    if (!changed->all || changed->changes.len)
        return;
    for (size_t i = 0; dir >= 0 && i < record->layers.len; i++) {
        const struct record_layer *layer = &record->layers.items[i];

        if (strcmp(layer->why, TREE_WHY_GRANT) != 0 || is_empty(dir, record, layer->number))
            continue;
        text_add(&where, where.len ? ", " : "");
        text_add_inert(&where, layer->target);
    }
    if (where.len)
        say_warning("sandbox %.12s changed nothing in the workspace; what it changed in %s stays in it",
                    changed->kept->id, text_string(&where));
}

int changed_read(const struct changed_wish *wish, struct changed *out, struct error *err)
{
    const struct strings *words = wish->words;
    size_t first = 0;

    if (which_read(&out->which, err) < 0)
        return -1;
    out->kept = changed_choose(&out->which, words, &first, err);
    if (!out->kept || find_workspace(out, wish->to, err) < 0)
        return -1;
    if (check_running(out->kept, wish->running, err) < 0) {
        if (first || !words->len)
            return -1;
        /* Nobody who mistypes a name is told to stop another sandbox. */
        return error_set(
            err, ERROR_REFUSED,
            "'%.60s' names no sandbox, and the last one here, %s, still runs; `cove ls` lists them",
            words->items[0], kept_word(out->kept).text);
    }
    if (changed_paths(out, words, first, &out->paths, err) < 0 || scan(out, wish->home, err) < 0)
        return -1;
    if (check_first(out, words, first, err) < 0)
        return -1;
    changed_keep(out);
    return 0;
}

static bool is_git_state(const struct change *change)
{
    return git_own_change(change) == GIT_OWN_STATE;
}

void changed_review(struct changed *changed, bool ignored, struct review *out)
{
    struct patch_source source = { changed->upper, changed->base, true };
    struct review_wish wish = { .named = &changed->paths, .all = ignored, .elsewhere = is_git_state };

    review_changes(&source, &changed->changes, &wish, out);
}
