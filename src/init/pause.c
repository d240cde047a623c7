/* Stopping everybody by signals, where no control group can freeze them.
 *
 * The kernel hands a signal for all out in one piece, and who is just forking begins again after it.  But who
 * is not stopped yet can wake others, and so can a timer at any time.  So it is done in rounds until one finds
 * nobody running, and while the pause lasts we go on looking: who was woken is stopped again.  It has run for a
 * moment then: this is a pause for programs that do not mind, and no wall.  Who was stopped before stays so. */

#include "init/init.h"
#include "init/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STOPPED_MAX = 4096,
    ROUNDS_MAX = 1000, /* a millisecond each */
    WAITING_MAX = 100, /* the same, for who is in the kernel */
    BEAT_FIRST_MS = 1, /* between two looks, longer by and by while nobody wakes */
    BEAT_LAST_MS = 50,
};

static pid_t stopped[STOPPED_MAX];
static size_t stopped_len;
static int beat_ms; /* 0: there is no pause */

/* Who waits in the kernel for a disk does nothing of its own until it has been stopped, but what it has begun
 * may still be done.  Who waits for a child of vfork(), which was stopped before its exec, waits as long as
 * that. */
static bool may_wait;

/* The letter of a thread's state; 0: it is gone. */
static char state_of(const char *path)
{
    char line[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    line[got] = '\0';

    const char *end = strrchr(line, ')'); /* the name may hold anything */

    if (!end || end[1] != ' ')
        return 0;
    return end[2];
}

static char state_of_process(pid_t pid)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return state_of(path);
}

static bool is_still(char state)
{
    return state == 0 || strchr("TtZXx", state) || (may_wait && state == 'D');
}

/* Its first thread may be dead, and the others not stopped yet. */
static bool runs(pid_t pid)
{
    char path[64];
    const struct dirent *entry;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/task", pid);

    DIR *threads = opendir(path);

    while (threads && !found && (entry = readdir(threads))) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", pid, entry->d_name);
        found = *entry->d_name != '.' && !is_still(state_of(path));
    }
    if (threads)
        closedir(threads);
    return found;
}

/* Until one says true. */
static bool any_process(bool (*is)(pid_t pid))
{
    DIR *all = opendir("/proc");
    const struct dirent *entry;
    bool found = false;

    while (all && !found && (entry = readdir(all))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        found = pid > 1 && is(pid);
    }
    if (all)
        closedir(all);
    return found;
}

static bool note_stopped(pid_t pid)
{
    if (stopped_len < STOPPED_MAX && state_of_process(pid) == 'T')
        stopped[stopped_len++] = pid;
    return false;
}

static bool was_stopped(pid_t pid)
{
    for (size_t i = 0; i < stopped_len; i++)
        if (stopped[i] == pid)
            return true;
    return false;
}

/* The last first: a parent that waits for its child must not go on before that does, or it would be told that
 * the child has stopped. */
static pid_t pids[STOPPED_MAX];
static size_t pids_len;

static void go_on(pid_t pid)
{
    if (!was_stopped(pid))
        kill(pid, SIGCONT);
}

static bool note_all(pid_t pid)
{
    if (pids_len < STOPPED_MAX)
        pids[pids_len++] = pid;
    else
        go_on(pid);
    return false;
}

void pause_all(uint64_t patience_ms)
{
    struct message paused = { .kind = MESSAGE_PAUSED };
    int rounds = 0, most = patience_ms ? (int)patience_ms : ROUNDS_MAX;

    stopped_len = 0;
    (void)any_process(note_stopped);
    kill(-1, SIGSTOP);
    may_wait = false;
    while (any_process(runs) && ++rounds < most) {
        may_wait = rounds > WAITING_MAX;
        poll(NULL, 0, 1);
        kill(-1, SIGSTOP);
    }
    may_wait = true;
    beat_ms = BEAT_FIRST_MS;
    if (rounds >= most)
        paused.status = EBUSY;
    if (rounds >= most && !patience_ms)
        resume_all();
    wire_send(PROTOCOL_INIT_FD, &paused, NULL, 0);
}

void resume_all(void)
{
    beat_ms = 0;
    pids_len = 0;
    (void)any_process(note_all);
    while (pids_len)
        go_on(pids[--pids_len]);
    stopped_len = 0;
}

int pause_watch(void)
{
    if (!beat_ms)
        return -1;
    if (any_process(runs)) {
        kill(-1, SIGSTOP);
        beat_ms = BEAT_FIRST_MS;
    } else if (beat_ms < BEAT_LAST_MS) {
        beat_ms++;
    }
    return beat_ms;
}

bool pause_holds(pid_t group)
{
    if (!beat_ms)
        return false;
    for (size_t i = 0; i < stopped_len;) {
        if (getpgid(stopped[i]) == group)
            stopped[i] = stopped[--stopped_len];
        else
            i++;
    }
    return true;
}
