#include "changes/moved.h"

#include "base/own.h"
#include "changes/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* Opens what lies at `path`, whatever it is; -1 and *gone if there is nothing. */
static int look(int dir, const char *path, struct stat *status, bool *gone)
{
    autoclose int fd = scan_open(dir, path, O_PATH | O_NOFOLLOW);

    *gone = fd < 0 && scan_is_gone(errno);
    if (fd < 0 || fstat(fd, status) < 0)
        return -1;
    return steal_fd(&fd);
}

static bool same_link(int one, int other)
{
    char a[PATH_MAX], b[PATH_MAX];
    ssize_t first = readlinkat(one, "", a, sizeof a), second = readlinkat(other, "", b, sizeof b);

    return first >= 0 && first == second && memcmp(a, b, (size_t)first) == 0;
}

static bool same_content(struct scan *scan, int copy, int tree, const char *path)
{
    autoclose int one = scan_open_file(copy, path), other = scan_open_file(tree, path);

    return one >= 0 && other >= 0 && content_equal(scan, one, other, NULL) == 1;
}

static bool is_moved(struct scan *scan, int copy, int tree, struct change *change)
{
    const char *path = change->from ? change->from : change->path;
    struct stat a, b;
    bool gone_there, gone_here;
    autoclose int one = look(copy, path, &a, &gone_there), other = look(tree, path, &b, &gone_here);

    if (one < 0 || other < 0)
        return !(gone_there && gone_here);
    if ((a.st_mode ^ b.st_mode) & S_IFMT)
        return true;
    if (S_ISDIR(a.st_mode))
        return false;
    if (S_ISLNK(a.st_mode))
        return !same_link(one, other);
    if ((a.st_mode & 07777) != (b.st_mode & 07777) || !S_ISREG(a.st_mode) ||
        !same_content(scan, copy, tree, path))
        return true;
    change->old.mtime = b.st_mtim;
    return false;
}

/* Where something new comes the owner must have nothing. */
static bool is_taken(int tree, const struct change *change)
{
    struct stat status;
    bool gone;
    autoclose int fd = look(tree, change->path, &status, &gone);

    return !gone && (fd < 0 || !(S_ISDIR(status.st_mode) && change->new.type == SIDE_DIRECTORY));
}

void changes_flag_moved(struct changes *changes, int copy, int tree)
{
    struct scan scan = { 0 };

    for (size_t i = 0; i < changes->len; i++) {
        struct change *change = &changes->items[i];

        if (change->kind == CHANGE_ADDED ? is_taken(tree, change) : is_moved(&scan, copy, tree, change))
            change->flags |= FLAG_BASE_CHANGED;
    }
    free(scan.buffer);
}
