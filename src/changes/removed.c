#include "changes/scan.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

/* What the base has below a directory that was removed or replaced.  This is the owner's tree, and
 * nothing but the part of it that is gone is walked. */
struct hunt {
    struct scan *scan;
    const struct removal *removal;
    struct jobs left;
    bool counting; /* too much to list */
    uint64_t count;
    unsigned flags; /* of all, for the one change that stands for them */
};

static void flag(struct hunt *hunt, ssize_t change, unsigned flags)
{
    hunt->flags |= flags;
    if (change != NO_CHANGE && !hunt->counting)
        hunt->scan->out->items[change].flags |= flags;
}

/* What is in there and gone is not known.  A directory that was only replaced has no change of its own. */
static void flag_closed(struct hunt *hunt, const struct job *job)
{
    ssize_t change = job->change;

    if (change == NO_CHANGE && !hunt->counting)
        change = (ssize_t)scan_add(hunt->scan, job->path, CHANGE_CHANGED);
    flag(hunt, change, FLAG_UNREADABLE);
}

/* Owns `job`, which is the entry itself. */
static void take(struct hunt *hunt, int dir, const char *name, const struct stat *old, struct job *job)
{
    struct scan *scan = hunt->scan;
    bool hidden = scan_hidden(scan, job->path);
    unsigned flags = hidden ? FLAG_HIDDEN : 0;

    hunt->count++;
    if (!S_ISDIR(old->st_mode) && scan_is_later(scan, old))
        flags |= FLAG_BASE_CHANGED;
    if (!hunt->counting && scan->listed >= LISTED_MAX)
        hunt->counting = true;
    if (!hunt->counting) {
        scan->listed++;
        job->change = (ssize_t)scan_add(scan, job->path, CHANGE_REMOVED);
        scan_fill(&scan->out->items[job->change].old, old, dir, name, 0);
    }
    if (S_ISDIR(old->st_mode) && strlen(job->path) >= PATH_MAX)
        flags |= FLAG_UNREADABLE; /* too deep */
    flag(hunt, job->change, flags);
    /* What is hidden is the owner's alone: its inside is not told. */
    if (S_ISDIR(old->st_mode) && !hidden && !(flags & FLAG_UNREADABLE))
        *array_add(&hunt->left) = *job;
    else
        job_free(job);
}

static void look_at(struct hunt *hunt, const struct job *parent, int dir, const char *name)
{
    struct scan *scan = hunt->scan;
    struct stat old;

    scan->out->looked_at++;
    if (fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
        if (scan_is_closed(scan, errno))
            flag_closed(hunt, parent);
        return;
    }
    if (S_ISCHR(old.st_mode) && old.st_rdev == makedev(0, 0))
        return;

    struct job job = { .path = scan_join(parent->path, name), .change = NO_CHANGE };

    take(hunt, dir, name, &old, &job);
}

static void look_into(struct hunt *hunt, const struct job *job, const struct entries *stays)
{
    autoclose int dir = scan_open(hunt->scan->source->base, job->path, O_PATH | O_DIRECTORY);
    autoentries struct entries entries = { 0 };
    bool cut = false;

    if (dir < 0 || scan_list(dir, COUNTED_MAX - hunt->count, &cut, &entries) < 0) {
        if (scan_is_closed(hunt->scan, errno))
            flag_closed(hunt, job);
        return;
    }
    for (size_t i = 0; i < entries.len; i++) {
        const struct entry *kept = stays ? entries_find(stays, entries.items[i].name) : NULL;

        if (!kept || kept->whiteout)
            look_at(hunt, job, dir, entries.items[i].name);
    }
}

/* Instead of the list, one change. */
static void sum_up(struct hunt *hunt, size_t mark)
{
    struct scan *scan = hunt->scan;
    const struct removal *removal = hunt->removal;
    ssize_t top = removal->top;

    while (scan->out->len > mark)
        change_free(&scan->out->items[--scan->out->len]);
    if (top == NO_CHANGE) {
        top = (ssize_t)scan_add(scan, removal->path, CHANGE_REMOVED);
        scan->out->items[top].old.type = scan->out->items[top].new.type = SIDE_DIRECTORY;
    }
    scan->out->items[top].count = hunt->count;
    scan->out->items[top].flags |= hunt->flags;
}

void removed_below(struct scan *scan, const struct removal *removal)
{
    struct hunt hunt = { .scan = scan, .removal = removal };
    size_t mark = scan->out->len;
    uint64_t listed = scan->listed;
    bool first = true;

    *array_add(&hunt.left) = (struct job){ .path = text_copy(removal->path), .change = removal->top };
    while (hunt.left.len) {
        struct job job = hunt.left.items[--hunt.left.len];

        if (hunt.count < COUNTED_MAX)
            look_into(&hunt, &job, first ? removal->stays : NULL);
        first = false;
        job_free(&job);
    }
    free(hunt.left.items);
    if (hunt.counting && hunt.count) {
        sum_up(&hunt, mark);
        scan->listed = listed;
    }
}
