/* The spawner, PID 2: a copy of PID 1 that has entered the Landlock domain, if there is one, and starts
 * commands in it.
 *
 * Each domain is an island: a process in one may neither trace nor signal a process in another.  If every
 * command entered one of its own, the second could not stop a server that the first has left running.  So they
 * inherit one. PID 1 itself stays outside, because who is inside cannot mount.
 *
 * Should: start what PID 1 asks for, as a child of PID 1, and tell PID 1 what came of it.
 * Must not: be dumpable; outlive PID 1; be waited for without end; speak to the keeper.  Where init and command
 * have the same user the command can stop or kill it, at any moment.  It hurts itself: another spawner is
 * started, with a domain of its own.  What the keeper hears comes from PID 1 alone, so that it is told once. */

#include "init/init.h"
#include "init/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A start takes a millisecond; the rest is for a busy machine. */
enum { PATIENCE_MS = 10000 };

static pid_t spawner;
static int line = -1; /* to it */

static struct shared *shared;

static _Noreturn void serve(void)
{
    for (;;) {
        int fds[PROTOCOL_FDS_MAX];
        struct message message;
        struct error err;
        size_t count = 0;

        if (wire_receive(PROTOCOL_INIT_FD, &message, fds, &count, &err) != WIRE_MESSAGE)
            _exit(0);
        if (message.flags & START_WATCHED)
            watcher_start(&message, shared, fds, count);
        else
            launch(&message, LAUNCH_INSIDE, &shared->entering, fds, count);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
}

/* The first word says whether the domain holds.  The line to PID 1 takes the place of that to the keeper: what
 * is said here and by a command before its exec is said to PID 1. */
static _Noreturn void be_spawner(int orders, bool domain)
{
    struct message ready = { .kind = MESSAGE_GO };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cove-spawner");
    if (dup3(orders, PROTOCOL_INIT_FD, O_CLOEXEC) < 0)
        _exit(1);
    if (prctl(PR_GET_DUMPABLE) == 1 || (domain && command_enter_domain(&ready.error) < 0))
        ready.kind = MESSAGE_FAILED;
    /* Also what PID 1 was just handed for the first command: whoever reads from that would wait for us. */
    syscall(SYS_close_range, PROTOCOL_INIT_FD + 1U, ~0U, 0U);
    if (wire_send(PROTOCOL_INIT_FD, &ready, NULL, 0) < 0 || ready.kind == MESSAGE_FAILED)
        _exit(1);
    serve();
}

void spawner_end(void)
{
    if (line >= 0)
        close(line);
    line = -1;
    if (spawner <= 0)
        return;
    kill(spawner, SIGKILL);
    while (waitpid(spawner, NULL, 0) < 0 && errno == EINTR)
        continue;
    spawner = 0;
}

/* No entry is of anybody else's process. */
static bool are_ours(const char *entries, size_t len)
{
    const struct dirent *entry;

    for (size_t at = 0; at < len; at += entry->d_reclen) {
        entry = (const struct dirent *)(const void *)(entries + at);

        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && pid != spawner)
            return false;
    }
    return true;
}

/* By /proc: a child of ours it is, and what else is a child of ours waitid() does not tell without taking it.
 * Without opendir(): a sandbox that rests would keep what malloc() needs. */
bool spawner_is_alone(void)
{
    _Alignas(struct dirent) char entries[2048];
    int all = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got = -1;

    while (all >= 0 && (got = syscall(SYS_getdents64, all, entries, sizeof entries)) > 0)
        if (!are_ours(entries, (size_t)got))
            break;
    if (all >= 0)
        close(all);
    return got == 0;
}

bool spawner_was(pid_t pid)
{
    if (pid != spawner || pid <= 0)
        return false;
    spawner = 0;
    spawner_end();
    return true;
}

