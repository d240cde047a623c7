#include "store/attributes.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
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

/* Names of extended attributes, one after the other; -1 and errno. */
struct names {
    char few[512];
    char *many;
    ssize_t len;
};

#define autonames __attribute__((cleanup(names_free)))

static void names_free(struct names *names)
{
    free(names->many);
}

static void list_names(const char *path, struct names *out)
{
    out->many = NULL;
    out->len = listxattr(path, out->few, sizeof out->few);
    if (out->len >= 0 || errno != ERANGE)
        return;
    out->many = memory_zero(NAMES_MAX);
    out->len = listxattr(path, out->many, NAMES_MAX);
}

/* The one after `last`; NULL: the first, and then: there is none. */
static const char *next_name(const struct names *names, const char *last)
{
    const char *first = names->many ? names->many : names->few;
    const char *next = last ? last + strlen(last) + 1 : first;

    return names->len > 0 && next < first + names->len ? next : NULL;
}

static int copy_xattrs(const char *from, const char *to, bool marks)
{
    autonames struct names names;

    list_names(from, &names);
    if (names.len < 0)
        return may_be_left(errno) ? 0 : -1;
    for (const char *name = NULL; (name = next_name(&names, name));)
        if ((marks || !is_mark(name)) && copy_one(from, to, name) < 0)
            return -1;
    return 0;
}

/* Those that whoever is inside can set; of the others we could bring none back. */
static bool is_of_files(const char *name)
{
    return (text_starts(name, "user.") && !is_mark(name)) || text_starts(name, "system.posix_acl_") ||
           strcmp(name, "security.capability") == 0;
}

/* Whether `other` has all that `one` has, with the same values. */
static bool has_all(const char *one, const char *other)
{
    autofree char *left = NULL, *right = NULL;
    autonames struct names names;

    list_names(one, &names);
    for (const char *name = NULL; (name = next_name(&names, name));) {
        if (!is_of_files(name))
            continue;
        left = left ? left : memory_resize(NULL, VALUE_MAX);
        right = right ? right : memory_resize(NULL, VALUE_MAX);

        ssize_t len = getxattr(one, name, left, VALUE_MAX);

        if (len >= 0 &&
            (getxattr(other, name, right, VALUE_MAX) != len || memcmp(left, right, (size_t)len) != 0))
            return false;
    }
    return true;
}

bool attributes_same_extended(int one, int other)
{
    struct fd_path left = sys_fd_path(one), right = sys_fd_path(other);

    return has_all(left.text, right.text) && has_all(right.text, left.text);
}

int attributes_drop_extended(int from, int to)
{
    struct fd_path its = sys_fd_path(from), ours = sys_fd_path(to);
    autonames struct names names;

    list_names(ours.text, &names);
    for (const char *name = NULL; (name = next_name(&names, name));)
        if (is_of_files(name) && getxattr(its.text, name, NULL, 0) < 0 && errno == ENODATA &&
            removexattr(ours.text, name) < 0 && !may_be_left(errno))
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
