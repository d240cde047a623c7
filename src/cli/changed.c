#include "cli/changed.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/tree.h"
#include "changes/moved.h"
#include "changes/prints.h"
#include "sys/sys.h"

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
    { "base-changed", "changed on the host since" },
    { "twin", "a name that looks like another one" },
    { "odd-name", "an odd name" },
    { "unreadable", "cannot be read" },
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
    if (change->kind == CHANGE_RENAMED && change->from) {
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
    own_close(&changed->upper);
    own_close(&changed->base);
    own_close(&changed->tree);
    which_free(&changed->which);
}

static const struct record_layer *workspace_layer(const struct record *record)
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

static int open_sides(struct changed *changed, const struct record_layer *layer, struct prints *ours,
                      struct error *err)
{
    autoclose int dir = kept_open(&changed->which.all, changed->kept, err);
    autofree char *name = text_format("u%llu", (unsigned long long)layer->number);

    if (dir < 0)
        return -1;
    changed->upper = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (changed->upper < 0)
        return error_sys(err, "open what the sandbox wrote");
    changed->tree = open_tree(layer, err);
    if (changed->tree < 0)
        return -1;

    autoclose int prints = openat(dir, STORE_PRINTS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    prints_read(prints, ours);
    *name = 'b';
    changed->base = record_is_on_copy(&changed->kept->record, layer)
                        ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : fcntl(changed->tree, F_DUPFD_CLOEXEC, 0);
    return changed->base < 0 ? error_sys(err, "open what the sandbox was given") : 0;
}

static int scan(struct changed *changed, struct error *err)
{
    const struct record *record = &changed->kept->record;
    const struct record_layer *layer = workspace_layer(record);

    if (changed->kept->state == KEPT_RUNNING)
        return error_set(err, ERROR_REFUSED, "sandbox %.12s still runs; wait for its end", changed->kept->id);
    if (!layer)
        return error_set(err, ERROR_MISSING, "sandbox %.12s has no workspace that it could change",
                         changed->kept->id);
    autoprints struct prints ours = PRINTS_NONE;

    if (open_sides(changed, layer, &ours, err) < 0)
        return -1;

    bool copied = record_is_on_copy(record, layer);

    struct changes_source source = { .upper = changed->upper,
                                     .base = changed->base,
                                     .marks = record->shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER,
                                     .inside = layer->target,
                                     .hide = &layer->hide,
                                     .since = copied ? (struct timespec){ 0 } : record->created,
                                     .ours = &ours,
                                     .shift = record->shifted ? (uid_t)record->base : 0 };

    if (changes_scan(&source, &changed->changes, err) < 0)
        return -1;
    if (copied)
        changes_flag_moved(&changed->changes, changed->base, changed->tree);
    return 0;
}

/* The sandbox that the first word names, if it names one and no path. */
static const struct kept *choose(const struct which *which, const struct strings *words, size_t *paths,
                                 struct error *err)
{
    const struct kept *kept = words->len ? which_sandbox(which, words->items[0], err) : NULL;

    *paths = kept ? 1 : 0;
    if (!kept && words->len && err->kind != ERROR_MISSING)
        return NULL;
    return kept ? kept : which_sandbox(which, NULL, err);
}

/* "a/b" below "a": the workspace's own names are what counts. */
static bool is_below(const char *path, const char *wanted)
{
    size_t len = strlen(wanted);

    while (len > 0 && wanted[len - 1] == '/')
        len--;
    return strncmp(path, wanted, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool is_wanted(const struct change *change, const struct strings *words, size_t first)
{
    for (size_t i = first; i < words->len; i++) {
        const char *wanted = words->items[i];

        wanted += text_starts(wanted, "./") ? 2 : 0;
        if (strcmp(wanted, ".") == 0 || is_below(change->path, wanted) ||
            (change->from && is_below(change->from, wanted)))
            return true;
    }
    return first >= words->len;
}

static void keep_wanted(struct changes *changes, const struct strings *words, size_t first)
{
    struct changes kept = { .looked_at = changes->looked_at, .twins_unsure = changes->twins_unsure };
    struct changes dropped = CHANGES_NONE;

    for (size_t i = 0; i < changes->len; i++) {
        struct changes *to = is_wanted(&changes->items[i], words, first) ? &kept : &dropped;

        *array_add(to) = changes->items[i];
    }
    free(changes->items);
    *changes = kept;
    changes_free(&dropped);
}

int changed_read(const struct strings *words, struct changed *out, struct error *err)
{
    size_t first = 0;

    if (which_read(&out->which, err) < 0)
        return -1;
    out->kept = choose(&out->which, words, &first, err);
    if (!out->kept || scan(out, err) < 0)
        return -1;
    keep_wanted(&out->changes, words, first);
    return 0;
}