static int hear(struct message *answer, int *fds, size_t *count, struct error *err)
{
    struct pollfd polled = { .fd = line, .events = POLLIN };
    int ready;

    while ((ready = poll(&polled, 1, PATIENCE_MS)) < 0 && errno == EINTR)
        continue;
    if (ready > 0 && wire_receive(line, answer, fds, count, err) == WIRE_MESSAGE)
        return 0;
    return error_set(err, ERROR_SYSTEM, "the process that starts commands was stopped or killed from inside");
}

static int share_memory(struct error *err)
{
    if (shared)
        return 0;

    void *page = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return error_sys(err, "share a page with the process that starts commands");
    shared = page;
    return 0;
}

static int fork_spawner(bool domain, struct error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");
    spawner = fork();
    if (spawner == 0) {
        close(pair[0]);
        be_spawner(pair[1], domain);
    }
    close(pair[1]);
    line = pair[0];
    return spawner < 0 ? error_sys(err, "fork the process that starts commands") : 0;
}

static int spawner_start(bool domain, struct error *err)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message ready = { 0 };
    size_t count = 0;

    if (spawner > 0)
        return 0;
    if (fork_spawner(domain, err) < 0 || hear(&ready, fds, &count, err) < 0)
        return -1;
    if (ready.kind == MESSAGE_GO)
        return 0;
    *err = ready.error;
    return -1;
}

bool spawner_is_used(void)
{
    return shared;
}

void spawner_get_ready(bool domain)
{
    struct error ignored;

    if (spawner_start(domain, &ignored) < 0)
        spawner_end();
}

/* What it says goes on to the keeper.  Before the last word a command may hand its listener out. */
static int pass_answer(struct message *answer, struct error *err)
{
    do {
        int fds[PROTOCOL_FDS_MAX];
        size_t count = 0;

        *answer = (struct message){ 0 };
        if (hear(answer, fds, &count, err) < 0)
            return -1;
        wire_send(PROTOCOL_INIT_FD, answer, fds, count);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    } while (answer->kind == MESSAGE_LISTENER);
    return 0;
}

static int ask(const struct message *message, bool domain, const int *fds, size_t count, struct message *answer,
               struct error *err)
{
    if (spawner_start(domain, err) < 0)
        return -1;
    if (wire_send(line, message, fds, count) < 0)
        return error_sys(err, "ask for a command");
    return pass_answer(answer, err);
}

/* A command that the keeper is told does not run must not run later: it may be on its way, stopped, or waiting
 * for a file.  It is our child, so its number is still its own. */
static void give_up(const struct message *message, const struct error *err)
{
    spawner_end();
    if (shared && shared->command > 0)
        kill(shared->command, SIGKILL);
    if (shared && shared->entering > 0)
        kill(shared->entering, SIGKILL);
    launch_failed(message, 125, err);
}

int spawn(const struct message *message, uint32_t place, bool domain, const int *fds, size_t count,
          struct spawned *out)
{
    struct message answer = { .pid = -1 };
    struct error err;

    if (share_memory(&err) < 0) {
        launch_failed(message, 125, &err);
        return -1;
    }
    shared->entering = shared->command = 0; /* the one before is a command now */
    shared->place = place;
    shared->over[place] = WATCH_ON;
    if (ask(message, domain, fds, count, &answer, &err) < 0) {
        give_up(message, &err);
        return -1;
    }
    if (answer.kind != MESSAGE_STARTED)
        return -1;
    *out = (struct spawned){ answer.pid, message->flags & START_WATCHED ? shared->entering : answer.pid };
    return 0;
}

void watcher_tell(uint32_t place, pid_t watcher, int number)
{
    enum watch_stage now = (enum watch_stage)shared->over[place];
    enum watch_stage next = number != SIGKILL ? WATCH_TERM : now < WATCH_KILL ? WATCH_KILL : WATCH_GIVEN_UP;

    if (next <= now)
        return;
    shared->over[place] = (unsigned char)next;
    kill(watcher, SIGCONT); /* whoever can stop it can stop it */
    kill(watcher, next == WATCH_GIVEN_UP ? SIGKILL : SIGUSR1);
}
