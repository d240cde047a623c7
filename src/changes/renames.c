#include "base/own.h"
#include "changes/place.h"
#include "changes/scan.h"

#include <fcntl.h>
#include <string.h>

/* Every comparison costs at least this of what may be read, so that there are not too many. */
enum { COMPARISON_COST = 4096 };

struct candidates {
    size_t *items; /* indices of changes, by size and then by path */
    size_t len, cap;
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int by_size(const void *a, const void *b, void *changes)
{
    const struct change *items = ((const struct changes *)changes)->items;
    const struct change *one = &items[*(const size_t *)a], *other = &items[*(const size_t *)b];
    uint64_t size = one->kind == CHANGE_REMOVED ? one->old.size : one->new.size;
    uint64_t beside = other->kind == CHANGE_REMOVED ? other->old.size : other->new.size;

    return size != beside ? (size < beside ? -1 : 1) : strcmp(one->path, other->path);
}

/* Files only, and none that is empty: those are all alike.  What is hidden is compared with nothing,
 * or it would tell what is in it; and what an apply left is nobody's origin. */
static void choose(struct changes *changes, enum change_kind kind, struct candidates *out)
{
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        const struct side *side = kind == CHANGE_REMOVED ? &change->old : &change->new;

        if (change->kind == kind && side->type == SIDE_FILE && side->size && !(change->flags & FLAG_HIDDEN) &&
            !leftover_is(name_of(change->path)))
            *array_add(out) = i;
    }
    if (out->len)
        qsort_r(out->items, out->len, sizeof *out->items, by_size, changes);
}

/* Drops those that have no partner of their size, and what is beyond the bound. */
static void keep_partners(const struct changes *changes, struct candidates *removed, struct candidates *added)
{
    size_t r = 0, a = 0, removed_kept = 0, added_kept = 0;

    while (r < removed->len && a < added->len) {
        uint64_t size = changes->items[removed->items[r]].old.size;
        uint64_t beside = changes->items[added->items[a]].new.size;

        if (size < beside) {
            r++;
        } else if (size > beside) {
            a++;
        } else {
            for (; r < removed->len && changes->items[removed->items[r]].old.size == size; r++)
                removed->items[removed_kept++] = removed->items[r];
            for (; a < added->len && changes->items[added->items[a]].new.size == size; a++)
                added->items[added_kept++] = added->items[a];
        }
    }
    removed->len = removed_kept < CANDIDATES_MAX ? removed_kept : CANDIDATES_MAX;
    added->len = added_kept < CANDIDATES_MAX ? added_kept : CANDIDATES_MAX;
}

static bool is_same(struct scan *scan, const struct change *removed, const struct change *added,
                    uint64_t *budget)
{
    if (*budget < COMPARISON_COST)
        return false;
    *budget -= COMPARISON_COST;

    autoclose int old = scan_open_file(scan->source->base, removed->path);
    autoclose int new = scan_open_file(scan->source->upper, added->path);

    return old >= 0 && new >= 0 && content_equal(scan, old, new, budget) > 0;
}

static void join(struct change *removed, struct change *added)
{
    added->kind = CHANGE_RENAMED;
    added->from = text_copy(removed->path);
    added->flags |= removed->flags & FLAG_BASE_CHANGED;
    added->old = removed->old;
    removed->old.target = NULL;
    change_free(removed);
    *removed = (struct change){ 0 };
}

/* Finds a partner for `added`; `alike`: one with the same name in another directory. */
static bool find_partner(struct scan *scan, struct change *added, const struct candidates *removed, bool alike,
                         uint64_t *budget)
{
    for (size_t i = 0; i < removed->len; i++) {
        struct change *old = &scan->out->items[removed->items[i]];

        if (!old->path || old->old.size != added->new.size ||
            alike != (strcmp(name_of(old->path), name_of(added->path)) == 0))
            continue;
        if (is_same(scan, old, added, budget)) {
            join(old, added);
            return true;
        }
    }
    return false;
}

void renames_pair(struct scan *scan)
{
    struct candidates removed = { 0 }, added = { 0 };
    uint64_t budget = RENAME_BYTES_MAX;

    choose(scan->out, CHANGE_REMOVED, &removed);
    choose(scan->out, CHANGE_ADDED, &added);
    keep_partners(scan->out, &removed, &added);
    for (int alike = 1; alike >= 0; alike--)
        for (size_t i = 0; i < added.len && budget >= COMPARISON_COST; i++) {
            struct change *change = &scan->out->items[added.items[i]];

            if (change->kind == CHANGE_ADDED)
                find_partner(scan, change, &removed, alike, &budget);
        }
    free(removed.items);
    free(added.items);
}

/* --- files whose original is gone -------------------------------------------------------------- */

struct origins {
    struct origin *items;
    size_t len, cap;
};

static int by_origin(const void *a, const void *b)
{
    const struct origin *one = a, *other = b;

    if (one->type != other->type || one->len != other->len)
        return one->type != other->type ? one->type - other->type : (int)one->len - (int)other->len;
    return memcmp(one->bytes, other->bytes, one->len);
}

/* What overlayfs would note as the origin of a copy of this file of the base. */
static bool handle_of(const struct scan *scan, const char *path, struct origin *out)
{
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + ORIGIN_MAX];
    } found = { .handle.handle_bytes = ORIGIN_MAX };
    autoclose int fd = scan_open(scan->source->base, path, O_PATH);
    int mount = 0;

    if (fd < 0 || name_to_handle_at(fd, "", &found.handle, &mount, AT_EMPTY_PATH) < 0)
        return false;
    out->type = found.handle.handle_type;
    out->len = found.handle.handle_bytes;
    memcpy(out->bytes, found.room + offsetof(struct file_handle, f_handle), out->len);
    return true;
}

/* A file that was renamed and then written to is a copy without its original beside it too.  It is told
 * from one that the owner has removed by its origin: that file is still there, under a name at which
 * the sandbox changed something.  Where the origin is not known, rather too many are flagged. */
void orphans_flag(struct scan *scan)
{
    struct origins there = { 0 };
    size_t asked = 0;

    for (size_t i = 0; scan->orphans.len && i < scan->out->len && asked < ORPHANS_MAX; i++) {
        const struct change *change = &scan->out->items[i];

        if (!change->path || change->old.type != SIDE_FILE)
            continue;
        asked++;
        if (!handle_of(scan, change->from ? change->from : change->path, array_add(&there)))
            there.len--;
    }
    if (there.len)
        qsort(there.items, there.len, sizeof *there.items, by_origin);
    for (size_t i = 0; i < scan->orphans.len; i++) {
        const struct orphan *orphan = &scan->orphans.items[i];
        struct change *change = &scan->out->items[orphan->change];

        if (change->kind == CHANGE_ADDED && !(change->flags & FLAG_HARDLINK) &&
            !(there.len && bsearch(&orphan->origin, there.items, there.len, sizeof *there.items, by_origin)))
            change->flags |= FLAG_BASE_CHANGED;
    }
    free(there.items);
}
