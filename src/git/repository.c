#include "git/repository.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/gitconfig.h"
#include "box/gitlink.h"
#include "box/tree.h"
#include "keeper/record.h"
#include "keeper/upper.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CONFIG_MAX = 1 << 20,
    MODULES_MAX = 500,       /* submodules */
    MODULE_DEPTH_MAX = 12,   /* names of submodules have slashes, and submodules have submodules */
    MODULE_NAMES_MAX = 5000, /* in one directory on the way */
};

static void clear(struct repository *repository)
{
    free(repository->path);
    free(repository->submodule);
    free(repository->work);
    free(repository->head);
    merged_close(&repository->merged);
    merged_close(&repository->own);
}

void repositories_free(struct repositories *list)
{
    for (size_t i = 0; i < list->len; i++)
        clear(&list->items[i]);
    free(list->items);
    *list = REPOSITORIES_NONE;
}

/* --- layers --------------------------------------------------------------------------------- */

static const struct record_layer *layer_for(const struct record *record, const char *why)
{
    for (size_t i = 0; i < record->layers.len; i++)
        if (strcmp(record->layers.items[i].why, why) == 0)
            return &record->layers.items[i];
    return NULL;
}

const struct record_layer *repository_layer(const struct record *record)
{
    return layer_for(record, TREE_WHY_GIT);
}

int repository_open_layer(int dir, const struct record *record, const struct record_layer *layer,
                          struct merged *out, struct error *err)
{
    struct stat status;

