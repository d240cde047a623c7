#include "store/layer.h"

#include "base/array.h"
#include "base/own.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* A level holds three descriptors.  What lies deeper is a change, whatever it is. */
enum { DEPTH_MAX = 64 };

static int open_below(int dir, const char *name)
{
    return sys_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

/* A stream of its own on `fd`, which stays as it is. */
static DIR *list(int fd)
{
    autoclose int again = open_below(fd, ".");
    DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (entries)
        (void)steal_fd(&again);
    return entries;
}

/* The marks of a directory that hides the one below it, or stands for one of another name. */
static bool is_marked(int fd)
{
    static const char *const marks[] = { "user.overlay.opaque", "trusted.overlay.opaque",
                                         "user.overlay.redirect", "trusted.overlay.redirect" };

    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (fgetxattr(fd, marks[i], NULL, 0) >= 0 || (errno != ENODATA && errno != ENOTSUP))
            return true;
    return false;
}

static bool is_copy(int upper, int base)
{
    struct stat above, below;

    return fstat(upper, &above) == 0 && fstat(base, &below) == 0 && !is_marked(upper) &&
           (above.st_mode & 07777) == (below.st_mode & 07777);
}

static bool holds_copies_only(int upper, int base, unsigned depth)
{
    autoclosedir DIR *entries = depth < DEPTH_MAX ? list(upper) : NULL;

    if (!entries)
        return false;
    for (const struct dirent *entry; (entry = sys_next_entry(entries));) {
        autoclose int above = open_below(upper, entry->d_name), below = open_below(base, entry->d_name);

        if (above < 0 || below < 0 || !is_copy(above, below) || !holds_copies_only(above, below, depth + 1))
            return false;
    }
    return errno == 0;
}

bool layer_is_untouched(int upper, int base)
{
    return holds_copies_only(upper, base, 0);
}

static uint64_t space_below(int dir, unsigned depth)
{
    autoclosedir DIR *entries = depth < DEPTH_MAX ? list(dir) : NULL;
    uint64_t sum = 0;

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));) {
        struct stat status;

        if (fstatat(dir, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        sum += (uint64_t)status.st_blocks * 512;
        if (!S_ISDIR(status.st_mode))
            continue;

        autoclose int below = open_below(dir, entry->d_name);

        sum += below < 0 ? 0 : space_below(below, depth + 1);
    }
    return sum;
}

uint64_t layer_space(int dir)
{
    return space_below(dir, 0);
}
