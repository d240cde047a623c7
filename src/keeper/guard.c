#include "keeper/guard.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Keeps the few descriptors it needs and closes the rest: holding a pipe of the user's open
 * would make whoever reads it wait for us. */
static void keep_only(int *fds[], int count)
{
    enum { ABOVE = 16 };

    for (int i = 0; i < count; i++)
        *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, ABOVE + count);
    for (int i = 0; i < count; i++) {
        dup2(*fds[i], i);
        *fds[i] = i;
    }
    close_range((unsigned)count, ~0U, 0);
}

static _Noreturn void guard_main(int pidfd, int users, struct sandbox_dir dir)
{
    struct error ignored;

    setsid(); /* Ctrl-C is for the command, not for us */
    umask(0);
    prctl(PR_SET_NAME, "cove-guard");
    keep_only((int *[]){ &pidfd, &dir.parent, &dir.fd, &users }, users < 0 ? 3 : 4);

    struct pollfd dead = { .fd = pidfd, .events = POLLIN };
    while (poll(&dead, 1, -1) < 0 && errno == EINTR)
        continue;
    store_sweep(&dir);
    if (users >= 0)
        (void)setns(users, CLONE_NEWUSER);

    struct sandbox_dir gone = dir;
    int parent = fcntl(dir.parent, F_DUPFD_CLOEXEC, 0);

    /* What fails is left to the next start's sweep. */
    if (store_remove(&dir, &ignored) == 0 && users < 0)
        store_make_spare(parent, gone.id);
    _exit(0);
}

int guard_start(const struct box *box, const struct sandbox_dir *dir, bool foreign_ids, struct error *err)
{
    autofree char *path = text_format("/proc/%d/ns/user", box->pid);
    autoclose int users = foreign_ids ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (foreign_ids && users < 0)
        return error_sys(err, "open the sandbox's user namespace");

    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork the guard");
    if (pid == 0)
        guard_main(box->pidfd, users, *dir);
    return 0;
}
