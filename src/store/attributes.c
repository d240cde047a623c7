#include "store/attributes.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NAMES_MAX = 64 << 10, VALUE_MAX = 64 << 10 }; /* the kernel's own bounds */

static bool is_mark(const char *name)
{
    return text_starts(name, "user.overlay.") || text_starts(name, "trusted.overlay.");
}

/* What the owner may not read or set is not ours to pass on either. */
static bool may_be_left(int number)
{
    return number == EPERM || number == EACCES || number == ENODATA || number == ENOTSUP;
}

static int copy_one(const char *from, const char *to, const char *name)
{
    autofree char *value = memory_resize(NULL, VALUE_MAX);
    ssize_t len = getxattr(from, name, value, VALUE_MAX);

    if (len < 0 || setxattr(to, name, value, (size_t)len, 0) < 0)
        return may_be_left(errno) ? 0 : -1;
    return 0;
}

static int copy_xattrs(const char *from, const char *to, bool marks)
{
    char few[512];
    ssize_t len = listxattr(from, few, sizeof few);
    autofree char *many = len < 0 && errno == ERANGE ? memory_zero(NAMES_MAX) : NULL;
    const char *names = many ? many : few;

    if (many)
        len = listxattr(from, many, NAMES_MAX);
    if (len <= 0)
        return len == 0 || may_be_left(errno) ? 0 : -1;
    for (const char *name = names; name < names + len; name += strlen(name) + 1)
        if ((marks || !is_mark(name)) && copy_one(from, to, name) < 0)
            return -1;
    return 0;
}

/* The times come last: each call before them would change one.  By handles, because the mode may close a
 * directory to us. */
int attributes_copy(int from, const char *from_name, int to, const char *to_name)
{
    autoclose int source = sys_open_beneath(from, from_name, O_PATH | O_DIRECTORY);
    autoclose int target = sys_open_beneath(to, to_name, O_PATH | O_DIRECTORY);
    struct stat status;

    if (source < 0 || target < 0 || fstat(source, &status) < 0)
        return -1;

    struct fd_path its = sys_fd_path(source), ours = sys_fd_path(target);
    struct timespec times[] = { status.st_atim, status.st_mtim };

    if (chown(ours.text, status.st_uid, status.st_gid) < 0 && errno != EPERM && errno != EINVAL)
        return -1;
    if (copy_xattrs(its.text, ours.text, false) < 0 || chmod(ours.text, status.st_mode & 07777) < 0)
        return -1;
    return utimensat(AT_FDCWD, ours.text, times, 0);
}

/* An owner that it has already need not be given to it; a link has no mode. */
int attributes_copy_all(int from, int to, const struct stat *status)
{
    struct fd_path its = sys_fd_path(from), ours = sys_fd_path(to);
    struct timespec times[] = { status->st_atim, status->st_mtim };
    struct stat now;

    if (fstat(to, &now) < 0)
        return -1;
    if ((now.st_uid != status->st_uid || now.st_gid != status->st_gid) &&
        chown(ours.text, status->st_uid, status->st_gid) < 0 && errno != EPERM && errno != EINVAL)
        return -1;
    if (copy_xattrs(its.text, ours.text, true) < 0)
        return -1;
    if (!S_ISLNK(status->st_mode) && chmod(ours.text, status->st_mode & 07777) < 0)
        return -1;
    return utimensat(AT_FDCWD, ours.text, times, 0);
}

/* An attribute may change the mode, and so may another owner: then it is given in any case. */
int attributes_copy_file(int from, int to, const struct stat *status, struct stat *made)
{
    enum { MODE = 07777, SPECIAL = 06000 };
    struct timespec times[] = { status->st_atim, status->st_mtim };

    if (fstat(to, made) < 0)
        return -1;

    bool given = made->st_uid == status->st_uid && made->st_gid == status->st_gid;
    bool plain = flistxattr(from, NULL, 0) == 0;

    if (!given && fchown(to, status->st_uid, status->st_gid) < 0 && errno != EPERM && errno != EINVAL)
        return -1;
    if (!plain && copy_xattrs(sys_fd_path(from).text, sys_fd_path(to).text, true) < 0)
        return -1;
    if ((!plain || (made->st_mode & MODE) != (status->st_mode & MODE) || status->st_mode & SPECIAL) &&
        fchmod(to, status->st_mode & MODE) < 0)
        return -1;
    return futimens(to, times);
}
