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
#include <sys/wait.h>
#include <unistd.h>

/* Commands whose end somebody waits for; pid 0: free.  `last` is the one with which the sandbox ends. */
static struct waited {
    pid_t pid, child; /* as in struct spawned */
    uint32_t job;
} commands[COMMANDS_MAX];
static pid_t last;
static bool domain; /* there is one to enter */

static struct waited *command_of(pid_t pid)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (commands[i].pid == pid)
            return &commands[i];
    return NULL;
}

static struct waited *command_by_child(pid_t child)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        if (commands[i].pid && commands[i].child == child)
            return &commands[i];
    return NULL;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void add_usage(struct message *message, const struct rusage *usage)
{
    message->user_us = microseconds(usage->ru_utime);
    message->system_us = microseconds(usage->ru_stime);
    message->peak_kib = (uint64_t)usage->ru_maxrss;
    message->written_bytes = (uint64_t)usage->ru_oublock * 512;
}

static void report_exit(const struct waited *command, int status, const struct rusage *usage)
{
    struct message message = {
        .kind = MESSAGE_EXITED, .job = command->job, .pid = command->pid, .status = status
    };

    add_usage(&message, usage);
    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
}

static _Noreturn void fail(const char *what)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = 125 };

    error_sys(&message.error, "init: %s", what);
    wire_send(PROTOCOL_INIT_FD, &message, NULL, 0);
    _exit(125);
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

/* The clone has given us our filter while it waited (box/confine.c); nobody starts without. */
static void confine_self(bool unfiltered)
{
    /* The socket says that the keeper is gone, but not while we wait for a command's exec. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        fail("ask to end with the keeper");
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        fail("become non-dumpable");
    forbid_cores();
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
        (!unfiltered && prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER)) {
        errno = EPERM;
        fail("read back: PID 1 is not confined");
    }
}

/* Who has set the sandbox up has the keeper's memory and all rights in here: nobody may meet them.  Each has
 * said what went wrong; if not, it is said here.  The sandbox was called ready by then, so an error that passes
 * is no reason to end it. */
static void outlive_helpers(void)
{
    int status = 0, tries = 3;

    while (status == 0 && tries > 0)
        if (wait4(-1, &status, __WALL, NULL) < 0) {
            if (errno == ECHILD)
                return;
            tries--;
        }
    errno = status ? ESRCH : errno;
    fail("wait for who sets the sandbox up");
}

/* Nobody is left behind: what is forked while we kill becomes our child and is killed in the next
 * round.  Who has no child is alone, since all others descend from PID 1; to kill nobody would cost a
 * look at every process of the host.  The keeper need not wait for the kernel to take the namespaces
 * apart after this, and we give it the time to be gone first: on a busy machine it would wait for a
 * processor. */
static _Noreturn void end_all(void)
{
    enum { PATIENCE_MS = 100 };
    struct message empty = { .kind = MESSAGE_EMPTY };
    struct pollfd keeper = { .fd = PROTOCOL_INIT_FD };
    struct rusage usage;

    while (wait4(-1, NULL, WNOHANG | __WALL, NULL) >= 0 || errno != ECHILD) {
        kill(-1, SIGKILL);
        wait4(-1, NULL, __WALL, NULL);
    }
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0)
        add_usage(&empty, &usage);
    wire_send(PROTOCOL_INIT_FD, &empty, NULL, 0);
    poll(&keeper, 1, PATIENCE_MS);
    _exit(0);
}

/* Who wants to end in good order, as a database does, is given the time. */
static void end_gently(int number, uint64_t patience_ms)
{
    enum { BEAT_MS = 5 };

    spawner_end();
    kill(-1, number);
    kill(-1, SIGCONT); /* a stopped process does not see the other */
    for (uint64_t waited = 0; waited < patience_ms; waited += BEAT_MS) {
        while (wait4(-1, NULL, WNOHANG | __WALL, NULL) > 0)
            continue;
        if (wait4(-1, NULL, WNOHANG | __WALL, NULL) < 0 && errno == ECHILD)
            return;
        poll(NULL, 0, BEAT_MS);
    }
}

/* True: there may be more.  Whoever makes orphans faster than we bury them must not keep us from the keeper. */
static bool reap(void)
{
    enum { AT_A_TIME = 64 };
    struct rusage usage;
    int status;

    for (int i = 0; i < AT_A_TIME; i++) {
        pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);

        if (pid <= 0)
            return false;
        if (WIFSTOPPED(status)) { /* it asked to be traced by its parent, and that is us */
            ptrace(PTRACE_DETACH, pid, NULL, (void *)(uintptr_t)WSTOPSIG(status));
            continue;
        }
        struct waited *command = spawner_was(pid) ? NULL : command_by_child(pid);

        if (!command)
            continue;
        report_exit(command, status, &usage);
        command->pid = 0;
        if (pid == last)
            end_all();
    }
    return true;
}

