#include "doctor/trial.h"

#include "base/error.h"
#include "base/own.h"
#include "box/idmap.h"
#include "box/plan.h"
#include "sys/sys.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A kernel that lies could keep a child waiting for ever. */
enum { PATIENCE_MS = 10000 };

static int take_ids(const struct trial *trial, struct error *err)
{
    if (!(trial->namespaces & CLONE_NEWUSER))
        return 0;
    if (!trial->ids->shifted)
        return idmap_own(trial->ids, err);
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return error_sys(err, "become root of the user namespace");
    return 0;
}

static _Noreturn void be_child(const struct trial *trial, int parent)
{
    struct error err = { 0 };
    char go;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (recv(parent, &go, 1, 0) != 1)
        _exit(1);
    if (take_ids(trial, &err) == 0 && trial->act(trial->subject, &err) == 0)
        err = (struct error){ .kind = ERROR_NONE };
    _exit(write(parent, &err, sizeof err) == (ssize_t)sizeof err ? 0 : 1);
}

static int hear(int child, struct error *err)
{
    struct pollfd polled = { .fd = child, .events = POLLIN };
    struct error said;

    if (poll(&polled, 1, PATIENCE_MS) != 1)
        return error_set(err, ERROR_SYSTEM, "it did not end within %d seconds", PATIENCE_MS / 1000);
    if (read(child, &said, sizeof said) != (ssize_t)sizeof said)
        return error_set(err, ERROR_SYSTEM, "the process that tried it was killed");
    if (said.kind == ERROR_NONE)
        return 0;
    *err = said;
    return -1;
}

static int lead(const struct trial *trial, pid_t pid, int child, struct error *err)
{
    if ((trial->namespaces & CLONE_NEWUSER) && trial->ids->shifted && idmap_write(trial->ids, pid, err) < 0)
        return -1;
    if (send(child, "", 1, MSG_NOSIGNAL) != 1)
        return error_sys(err, "wake a child");
    return hear(child, err);
}

int trial_run(const struct trial *trial, struct error *err)
{
    autoclose int pidfd = -1;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");
    autoclose int ours = pair[0], its = pair[1];
    pid_t pid = trial->namespaces ? sys_clone(trial->namespaces, -1, &pidfd) : fork();

    if (pid < 0)
        return error_sys(err, trial->namespaces ? "clone into new namespaces" : "fork");
    if (pid == 0) {
        close(ours);
        be_child(trial, its);
    }
    close(steal_fd(&its));
    int result = lead(trial, pid, ours, err);

    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return result;
}
