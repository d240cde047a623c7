#include "box/lent.h"

#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a process like us.  A program inside has our bytes too, and may one day have the number of a keeper that
 * is gone: what it holds open for writing nobody can execute. */
static bool is_ours(const char *link)
{
    static const char proc[] = "/proc/";
    char target[64] = "", users[64];
    struct stat own, its;

    if (readlink(link, target, sizeof target - 1) < 0 || strncmp(target, proc, strlen(proc)) != 0)
        return false;
    snprintf(users, sizeof users, "/proc/%ld/ns/user", strtol(target + strlen(proc), NULL, 10));
    return stat("/proc/self/ns/user", &own) == 0 && stat(users, &its) == 0 && own.st_ino == its.st_ino &&
           own.st_dev == its.st_dev;
}

/* Looked at before it is opened: a link may lead to anything, once somebody else has the number of the process.
 */
static bool is_candidate(int path, const struct lent *what)
{
    struct stat status;

    return path >= 0 && fstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 0555) == 0555 && (size_t)status.st_size == what->size;
}

static bool is_sealed(int fd)
{
    const int wanted = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & wanted) == wanted;
}

static bool is_same(int fd, const struct lent *what)
{
    unsigned char buffer[16384];
    size_t at = 0;

    for (ssize_t got; at < what->size; at += (size_t)got) {
        got = pread(fd, buffer, sizeof buffer, (off_t)at);
        if (got <= 0 || (size_t)got > what->size - at || memcmp(buffer, what->bytes + at, (size_t)got) != 0)
            return false;
    }
    return true;
}

int lent_take(const char *state, const struct lent *what)
{
    autofree char *link = text_format("%s/%s", state, what->name);
    autoclose int path = open(link, O_PATH | O_CLOEXEC);

    if (!is_candidate(path, what) || !is_ours(link))
        return -1;

    autoclose int fd = open(sys_fd_path(path).text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0 && is_sealed(fd) && is_same(fd, what) ? steal_fd(&fd) : -1;
}

/* The link is there whole or not at all, and the last who makes it is whose it is. */
static int show(const char *state, const char *name, int fd)
{
    autofree char *where = text_format("/proc/%d/fd/%d", (int)getpid(), fd);
    autofree char *link = text_format("%s/%s", state, name);
    autofree char *new = text_format("%s.%d", link, (int)getpid());

    (void)unlink(new);
    if (symlink(where, new) < 0)
        return -1;
    if (rename(new, link) == 0)
        return 0;
    (void)unlink(new);
    return -1;
}

int lent_offer(const char *state, const struct lent *what)
{
    autoclose int theirs = lent_take(state, what);
    autoclose int mine = theirs < 0 ? sys_sealed_memfd(what->name, what->bytes, what->size) : -1;

    return mine >= 0 && show(state, what->name, mine) == 0 ? steal_fd(&mine) : -1;
}
