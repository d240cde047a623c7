#include "changes/scan.h"

#include <stdlib.h>

static int by_inode(const void *a, const void *b)
{
    const struct link *one = a, *other = b;

    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    return one->inode < other->inode ? -1 : one->inode > other->inode;
}

void links_note(struct scan *scan, const struct stat *status, ssize_t change)
{
    if (scan->source->linked && S_ISREG(status->st_mode) && status->st_nlink > 1)
        *array_add(&scan->links) = (struct link){ status->st_dev, status->st_ino, change };
}

/* Names of one file within the tree, however many it has elsewhere. */
void links_flag(struct scan *scan)
{
    struct link *items = scan->links.items;
    size_t count = scan->links.len;

    if (count)
        qsort(items, count, sizeof *items, by_inode);
    for (size_t i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && by_inode(&items[i], &items[i + run]) == 0; run++)
            continue;
        for (size_t j = i; run > 1 && j < i + run; j++)
            if (items[j].change != NO_CHANGE)
                scan->out->items[items[j].change].flags |= FLAG_HARDLINK;
    }
}
