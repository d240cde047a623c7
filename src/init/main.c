/* PID 1 of a sandbox.
 *
 * Theory of operation.  The keeper has cloned us into all new namespaces and carried out the
 * plan; what is left is to start commands, reap orphans, and end everything when the command has
 * ended or the keeper is gone.  PID 1 stays out of the Landlock domain of the commands (a
 * landlocked task cannot mount, and layers will be switched from here): a command enters it.
 *
 * Should: report the end of commands; when the last word is said, or the keeper's socket closes,
 * exit and so kill everything.
 * Must not: be dumpable; run anything it was told from inside; keep a descriptor of the host;
 * act on a signal (all are blocked; only SIGCHLD is read). */

#include "init/filters.h"
#include "init/init.h"
#include "init/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Commands whose end somebody waits for; `last` is the one with which the sandbox ends. */
enum { COMMANDS_MAX = 1024 };
static pid_t commands[COMMANDS_MAX], last;
static bool domain; /* there is one to enter */

static bool commands_change(pid_t from, pid_t to)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (commands[i] == from) {
            commands[i] = to;
            return true;
        }
    return false;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void report_exit(pid_t pid, int status, const struct rusage *usage)
{
    struct message message = {
        .kind = MESSAGE_EXITED,
        .pid = pid,
        .status = status,
        .user_us = microseconds(usage->ru_utime),
        .system_us = microseconds(usage->ru_stime),
        .peak_kib = (uint64_t)usage->ru_maxrss,
    };

    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
}

static _Noreturn void fail(const char *what)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = 125 };

    error_sys(&message.error, "init: %s", what);
    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
    _exit(125);
}

/* What our caller ignored is neither ours nor a command's: an ignored SIGCHLD would reap for us.  By
 * the kernel's own call: libc keeps a few signals to itself and refuses to touch them. */
static void forget_signals(void)
{
    const unsigned long plain[4] = { (unsigned long)SIG_DFL };

    for (int signal = 1; signal < 65; signal++)
        (void)syscall(SYS_rt_sigaction, signal, plain, NULL, 8UL);
}

/* No core of anybody inside.  A limit of one byte, and only that, also keeps the kernel from
 * starting the host's own handler (a pipe in core_pattern) on a process that its author has crashed
 * on purpose.  It cannot be set where our own limit is 0 for good. */
static void forbid_cores(void)
{
    const struct rlimit one_byte = { 1, 1 };

    if (setrlimit(RLIMIT_CORE, &one_byte) < 0 && errno != EPERM)
        fail("limit cores");
}

/* Everything below inherits this filter, so it refuses only what no process inside ever needs. */
static void confine_self(bool unfiltered)
{
    const struct filter *filter = &filters[FILTER_INIT];
    struct sock_fprog program = { .len = filter->len, .filter = (struct sock_filter *)(uintptr_t)filter->code };

    /* The socket says that the keeper is gone, but not while we wait for a command's exec. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        fail("ask to end with the keeper");
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        fail("become non-dumpable");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail("set no-new-privileges");
    forbid_cores();
    if (unfiltered)
        return;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        fail("install the seccomp filter of init");
}

/* Nobody is left behind: what is forked while we kill becomes our child and is killed in the next
 * round.  The keeper need not wait for the kernel to take the namespaces apart after this, and we
 * give it the time to be gone first: on a busy machine it would wait for a processor. */
static _Noreturn void end_all(void)
{
    enum { PATIENCE_MS = 100 };
    struct message empty = { .kind = MESSAGE_EMPTY };
    struct pollfd keeper = { .fd = PROTOCOL_INIT_FD };

    do
        kill(-1, SIGKILL);
    while (wait4(-1, NULL, 0, NULL) > 0 || errno != ECHILD);
    wire_send(PROTOCOL_INIT_FD, &empty, NULL, 0);
    poll(&keeper, 1, PATIENCE_MS);
    _exit(0);
}

static void reap(void)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (WIFSTOPPED(status)) { /* it asked to be traced by its parent, and that is us */
            ptrace(PTRACE_DETACH, pid, NULL, (void *)(uintptr_t)WSTOPSIG(status));
            continue;
        }
        if (!commands_change(pid, 0))
            continue;
        report_exit(pid, status, &usage);
        if (pid == last)
            end_all();
    }
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        continue;
}

static void start_command(const struct message *message, const int *fds, size_t count)
{
    pid_t pid = launch(message, domain, fds, count);

    if (pid < 0)
        return;
    if (!commands_change(0, pid))
        fail("there are too many commands");
    if (message->flags & START_LAST)
        last = pid;
}

static void handle_keeper(void)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error err;
    size_t count = 0;

    if (wire_receive(PROTOCOL_INIT_FD, &message, fds, &count, &err) != WIRE_MESSAGE)
        _exit(0); /* the keeper is gone */
    if (message.kind == MESSAGE_END)
        end_all();
    if (message.kind == MESSAGE_START)
        start_command(&message, fds, count);
    else if (message.kind == MESSAGE_SIGNAL && message.pid > 1)
        kill(-message.pid, message.signal);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* A test build is told by a second word to leave its own filter out too. */
static bool told_unfiltered(int words)
{
#ifdef COVE_UNSAFE
    return words > 1;
#else
    (void)words;
    return false;
#endif
}

int main(int argc, char **argv)
{
    sigset_t all, child;
    int signals;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    forget_signals();
    (void)argv;
    confine_self(told_unfiltered(argc));

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    domain = fcntl(PROTOCOL_LANDLOCK_FD, F_GETFD) >= 0; /* before another descriptor gets its number */
    signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0)
        fail("make a signal descriptor");

    for (;;) {
        struct pollfd events[] = { { .fd = PROTOCOL_INIT_FD, .events = POLLIN },
                                   { .fd = signals, .events = POLLIN } };

        if (poll(events, 2, -1) < 0)
            continue;
        if (events[1].revents) {
            drain_signals(signals);
            reap();
        }
        if (events[0].revents)
            handle_keeper();
    }
}
