/* Above a command that has a time: so that when it is up, everything ends that descends from the command.
 *
 * A process group is left by setsid(), and the parent of an orphan is PID 1, as of all other orphans.  So such
 * a command gets a parent of its own, to whom its orphans go instead.  It waits, does nothing, and ends as the
 * command did; what is left then goes to PID 1 and goes on, as after any command.  Only when the time is up is
 * all of it ended.
 *
 * Must not: be dumpable; act on a signal: what it is to do stands in memory that it shares with PID 1, and
 * signals only wake it.  Where init and command have the same user the command can kill it.  Then it has ended,
 * as far as anybody knows, and what it has left goes on: no more than it could have by ending itself. */

#include "init/init.h"
#include "init/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BELOW_MAX = 16384,
    ROUNDS_MAX = 50, /* in which everybody is stopped, before they are killed even so */
};

/* Everybody in the sandbox, and of them who is below us. */
static struct process {
    pid_t pid, parent;
    char state;
    bool below;
} all[BELOW_MAX];
static size_t all_len;

static ssize_t read_file(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);

    if (fd >= 0)
        close(fd);
    out[got < 0 ? 0 : got] = '\0';
    return got;
}

static void note(pid_t pid)
{
    char path[32], line[512];

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (all_len == BELOW_MAX || read_file(path, line, sizeof line) <= 0)
        return;

    const char *end = strrchr(line, ')'); /* the name may hold anything */

    if (end && end[1] == ' ' && end[2] && end[3] == ' ')
        all[all_len++] = (struct process){ pid, (pid_t)strtol(end + 4, NULL, 10), end[2], false };
}

/* A child may have a smaller number than its parent, so it takes as many turns as it takes. */
static void look(void)
{
    DIR *list = opendir("/proc");
    const struct dirent *entry;
    pid_t self = getpid();
    bool more = true;

    all_len = 0;
    while (list && (entry = readdir(list))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && pid != self)
            note(pid);
    }
    if (list)
        closedir(list);
    while (more) {
        more = false;
        for (size_t i = 0; i < all_len; i++) {
            bool below = all[i].parent == self;

            for (size_t k = 0; k < all_len && !below; k++)
                below = all[k].below && all[k].pid == all[i].parent;
            more = more || (below && !all[i].below);
            all[i].below = below;
        }
    }
}

static void signal_all(int number)
{
    for (size_t i = 0; i < all_len; i++)
        if (all[i].below)
            kill(all[i].pid, number);
}

static bool somebody_runs(void)
{
    for (size_t i = 0; i < all_len; i++)
        if (all[i].below && !strchr("TtZXxD", all[i].state))
            return true;
    return false;
}

void end_tracers(pid_t pid)
{
    char path[64], status[2048];
    const struct dirent *entry;
    static const char key[] = "\nTracerPid:";

    snprintf(path, sizeof path, "/proc/%d/task", pid);

    DIR *threads = opendir(path);

    while (threads && (entry = readdir(threads))) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/status", pid, entry->d_name);

        const char *line = read_file(path, status, sizeof status) > 0 ? strstr(status, key) : NULL;
        pid_t tracer = line ? (pid_t)strtol(line + strlen(key), NULL, 10) : 0;

        if (tracer > 1 && tracer != getpid())
            kill(tracer, SIGKILL);
    }
    if (threads)
        closedir(threads);
}

/* Comes back when there was nobody to take; the command's own end is kept. */
static bool take_dead(pid_t command, int *status)
{
    int got;

    for (;;) {
        pid_t pid = wait4(-1, &got, WNOHANG | __WALL, NULL);

        if (pid <= 0)
            return pid < 0 && errno == ECHILD;
        if (WIFSTOPPED(got)) /* it asked to be traced by its parent, and that is us */
            ptrace(PTRACE_DETACH, pid, NULL, (void *)(uintptr_t)WSTOPSIG(got));
        else if (pid == command)
            *status = got;
    }
}

/* Who is stopped keeps its place among the processes that there may be, so that whoever forks without end comes
 * to the end of that.  Who is dead, and held by whoever traces it, is let go. */
static void end_below(pid_t command, int *status)
{
    for (int round = 0; !take_dead(command, status); round++) {
        look();
        signal_all(SIGSTOP);
        if (round < ROUNDS_MAX && somebody_runs()) {
            poll(NULL, 0, 1);
            continue;
        }
        look();
        signal_all(SIGKILL);
        for (size_t i = 0; i < all_len; i++)
            if (all[i].below && all[i].state == 'Z')
                end_tracers(all[i].pid);
        poll(NULL, 0, 1);
    }
}

/* Ends as the command did, for who waits for us. */
static _Noreturn void end_as(int status)
{
    sigset_t none;

    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        sigemptyset(&none);
        kill(getpid(), WTERMSIG(status));
        sigprocmask(SIG_SETMASK, &none, NULL);
    }
    _exit(WEXITSTATUS(status));
}

static _Noreturn void watch(pid_t command, const volatile unsigned char *over)
{
    enum { RUNS = -1 };
    int status = RUNS, told = WATCH_ON;
    sigset_t wakes;

    sigfillset(&wakes);
    for (;;) {
        bool nobody = take_dead(command, &status);

        if (*over >= WATCH_KILL || (status != RUNS && *over != WATCH_ON)) {
            end_below(command, &status);
            end_as(status);
        }
        if (status != RUNS || nobody)
            end_as(status);
        if (*over == WATCH_TERM && told == WATCH_ON) {
            told = WATCH_TERM;
            look();
            signal_all(SIGTERM);
            signal_all(SIGCONT); /* a stopped process does not see the other */
        }
        sigwaitinfo(&wakes, NULL);
    }
}

static _Noreturn void be_watcher(const struct message *message, struct shared *shared, const int *fds,
                                 size_t count)
{
    const volatile unsigned char *over = &shared->over[shared->place];
    struct error error;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cove-watcher");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        (prctl(PR_GET_DUMPABLE) == 1 && !start_leaves_out(message->flags, START_NO_DUMPABLE))) {
        error_set(&error, ERROR_SYSTEM, "the watcher of a command is not what it must be");
        launch_failed(message, 125, &error);
        _exit(125);
    }

    pid_t command = launch(message, LAUNCH_WATCHED, &shared->command, fds, count);

    if (command < 0)
        _exit(125);
    syscall(SYS_close_range, 0U, ~0U, 0U);
    watch(command, over);
}

void watcher_start(const struct message *message, struct shared *shared, const int *fds, size_t count)
{
    struct error error;
    long pid = syscall(SYS_clone, CLONE_PARENT | CLONE_PARENT_SETTID, NULL, &shared->entering, NULL, NULL);

    if (pid == 0)
        be_watcher(message, shared, fds, count);
    if (pid < 0) {
        error_sys(&error, "fork the watcher of a command");
        launch_failed(message, 125, &error);
    }
}
