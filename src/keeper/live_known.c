#include "keeper/live_known.h"

#include "base/array.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { PATHS_MAX = 1 << 17, BYTES_MAX = 32 << 20 };

void known_free(struct known_paths *known)
{
    for (size_t i = 0; i < known->len; i++)
        free(known->items[i].path);
    free(known->items);
    map_free(&known->places);
    *known = KNOWN_PATHS_NONE;
}

struct known *known_find(const struct known_paths *known, const char *path)
{
    uint64_t place = map_get(&known->places, path);

    return place ? &known->items[place - 1] : NULL;
}

/* Of a name that came and went nothing has to be known. */
static void forget_gone(struct known_paths *known)
{
    size_t kept = 0;

    map_free(&known->places);
    known->places = MAP_NONE;
    for (size_t i = 0; i < known->len; i++) {
        struct known *item = &known->items[i];

        if (item->state == KNOWN_GONE) {
            known->bytes -= strlen(item->path);
            free(item->path);
            continue;
        }
        known->items[kept++] = *item;
        map_add(&known->places, item->path, kept);
    }
    known->len = kept;
}

static bool has_room(const struct known_paths *known, size_t paths, size_t bytes)
{
    return known->len < paths && known->bytes < bytes;
}

struct known *known_add(struct known_paths *known, const char *path)
{
    struct known *found = known_find(known, path);
    size_t len = strlen(path);

    if (found)
        return found;
    if (!known->full && !has_room(known, PATHS_MAX, BYTES_MAX)) {
        forget_gone(known);
        /* Then for good: or each of many new names would look through all. */
        known->full = !has_room(known, PATHS_MAX - PATHS_MAX / 4, BYTES_MAX - BYTES_MAX / 4);
    }
    if (known->full)
        return NULL;
    found = array_add(known);
    found->path = text_copy(path);
    found->state = KNOWN_GONE;
    known->bytes += len;
    map_add(&known->places, path, known->len);
    return found;
}

struct known_mark known_mark_of(const struct stat *status)
{
    return (struct known_mark){ status->st_ino, status->st_size, status->st_mtim, status->st_ctim };
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool known_is_marked(const struct known_mark *a, const struct known_mark *b)
{
    return a->inode == b->inode && a->size == b->size && is_same_time(a->mtime, b->mtime) &&
           is_same_time(a->ctime, b->ctime);
}
