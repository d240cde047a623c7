#include "store/layers.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "store/layerfile.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 10 };

int layers_open(const char *state, struct error *err)
{
    autoclose int base = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (base < 0)
        return error_sys(err, "open the state directory %s", state);
    return store_open_private(base, "layers", "layers in the state directory", err);
}

int layers_beside(int sandboxes, struct error *err)
{
    int fd = openat(sandboxes, "../layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERROR_MISSING, "there are no layers");
    return fd < 0 ? error_sys(err, "open the layers") : fd;
}

/* Of a file description of its own: who shares one shares its lock. */
int layers_keep_out_sweeps(int layers, struct error *err)
{
    autoclose int own = openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (own < 0 || flock(own, LOCK_SH) < 0)
        return error_sys(err, "lock the directory of layers");
    return steal_fd(&own);
}

/* --- references --- */

static int missing(const char *lid, struct error *err)
{
    return error_set(err, ERROR_MISSING, "there is no layer %s any more", lid);
}

int layers_hold(int layers, const char *lid, const char *holder, struct error *err)
{
    autofree char *path = text_format("%s/refs/%s", lid, holder);

    if (mknodat(layers, path, S_IFREG | 0600, 0) == 0 || errno == EEXIST)
        return 0;
    return errno == ENOENT ? missing(lid, err) : error_sys(err, "hold the layer %s", lid);
}

/* Gives 1 if that was the last one.  A layer that is already without is being removed by somebody else. */
static int let_go(int layers, const char *lid, const char *holder, struct error *err)
{
    autofree char *refs = text_format("%s/refs", lid), *path = text_format("%s/%s", refs, holder);

    if (unlinkat(layers, path, 0) < 0 && errno != ENOENT)
        return error_sys(err, "let go of the layer %s", lid);
    if (unlinkat(layers, refs, AT_REMOVEDIR) == 0)
        return 1;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT)
        return 0;
    return error_sys(err, "let go of the layer %s", lid);
}

/* It loses its name first, at once and whole; then its parent is let go of.  If we die in between, the parent
 * is held by somebody who does not exist, which the sweep sees.  The sweep may also be removing the same just
 * now: then one of us misses what the other has removed; or who measures it may be writing that down, and a
 * file comes that we have not seen.  What is left then has no name any more, and is the next sweep's. */
static int remove_layer(int layers, const char *lid, struct error *err)
{
    autofree char *gone = text_format(LAYERS_GONE "%s", lid);

    if (renameat(layers, lid, layers, gone) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "remove the layer %s", lid);
    return store_remove_tree(layers, gone, err) == 0 || err->sys_errno == ENOENT || err->sys_errno == ENOTEMPTY
               ? 0
               : -1;
}

/* Not by recursion: a chain may be long. */
int layers_release(int layers, const char *lid, const char *holder, struct error *err)
{
    char now[ID_LENGTH + 1], by[256];
    int last;

    if (strlen(lid) != ID_LENGTH || strlen(holder) >= sizeof by)
        return error_set(err, ERROR_INVALID, "%s is no layer", lid);
    snprintf(now, sizeof now, "%s", lid);
    snprintf(by, sizeof by, "%s", holder);
    while ((last = let_go(layers, now, by, err)) > 0) {
        autolayerinfo struct layer_info layer = LAYER_INFO_NONE;
        struct error unread;
        bool known = layers_read(layers, now, &layer, &unread) == 0;

        if (remove_layer(layers, now, err) < 0)
            return -1;
        if (!known || !*layer.parent)
            return 0;
        memcpy(by, now, sizeof now);
        memcpy(now, layer.parent, sizeof now);
    }
    return last;
}

int layers_list(int layers, struct strings *out, struct error *err)
{
    int again = openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries)
        return error_sys(err, "list the layers");
    for (const struct dirent *entry; (entry = sys_next_entry(entries));)
        if (store_is_id(entry->d_name))
            strings_add(out, entry->d_name);
    return errno ? error_sys(err, "list the layers") : 0;
}

