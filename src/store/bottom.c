#include "store/bottom.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int bottom_begin(const struct stack_place *place, char lid[ID_LENGTH + 1], struct error *err)
{
    struct layer_info layer = { .ids = place->ids, .copy = true };

    snprintf(layer.sandbox, sizeof layer.sandbox, "%s", place->id);

    int fd = layers_begin(place->layers, &layer, place->id, err);

    if (fd >= 0)
        memcpy(lid, layer.id, sizeof layer.id);
    return fd;
}

int bottom_finish(const struct stack_place *place, const char *lid, struct error *err)
{
    return layers_finish(place->layers, lid, err) < 0 ? -1 : stack_set_top(place->sandbox, lid, err);
}

int bottom_find(int layers, const char *top, char lid[ID_LENGTH + 1], struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;
    autolayerinfo struct layer_info last = LAYER_INFO_NONE;

    *lid = '\0';
    if (layers_chain(layers, top, &chain, err) < 0)
        return -1;
    if (!chain.len)
        return 0;
    if (layers_read(layers, chain.items[chain.len - 1], &last, err) < 0)
        return -1;
    if (last.copy)
        memcpy(lid, last.id, sizeof last.id);
    return 0;
}

static bool has_own(int sandbox)
{
    int again = openat(sandbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (entry->d_name[0] == 'b' && entry->d_name[1] >= '0' && entry->d_name[1] <= '9')
            return true;
    return false;
}

char *bottom_place(int sandbox, int layers, const char *id, struct error *err)
{
    char top[ID_LENGTH + 1], lid[ID_LENGTH + 1];

    if (has_own(sandbox))
        return text_format("sandboxes/%s", id);
    if (stack_top(sandbox, top, err) < 0 || bottom_find(layers, top, lid, err) < 0)
        return NULL;
    if (*lid)
        return text_format("layers/%s", lid);
    error_set(err, ERROR_MISSING, "the copy of the workspace is not there any more");
    return NULL;
}

int bottom_open(int sandbox, uint64_t number, struct error *err)
{
    autofree char *own = text_format("b%llu", (unsigned long long)number), *path = NULL;
    autoclose int parent = -1, layers = -1;
    char top[ID_LENGTH + 1], lid[ID_LENGTH + 1];
    int fd = openat(sandbox, own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? error_sys(err, "open the copy of the workspace") : fd;
    parent = openat(sandbox, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    layers = layers_beside(parent, err);
    if (layers < 0 || stack_top(sandbox, top, err) < 0 || bottom_find(layers, top, lid, err) < 0)
        return -1;
    path = text_format("%s/%s", lid, own);
    fd = *lid ? sys_open_beneath(layers, path, O_RDONLY | O_DIRECTORY) : -1;
    return fd < 0 ? error_sys(err, "open the copy of the workspace") : fd;
}
