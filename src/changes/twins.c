#include "changes/scan.h"

#include "base/own.h"
#include "changes/names.h"

#include <fcntl.h>
#include <string.h>

/* One name of the upper, by what is left of it when everything that can be overlooked is. */
struct key {
    char *folded;
    const struct entry *entry;
};

struct keys {
    struct key *items;
    size_t len, cap;
};

static int by_folded(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->folded, ((const struct key *)b)->folded);
}

static void flag_fresh(struct scan *scan, const struct key *key)
{
    if (key->entry->fresh && key->entry->change != NO_CHANGE)
        scan->out->items[key->entry->change].flags |= FLAG_TWIN;
}

/* Those of one folded name stand together. */
static void flag_among(struct scan *scan, const struct keys *keys)
{
    for (size_t i = 1; i < keys->len; i++)
        if (by_folded(&keys->items[i - 1], &keys->items[i]) == 0) {
            flag_fresh(scan, &keys->items[i - 1]);
            flag_fresh(scan, &keys->items[i]);
        }
}

static void flag_by(struct scan *scan, const struct keys *keys, const char *name)
{
    struct key key = { .folded = name_fold(name) };
    const struct key *found = bsearch(&key, keys->items, keys->len, sizeof key, by_folded), *at = found;

    for (; at && at >= keys->items && by_folded(at, &key) == 0; at--)
        flag_fresh(scan, at);
    for (at = found; at && at < keys->items + keys->len && by_folded(at, &key) == 0; at++)
        flag_fresh(scan, at);
    free(key.folded);
}

/* This alone could cost more than the changes, so there is a bound on names for the whole scan. */
static void flag_beside_base(struct scan *scan, int base, const struct entries *entries,
                             const struct keys *keys)
{
    autoentries struct entries names = { 0 };
    bool cut = false;

    if (scan_list(base, TWIN_NAMES_MAX - scan->twin_names, &cut, &names) < 0)
        cut = true;
    scan->twin_names += names.len;
    scan->out->looked_at += names.len;
    scan->out->twins_unsure |= cut;
    for (size_t i = 0; i < names.len; i++)
        if (!entries_find(entries, names.items[i].name)) /* else it is gone, or was looked at above */
            flag_by(scan, keys, names.items[i].name);
}

void twins_flag(struct scan *scan, const struct job *job, int base, const struct entries *entries)
{
    struct keys keys = { 0 };
    bool any = false;

    for (size_t i = 0; i < entries->len && !any; i++)
        any = entries->items[i].fresh && entries->items[i].change != NO_CHANGE;
    for (size_t i = 0; any && i < entries->len; i++)
        if (!entries->items[i].whiteout)
            *array_add(&keys) =
                (struct key){ .folded = name_fold(entries->items[i].name), .entry = &entries->items[i] };
    if (keys.len) {
        qsort(keys.items, keys.len, sizeof *keys.items, by_folded);
        flag_among(scan, &keys);
        if (!job->opaque && base >= 0)
            flag_beside_base(scan, base, entries, &keys);
    }
    for (size_t i = 0; i < keys.len; i++)
        free(keys.items[i].folded);
    free(keys.items);
}
