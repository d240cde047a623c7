#include "keeper/stower.h"

#include "base/error.h"
#include "base/own.h"
#include "init/wire.h"
#include "keeper/apart.h"
#include "store/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    FINISH_MS = 2000,
    LOOKS = 64, /* for what is too much: after each 64th of what may be there */
};

/* --- the process --- */

struct stowing {
    int dir;
    uint64_t most;
    uint64_t added; /* since it was last looked */
};

static void trim(struct stowing *stowing)
{
    struct packages_usage usage;
    struct error ignored;

    stowing->added = 0;
    (void)packages_trim(stowing->dir, stowing->most, false, &usage, &ignored);
}

static void stow(struct stowing *stowing, const struct checksum *name, int spool)
{
    uint64_t size = 0;

    if (spool < 0)
        packages_check(stowing->dir, name->text);
    else if (packages_add(stowing->dir, spool, name->text, &size) == PACKAGE_ADDED)
        stowing->added += size > PACKAGE_BYTES_MIN ? size : PACKAGE_BYTES_MIN;
    if (stowing->added > stowing->most / LOOKS)
        trim(stowing);
}

static _Noreturn void be_stower(int from, struct stowing *stowing, pid_t keeper)
{
    struct checksum name;
    struct error ignored;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cove-stower");
    if (getppid() != keeper)
        _exit(1);
    apart_close_others((int[]){ from, stowing->dir }, 2);
    while (wire_take(from, &name, sizeof name, fds, &count, &ignored) == WIRE_MESSAGE) {
        name.text[sizeof name.text - 1] = '\0';
        stow(stowing, &name, count ? fds[0] : -1);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
    if (stowing->added)
        trim(stowing);
    _exit(0);
}

/* --- for the keeper --- */

bool stower_start(struct stower *stower, int packages, uint64_t most)
{
    struct stowing stowing = { .dir = packages, .most = most };
    pid_t keeper = getpid();
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    stower->pid = fork();
    if (stower->pid == 0) {
        setsid(); /* Ctrl-C is for the command */
        be_stower(ends[1], &stowing, keeper);
    }
    close(ends[1]);
    stower->to = ends[0];
    if (stower->pid > 0 && fcntl(stower->to, F_SETFL, O_NONBLOCK) == 0)
        return true;
    stower_end(stower);
    return false;
}

/* Files may come faster than they are hashed. */
static bool has_room(struct stower *stower, int spool)
{
    struct stat info = { 0 };
    int unread = 0;

    if (ioctl(stower->to, SIOCOUTQ, &unread) < 0 || (spool >= 0 && fstat(spool, &info) < 0))
        return false;
    if (unread == 0)
        stower->waiting = 0;
    if (stower->waiting + (uint64_t)info.st_size > STOWER_WAITS_MAX)
        return false;
    stower->waiting += (uint64_t)info.st_size;
    return true;
}

void stower_give(struct stower *stower, const struct checksum *name, int spool)
{
    if (has_room(stower, spool))
        (void)wire_put(stower->to, name, sizeof *name, &spool, spool < 0 ? 0 : 1);
}

void stower_end(struct stower *stower)
{
    struct pollfd gone = { stower->to, 0, 0 };

    if (stower->to >= 0 && stower->pid > 0 && shutdown(stower->to, SHUT_WR) == 0)
        while (poll(&gone, 1, FINISH_MS) < 0 && errno == EINTR)
            continue;
    own_close(&stower->to);
    if (stower->pid > 0) {
        kill(stower->pid, SIGKILL);
        while (waitpid(stower->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    *stower = STOWER_NONE;
}
