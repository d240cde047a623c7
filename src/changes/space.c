#include "changes/space.h"

#include "base/array.h"
#include "base/error.h"
#include "changes/changes.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

uint64_t space_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

int space_check(int tree, uint64_t wanted, struct error *err)
{
    enum { KIB = 1024 };
    struct statvfs disk;

    if (fstatvfs(tree, &disk) < 0 || disk.f_blocks == 0)
        return 0;

    uint64_t free = (uint64_t)(geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize;

    if (wanted <= free)
        return 0;
    return error_set(err, ERROR_REFUSED,
                     "it takes %" PRIu64 " KiB, and there are %" PRIu64 " KiB left on the disk", wanted / KIB,
                     free / KIB);
}

/* Of a renamed file the old name goes as well. */
static bool takes_the_place_of_a_file(const struct change *change)
{
    return change->old.type == SIDE_FILE && (change->kind == CHANGE_CHANGED || change->kind == CHANGE_RENAMED);
}

uint64_t space_of_changes(const struct changes *changes, const bool *taken)
{
    uint64_t used = 0, freed = 0, most = 0;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        if (!taken[i] || change->new.type != SIDE_FILE || change->kind == CHANGE_MODE)
            continue;
        used = space_sum(used, change->new.stored);
        if (used > freed && used - freed > most)
            most = used - freed;
        if (takes_the_place_of_a_file(change))
            freed += change->old.stored;
    }
    return most;
}

/* ZFS and bcachefs have no name in the kernel's headers. */
bool space_is_shared(int upper, int tree)
{
    static const unsigned long sharing[] = { BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC, 0x2fc12fc1, 0xca451a4e };
    struct statfs from, to;

    if (fstatfs(upper, &from) < 0 || fstatfs(tree, &to) < 0 || from.f_type != to.f_type)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(sharing); i++)
        if ((unsigned long)to.f_type == sharing[i])
            return true;
    return false;
}
