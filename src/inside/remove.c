/* The way down is remembered as device and inode only, so that it can be checked on the way up: somebody may
 * move directories meanwhile.  On the way up the parent is read again, and what is empty by then goes. */

#include "inside/remove.h"

#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 << 10 };

struct place {
    dev_t device;
    ino_t inode;
};

static struct place way[DEPTH_MAX];

static int open_directory(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_at(int fd, const struct place *place)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_dev == place->device && status.st_ino == place->inode;
}

/* 0: it is gone; 1: it is a directory that still holds something. */
static int remove_name(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;

    int number = errno;

    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return 1;
    if (errno == ENOTDIR) /* it was a file after all, and it stays */
        errno = number;
    return -1;
}

/* Removes what is in the directory up to the first directory that is not empty, whose descriptor it gives in
 * *out; -1 there: nothing is left. */
static int remove_entries(int dir, int *out)
{
    autoclosedir DIR *entries = NULL;
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), left = 0;
    const struct dirent *entry;

    *out = -1;
    if (own < 0 || !(entries = fdopendir(own)))
        return -1;
    while (left == 0 && (errno = 0, entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        left = remove_name(dir, entry->d_name);
        if (left == 1 && (*out = open_directory(dir, entry->d_name)) < 0)
            return -1;
    }
    return left < 0 || (!entry && errno) ? -1 : 0;
}

static int go_down(int *here, int next, size_t *depth, dev_t device)
{
    struct stat status;

    close(*here);
    *here = next;
    if (fstat(next, &status) < 0)
        return -1;
    errno = status.st_dev != device ? EXDEV : ENAMETOOLONG;
    if (status.st_dev != device || *depth == DEPTH_MAX)
        return -1;
    way[(*depth)++] = (struct place){ status.st_dev, status.st_ino };
    return 0;
}

static int go_up(int *here, size_t *depth)
{
    int above = openat(*here, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (above < 0)
        return -1;
    close(*here);
    *here = above;
    (*depth)--;
    errno = ESTALE;
    return is_at(above, &way[*depth - 1]) ? 0 : -1;
}

/* Empties the directory. */
static int remove_below(const char *path)
{
    autoclose int here = open_directory(AT_FDCWD, path);
    size_t depth = 0;
    struct stat status;
    int next;

    if (here < 0 || fstat(here, &status) < 0)
        return -1;
    way[depth++] = (struct place){ status.st_dev, status.st_ino };
    for (;;) {
        if (remove_entries(here, &next) < 0)
            return -1;
        if (next >= 0 && go_down(&here, next, &depth, status.st_dev) < 0)
            return -1;
        if (next < 0 && depth == 1)
            return 0;
        if (next < 0 && go_up(&here, &depth) < 0)
            return -1;
    }
}

int remove_path(const char *path, bool recursive)
{
    struct stat status;

    if (fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;

    int left = remove_name(AT_FDCWD, path);

    if (left <= 0)
        return left;
    errno = ENOTEMPTY;
    if (!recursive)
        return -1;
    return remove_below(path) < 0 || unlinkat(AT_FDCWD, path, AT_REMOVEDIR) < 0 ? -1 : 0;
}