static bool has_nobody(void)
{
    siginfo_t info;

    while (reap())
        continue;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

/* Everybody goes but us.  What is forked while we kill is killed in the next round. */
static void clear_all(int number, uint64_t patience_ms)
{
    enum { BEAT_MS = 5 };
    struct message cleared = { .kind = MESSAGE_CLEARED };

    spawner_end();
    if (!has_nobody() && patience_ms) {
        kill(-1, number);
        kill(-1, SIGCONT);
    }
    for (uint64_t waited = 0; !has_nobody() && waited < patience_ms; waited += BEAT_MS)
        poll(NULL, 0, BEAT_MS);
    while (!has_nobody()) {
        kill(-1, SIGKILL);
        poll(NULL, 0, 1);
    }
    wire_send(PROTOCOL_INIT_FD, &cleared, NULL, 0);
}

static void drain_signals(int fd)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        continue;
}

static void start_command(const struct message *message, const int *fds, size_t count)
{
    bool alone = message->flags & START_LAST;
    struct waited *place = command_of(0);
    struct spawned spawned;
    struct error error;

    if (!place) {
        error_set(&error, ERROR_REFUSED, "there are too many commands in this sandbox");
        launch_failed(message, 125, &error);
        return;
    }
    /* Commands that are to reach each other are in one domain, that of the spawner.  And others may be there
     * that stop a new one on its way: then it is the spawner who waits for it. */
    if (alone) {
        spawned.pid = spawned.child = launch(message, domain ? LAUNCH_OWN : LAUNCH_FREE, NULL, fds, count);
        last = spawned.pid;
    } else if (spawn(message, (uint32_t)(place - commands), domain, fds, count, &spawned) < 0) {
        return;
    }
    if (spawned.pid > 0)
        *place = (struct waited){ spawned.pid, spawned.child, message->job };
}

/* Whoever is dead, and not reaped yet, would keep it from being done. */
static void handle_aside(const int *fds, size_t count)
{
    while (reap())
        continue;
    switch_layers(fds, count);
}

static void pass_signal(const struct message *message)
{
    const struct waited *command = message->pid > 1 ? command_of(message->pid) : NULL;
    bool all = command && message->flags & START_WATCHED && command->child != command->pid;

    if (!command || (message->signal == SIGCONT && pause_holds(message->pid)))
        return;
    if (all && (message->signal == SIGTERM || message->signal == SIGKILL))
        watcher_tell((uint32_t)(command - commands), command->child, message->signal);
    if (!all || message->signal != SIGTERM)
        kill(-message->pid, message->signal);
    if (message->signal == SIGKILL)
        end_tracers(message->pid);
}

static void handle_keeper(void)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error err;
    size_t count = 0;

    if (wire_receive(PROTOCOL_INIT_FD, &message, fds, &count, &err) != WIRE_MESSAGE)
        _exit(0); /* the keeper is gone */
    if (message.kind == MESSAGE_END && message.patience_ms)
        end_gently(message.signal, message.patience_ms);
    if (message.kind == MESSAGE_END)
        end_all();
    if (message.kind == MESSAGE_START)
        start_command(&message, fds, count);
    else if (message.kind == MESSAGE_CLEAR)
        clear_all(message.signal, message.patience_ms);
    else if (message.kind == MESSAGE_ASIDE)
        handle_aside(fds, count);
    else if (message.kind == MESSAGE_SIGNAL)
        pass_signal(&message);
    else if (message.kind == MESSAGE_MARKS)
        marks_open(fds, count);
    else if (message.kind == MESSAGE_PAUSE)
        pause_all(message.patience_ms);
    else if (message.kind == MESSAGE_RESUME)
        resume_all();
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
    bool more = false; /* to reap */
    int signals;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    (void)argv;
    confine_self(told_unfiltered(argc));
    outlive_helpers();

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    domain = fcntl(PROTOCOL_LANDLOCK_FD, F_GETFD) >= 0; /* before another descriptor gets its number */
    signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0)
        fail("make a signal descriptor");

    for (;;) {
        struct pollfd events[] = { { .fd = PROTOCOL_INIT_FD, .events = POLLIN },
                                   { .fd = signals, .events = POLLIN } };

        if (poll(events, 2, more ? 0 : pause_watch()) < 0)
            continue;
        if (events[1].revents)
            drain_signals(signals);
        if (events[1].revents || more)
            more = reap();
        if (events[0].revents)
            handle_keeper();
    }
}
