/* PID 1 of a sandbox.
 *
 * Theory of operation.  The keeper has cloned us into all new namespaces and carried out the
 * plan; what is left is to start commands, reap orphans, and end everything when the keeper is
 * gone.  PID 1 must stay out of the Landlock domain of the commands (a landlocked task cannot
 * mount, and layers will be switched from here), so a second process, the spawner, enters the
 * domain once and forks the commands: they can then trace and signal each other.
 *
 * Should: report the end of commands; start the spawner anew when a payload killed it; exit at
 * once, and so kill everything, when the keeper's socket closes.
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A payload may kill the spawner in a loop; more often than this is an attack on itself. */
enum { SPAWNERS_MAX = 100 };

bool commands_add(struct commands *commands, pid_t pid)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (!commands->pids[i]) {
            commands->pids[i] = pid;
            return true;
        }
    return false;
}

bool commands_remove(struct commands *commands, pid_t pid)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (commands->pids[i] == pid) {
            commands->pids[i] = 0;
            return true;
        }
    return false;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

void report_exit(int fd, pid_t pid, int status, const struct rusage *usage)
{
    struct message message = {
        .kind = MESSAGE_EXITED,
        .pid = pid,
        .status = status,
        .user_us = microseconds(usage->ru_utime),
        .system_us = microseconds(usage->ru_stime),
        .peak_kib = (uint64_t)usage->ru_maxrss,
    };

    wire_send(fd, &message, NULL, 0);
}

static _Noreturn void fail(const char *what)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = 125 };

    error_sys(&message.error, "init: %s", what);
    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
    _exit(125);
}

/* Everything below inherits this filter, so it refuses only what no process inside ever needs. */
static void confine_self(bool unfiltered)
{
    const struct filter *filter = &filters[FILTER_INIT];
    struct sock_fprog program = { .len = filter->len, .filter = (struct sock_filter *)(uintptr_t)filter->code };

    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        fail("become non-dumpable");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail("set no-new-privileges");
    if (unfiltered)
        return;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        fail("install the seccomp filter of init");
}

static pid_t start_spawner(struct commands *commands)
{
    pid_t pid = fork();

    if (pid < 0)
        fail("fork the spawner");
    if (pid == 0) {
        close(PROTOCOL_INIT_FD);
        spawner_run(commands);
    }
    return pid;
}

static void reap(struct commands *commands, pid_t *spawner)
{
    static unsigned spawners;
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (pid == *spawner) {
            if (++spawners > SPAWNERS_MAX)
                fail("the spawner was killed too often from inside");
            *spawner = start_spawner(commands);
        } else if (commands_remove(commands, pid)) {
            report_exit(PROTOCOL_INIT_FD, pid, status, &usage);
        }
    }
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        continue;
}

/* Nobody is left behind: what is forked while we kill becomes our child and is killed in the next
 * round.  The keeper need not wait for the kernel to take the namespaces apart after this. */
static _Noreturn void end_all(void)
{
    struct message empty = { .kind = MESSAGE_EMPTY };

    do
        kill(-1, SIGKILL);
    while (wait4(-1, NULL, 0, NULL) > 0 || errno != ECHILD);
    wire_send(PROTOCOL_INIT_FD, &empty, NULL, 0);
    _exit(0);
}

/* END is the only message PID 1 gets; anything else is the keeper's end. */
static _Noreturn void handle_keeper(void)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error err;
    size_t count;

    if (wire_receive(PROTOCOL_INIT_FD, &message, fds, &count, &err) == WIRE_MESSAGE &&
        message.kind == MESSAGE_END)
        end_all();
    _exit(0);
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
    struct message ready = { .kind = MESSAGE_READY };
    struct commands *commands;
    sigset_t all, child;
    int made, signals;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    (void)argv;
    confine_self(told_unfiltered(argc));

    commands = mmap(NULL, sizeof *commands, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (commands == MAP_FAILED)
        fail("map the table of commands");
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    /* Out of the way of PROTOCOL_LANDLOCK_FD, which is free where the kernel has no Landlock. */
    made = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    signals = fcntl(made, F_DUPFD_CLOEXEC, PROTOCOL_LANDLOCK_FD + 1);
    if (signals < 0)
        fail("make a signal descriptor");
    close(made);

    pid_t spawner = start_spawner(commands);
    wire_send(PROTOCOL_INIT_FD, &ready, NULL, 0);

    for (;;) {
        struct pollfd events[] = { { .fd = PROTOCOL_INIT_FD, .events = POLLIN },
                                   { .fd = signals, .events = POLLIN } };

        if (poll(events, 2, -1) < 0)
            continue;
        if (events[0].revents)
            handle_keeper();
        drain_signals(signals);
        reap(commands, &spawner);
    }
}
