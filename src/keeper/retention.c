/* What a checkpoint takes.  As long as the sandbox lies on a layer, that is its own files.  When its stack was
 * merged and it lies on the result, the parts are there for going back only: what of them is not linked
 * elsewhere counts from then on.  A copy of what was in use counts from the beginning, with what was copied for
 * it; what later ones share with it counts for the next one when it goes. */

#include "keeper/retention.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/states.h"
#include "sys/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct work {
    struct retention *retention;
    const struct stack_place *place;
    struct trace *trace;
    const struct strings *used;
};

void retention_free(struct retention *retention)
{
    free(retention->items);
    retention->items = NULL;
    retention->len = retention->cap = 0;
}

static bool has(const struct retention *retention, const char *layer)
{
    if (strcmp(layer, retention->first) == 0)
        return true;
    for (size_t i = 0; i < retention->len; i++)
        if (strcmp(retention->items[i].layer, layer) == 0)
            return true;
    return false;
}

void retention_add(struct retention *retention, const char *layer, uint64_t bytes)
{
    if (!*layer || has(retention, layer))
        return;

    struct retained *item = array_add(retention);

    snprintf(item->layer, sizeof item->layer, "%s", layer);
    item->bytes = bytes;
    item->counted = bytes > 0;
    retention->bytes += bytes;
}

void retention_begin(struct retention *retention, const struct states *states)
{
    if (states->named.len)
        snprintf(retention->first, sizeof retention->first, "%s", states->named.items[0]);
    for (size_t i = 0; i < states->named.len; i++)
        retention_add(retention, states->named.items[i], 0);
}

/* --- who needs it --- */

static bool is_used(const struct work *work, const char *layer)
{
    if (strcmp(layer, work->retention->first) == 0)
        return true;
    for (size_t i = 0; i < work->used->len; i++)
        if (strcmp(work->used->items[i], layer) == 0)
            return true;
    return false;
}

static bool is_layer(const struct stack_place *place, const char *id)
{
    autofree char *fresh = text_format(LAYERS_NEW "%s", id);

    return faccessat(place->layers, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
           faccessat(place->layers, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* By a snapshot or another sandbox.  What cannot be looked at is. */
static bool is_held(const struct stack_place *place, const char *layer)
{
    autofree char *path = text_format("%s/refs", layer);
    int fd = openat(place->layers, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclosedir DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (strcmp(entry->d_name, place->id) != 0 && !is_layer(place, entry->d_name))
            return true;
    return !entries;
}

/* --- letting go --- */

static uint64_t size_of(const struct stack_place *place, const char *layer)
{
    uint64_t bytes = 0, files;
    struct error ignored;

    (void)layers_size(place->layers, layer, &bytes, &files, &ignored);
    return bytes;
}

static void count_rest(const struct work *work)
{
    struct retention *retention = work->retention;

    for (size_t i = 0; i < retention->len; i++) {
        struct retained *item = &retention->items[i];

        if (item->counted || is_used(work, item->layer))
            continue;
        item->bytes = size_of(work->place, item->layer);
        item->counted = true;
        retention->bytes += item->bytes;
    }
}

static int drop(const struct work *work, size_t index, const char *why)
{
    struct retention *retention = work->retention;
    struct retained *item = &retention->items[index];
    uint64_t free_now = size_of(work->place, item->layer), shared;
    struct error ignored;

    if (states_write_dropped(work->trace, item->layer, why, &ignored) < 0)
        return -1;
    (void)layers_release(work->place->layers, item->layer, work->place->id, &ignored);
    shared = item->bytes > free_now ? item->bytes - free_now : 0;
    retention->bytes -= item->bytes;
    if (shared && index + 1 < retention->len && retention->items[index + 1].counted) {
        retention->items[index + 1].bytes += shared;
        retention->bytes += shared;
    }
    memmove(item, item + 1, (retention->len - index - 1) * sizeof *item);
    retention->len--;
    return 0;
}

/* The first `held` ones are somebody's, and do not count. */
static const char *too_much(const struct retention *retention, size_t held)
{
    if (retention->bounds.keep && retention->len - held > retention->bounds.keep)
        return "keep";
    return retention->bounds.space && retention->bytes > retention->bounds.space ? "space" : NULL;
}

/* Merged layers that it lies on no more, and whole ones that no line of the trace names.  Who needs one of them
 * holds it. */
static void drop_others(const struct work *work)
{
    autostrings struct strings all = STRINGS_NONE;
    struct error ignored;

    (void)layers_list(work->place->layers, &all, &ignored);
    for (size_t i = 0; i < all.len; i++) {
        autofree char *path = text_format("%s/refs/%s", all.items[i], work->place->id);

        if (faccessat(work->place->layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
            !has(work->retention, all.items[i]) && !is_used(work, all.items[i]))
            (void)layers_release(work->place->layers, all.items[i], work->place->id, &ignored);
    }
}

/* The newest one always stays. */
void retention_tend(struct retention *retention, const struct stack_place *place, struct trace *trace,
                    const struct strings *used)
{
    struct work work = { retention, place, trace, used };
    const char *why;
    size_t at = 0;
    bool dropped = false;

    if (retention->bounds.space)
        count_rest(&work);
    while ((why = too_much(retention, at)) && at + 1 < retention->len) {
        if (is_used(&work, retention->items[at].layer) || is_held(place, retention->items[at].layer))
            at++;
        else if (drop(&work, at, why) < 0)
            break;
        else
            dropped = true;
    }
    if (dropped || !retention->swept)
        drop_others(&work);
    retention->swept = true;
}