int layers_release_all(int layers, const char *holder, struct error *err)
{
    autostrings struct strings all = STRINGS_NONE;
    int result = layers_list(layers, &all, err);

    for (size_t i = 0; result == 0 && i < all.len; i++) {
        autofree char *path = text_format("%s/refs/%s", all.items[i], holder);

        if (faccessat(layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            result = layers_release(layers, all.items[i], holder, err);
    }
    return result;
}

/* --- files --- */

int layers_read(int layers, const char *lid, struct layer_info *out, struct error *err)
{
    autofree char *path = text_format("%s/" LAYER_FILE, lid), *shown = text_format("layers/%s", path);
    autofree char *bytes = store_is_id(lid) ? file_text(layers, path, FILE_MAX) : NULL;

    *out = LAYER_INFO_NONE;
    if (!bytes && (!store_is_id(lid) || faccessat(layers, lid, F_OK, AT_SYMLINK_NOFOLLOW) < 0))
        return missing(lid, err);
    if (!bytes)
        return error_set(err, ERROR_INVALID, "%s cannot be read", shown);
    if (layerfile_read(bytes, strlen(bytes), shown, out, err) < 0)
        return -1;
    memcpy(out->id, lid, sizeof out->id);
    return 0;
}

static int write_file(int dir, const char *name, const struct layer_info *layer)
{
    autotext struct text json = TEXT_NONE;
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    layerfile_write(layer, &json);
    errno = ENOSPC; /* what a short write means */
    return fd >= 0 && write(fd, json.data, json.len) == (ssize_t)json.len ? 0 : -1;
}

int layers_write(int layers, const struct layer_info *layer, struct error *err)
{
    autoclose int dir = openat(layers, layer->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 && errno == ENOENT)
        return missing(layer->id, err);
    if (dir < 0 || write_file(dir, LAYER_FILE ".new", layer) < 0 ||
        renameat(dir, LAYER_FILE ".new", dir, LAYER_FILE) < 0)
        return error_sys(err, "write about the layer %s", layer->id);
    return 0;
}

int layers_chain(int layers, const char *top, struct strings *out, struct error *err)
{
    char now[ID_LENGTH + 1] = "";

    if (*top && !store_is_id(top))
        return error_set(err, ERROR_INVALID, "%s is no layer", top);
    memcpy(now, top, strlen(top) + 1);
    for (size_t depth = 0; *now; depth++) {
        autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

        if (depth == LAYERS_DEPTH_MAX)
            return error_set(err, ERROR_INVALID, "the layers below %s are more than %d", top, LAYERS_DEPTH_MAX);
        if (layers_read(layers, now, &layer, err) < 0)
            return -1;
        strings_add(out, now);
        memcpy(now, layer.parent, sizeof now);
    }
    return 0;
}

/* --- making --- */

int layers_begin(int layers, struct layer_info *layer, const char *holder, struct error *err)
{
    autofree char *name = NULL, *ref = text_format("refs/%s", holder);
    autoclose int dir = -1;

    if (store_new_id(layer->id, err) < 0)
        return -1;
    clock_gettime(CLOCK_REALTIME, &layer->made);
    name = text_format(LAYERS_NEW "%s", layer->id);
    if (mkdirat(layers, name, 0700) < 0)
        return error_sys(err, "make a layer");
    dir = openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || mkdirat(dir, "refs", 0700) < 0 || mknodat(dir, ref, S_IFREG | 0600, 0) < 0 ||
        write_file(dir, LAYER_FILE, layer) < 0)
        return error_sys(err, "make a layer");
    if (*layer->parent && layers_hold(layers, layer->parent, layer->id, err) < 0)
        return -1;
    return steal_fd(&dir);
}

void layers_abandon(int layers, const struct layer_info *layer)
{
    autofree char *name = text_format(LAYERS_NEW "%s", layer->id);
    struct error ignored;

    (void)store_remove_tree(layers, name, &ignored);
    if (*layer->parent)
        (void)layers_release(layers, layer->parent, layer->id, &ignored);
}

int layers_finish(int layers, const char *lid, struct error *err)
{
    autofree char *name = text_format(LAYERS_NEW "%s", lid);

    return renameat(layers, name, layers, lid) < 0 ? error_sys(err, "finish a layer") : 0;
}