    *out = MERGED_NONE;
    out->marks = record->shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER;
    out->upper = upper_open(dir, record, layer->number, NULL, err);
    if (out->upper < 0)
        return -1;
    out->base = sys_openat2(AT_FDCWD, layer->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (out->base < 0 || fstat(out->base, &status) < 0)
        return error_sys(err, "open %.200s and what the sandbox wrote there", layer->source);
    if (status.st_dev != layer->device || status.st_ino != layer->inode)
        return error_set(err, ERROR_REFUSED,
                         "%.200s is not the directory that the sandbox was started on; it was replaced since",
                         layer->source);
    return 0;
}

/* --- one repository ------------------------------------------------------------------------- */

/* What of the owner's configuration says how to read the repository at all. */
static int read_format(struct repository *repository, struct error *err)
{
    autofree char *config = file_text(repository->own.base, "config", CONFIG_MAX);
    autofree char *format = config ? gitconfig_value(config, "extensions", "objectformat") : NULL;
    autofree char *storage = config ? gitconfig_value(config, "extensions", "refstorage") : NULL;
    autofree char *partial = config ? gitconfig_value(config, "extensions", "partialclone") : NULL;

    if (storage && strcasecmp(storage, "files") != 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "commits of %.200s cannot be brought home: it keeps its references as '%.20s', not as "
                         "files; use cove export --patch in a clone that does",
                         repository->path, storage);
    if (partial)
        return error_set(err, ERROR_UNSUPPORTED,
                         "commits of %.200s cannot be brought home: it is a partial clone, and what they stand "
                         "on is not all here",
                         repository->path);
    repository->digits = format && strcasecmp(format, "sha256") == 0 ? 64 : 40;
    return 0;
}

static bool is_git_directory(const struct merged *own)
{
    struct stat status;

    return faccessat(own->base, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(own->base, "objects", &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
           fstatat(own->base, "refs", &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* Adds the git directory at `path` of the layer, if it is one, and if the sandbox wrote to it. */
static int add(const struct merged *layer, const char *source, const char *path, const struct repository *what,
               struct repositories *out, struct error *err)
{
    struct merged owners = { .upper = -1, .base = layer->base, .marks = layer->marks };
    struct repository found = { .merged = MERGED_NONE, .own = MERGED_NONE };

    if (!merged_enter(&owners, path, &found.own) || !merged_enter(layer, path, &found.merged) ||
        found.merged.upper < 0 || !is_git_directory(&found.own)) {
        clear(&found);
        return 0;
    }
    found.path = *path ? text_format("%s/%s", source, path) : text_copy(source);
    found.submodule = what->submodule ? text_copy(what->submodule) : NULL;
    found.work = text_copy(what->work);
    found.head = text_copy(what->head);
    *array_add(out) = found;
    return read_format(&out->items[out->len - 1], err);
}

/* --- submodules ----------------------------------------------------------------------------- */

struct modules {
    const struct merged *layer;
    const char *source, *top; /* of the layer; the work tree of the superproject */
    struct repositories *out;
    struct error *err;
};

/* Where the owner has it checked out; its git directory if that is not known. */
static char *module_work(const struct merged *own, const char *path)
{
    autofree char *config = file_text(own->base, "config", CONFIG_MAX);
    autofree char *work = config ? gitconfig_value(config, "core", "worktree") : NULL;
    autoplace struct place place = PLACE_NONE;

    if (work && place_open(own->base, work, &place) == 0)
        return text_copy(place.path);
    return text_copy(path);
}

/* NOLINTNEXTLINE(misc-no-recursion): MODULE_DEPTH_MAX deep */
static int walk_modules(const struct modules *modules, const char *path, const char *name, unsigned depth)
{
    struct merged owners = { .upper = -1, .base = modules->layer->base, .marks = modules->layer->marks };
    automerged struct merged own = MERGED_NONE;
    autostrings struct strings names = STRINGS_NONE;
    bool is_one;

    if (depth > MODULE_DEPTH_MAX || modules->out->len > MODULES_MAX || !merged_enter(&owners, path, &own))
        return 0;
    is_one = *name && is_git_directory(&own);
    if (is_one) {
        autofree char *full = text_format("%s/%s", modules->source, path);
        autofree char *work = module_work(&own, full), *shown = text_copy(name), *head = text_copy("");
        struct repository what = { .submodule = shown, .work = work, .head = head };
        autofree char *nested = text_format("%s/modules", path);

        if (add(modules->layer, modules->source, path, &what, modules->out, modules->err) < 0)
            return -1;
        return walk_modules(modules, nested, name, depth + 1);
    }
    if (!merged_list(&own, MODULE_NAMES_MAX, &names))
        return 0;
    for (size_t i = 0; i < names.len; i++) {
        autofree char *below = text_format("%s/%s", path, names.items[i]);
        autofree char *longer = text_format("%s%s%s", name, *name ? "/" : "", names.items[i]);

        if (walk_modules(modules, below, longer, depth + 1) < 0)
            return -1;
    }
    return 0;
}

static int add_modules(const struct merged *layer, const char *source, const char *git, const char *top,
                       struct repositories *out, struct error *err)
{
    struct modules modules = { layer, source, top, out, err };
    autofree char *path = text_format("%s%smodules", git, *git ? "/" : "");

    return walk_modules(&modules, path, "", 0);
}

/* --- the workspace's ------------------------------------------------------------------------ */

static int add_all(const struct merged *layer, const struct record_layer *about, const char *git,
                   const struct repository *what, struct repositories *out, struct error *err)
{
    if (add(layer, about->source, git, what, out, err) < 0)
        return -1;
    return add_modules(layer, about->source, git, what->work, out, err);
}

/* The repository of a linked work tree lies in a layer of its own, or inside the workspace. */
static int add_linked(int dir, const struct record *record, const struct record_layer *workspace,
                      const struct merged *tree, const struct gitlink *link, struct repositories *out,
                      struct error *err)
{
    const struct record_layer *git = repository_layer(record);
    const char *common = link->common.path;
    autofree char *head = text_copy(link->directory + strlen(common) + 1);
    struct repository what = { .work = workspace->source, .head = head };
    automerged struct merged layer = MERGED_NONE;

    if (path_within(common, workspace->source) && strlen(common) > strlen(workspace->source))
        return add_all(tree, workspace, common + strlen(workspace->source) + 1, &what, out, err);
    if (!git || strcmp(git->source, common) != 0)
        return 0;
    if (repository_open_layer(dir, record, git, &layer, err) < 0)
        return -1;
    return add_all(&layer, git, "", &what, out, err);
}

int repositories_find(int dir, const struct record *record, struct repositories *out, struct error *err)
{
    const struct record_layer *workspace = layer_for(record, TREE_WHY_WORKSPACE);
    automerged struct merged tree = MERGED_NONE;
    autogitlink struct gitlink link = GITLINK_NONE;
    autoplace struct place place = PLACE_NONE;

    if (!workspace)
        return 0;
    if (repository_open_layer(dir, record, workspace, &tree, err) < 0)
        return -1;
    if (place_open(tree.base, ".", &place) < 0)
        return error_sys(err, "look at %.200s", workspace->source);
    gitlink_read(&place, &link);
    if (link.kind == GIT_WORKTREE)
        return add_linked(dir, record, workspace, &tree, &link, out, err);

    autofree char *head = text_copy("");
    struct repository what = { .work = workspace->source, .head = head };

    return link.kind == GIT_TOP ? add_all(&tree, workspace, ".git", &what, out, err) : 0;
}
