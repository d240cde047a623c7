#pragma once

/* The parts of the program that runs as PID 1 inside a sandbox.  It is linked static
 * against musl, embedded in `cove` and started from a sealed memfd: nothing of the host's file
 * system, and nothing of the keeper's memory, comes in with it. */

#include "init/protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum launch_as {
    LAUNCH_OWN,    /* from PID 1: the command enters the Landlock domain itself */
    LAUNCH_INSIDE, /* from the spawner, which is in the domain if there is one: a child of PID 1 all the same */
    LAUNCH_FREE,   /* there is no domain */
    LAUNCH_WATCHED, /* from its watcher, which the spawner has forked: as LAUNCH_INSIDE, but its own child */
};

/* What a command is started with: START and its words, taken apart. */
struct start {
    struct message message;
    const char *cwd;
    char **argv, **envp;
    int stdio[3]; /* -1 with a terminal */
    int terminal; /* the pty's other side, -1 without */
    int program;  /* a sealed memfd that is run instead of argv[0], -1 without */
    enum launch_as as;
    pid_t *entering; /* LAUNCH_INSIDE, LAUNCH_WATCHED: has its pid before it does anything */
    int failed;      /* 125, 126 or 127 when it could not be started, and then why */
    struct error error;
};

/* Starts what START asks for and says STARTED or FAILED, once, to who is at PROTOCOL_INIT_FD: the keeper, or
 * for the spawner PID 1; -1 if it does not run.  `entering` as in struct start. */
pid_t launch(const struct message *message, enum launch_as as, pid_t *entering, const int *fds, size_t count);

/* Says that what START asked for does not run. */
void launch_failed(const struct message *message, int status, const struct error *error);

/* Commands whose end somebody waits for. */
enum { COMMANDS_MAX = 1024 };

/* How far it is with a command that has a time. */
enum watch_stage { WATCH_ON, WATCH_TERM, WATCH_KILL, WATCH_GIVEN_UP };

/* Memory of PID 1, the spawner and watchers. */
struct shared {
    pid_t entering, command; /* who is on the way: what PID 1 will be the parent of; of a watcher its command */
    uint32_t place;          /* of that command, below COMMANDS_MAX */
    volatile unsigned char over[COMMANDS_MAX]; /* enum watch_stage, by place */
};

/* A command that runs: `pid` as everybody knows it, and our child, which is its watcher if it has one. */
struct spawned {
    pid_t pid, child;
};

/* The same by the spawner (spawner.c), which is started if there is none.  What fails does not run later: -1.
 */
int spawn(const struct message *message, uint32_t place, bool domain, const int *fds, size_t count,
          struct spawned *out);

/* In the spawner: the same, with a watcher (watcher.c) between. */
void watcher_start(const struct message *message, struct shared *shared, const int *fds, size_t count);

/* In PID 1: the time of the command at `place` is up; its watcher looks at once. */
void watcher_tell(uint32_t place, pid_t watcher, int number);

/* Kills whoever traces a process or one of its threads: what it traces is not gone before it says so. */
void end_tracers(pid_t pid);

/* Whether a child that has ended was it. */
bool spawner_was(pid_t pid);

/* Whether there is nobody but PID 1 and it. */
bool spawner_is_alone(void);

/* Ends it, and waits for that; nothing of it is left then.  The next spawn() starts another. */
void spawner_end(void);

/* Whether there ever was one; and starts one, so that the next command need not wait for that.  If it fails,
 * spawn() will say so. */
bool spawner_is_used(void);
void spawner_get_ready(bool domain);

/* MARKS: makes the place where programs inside mark steps, and hands its socket out. */
void marks_open(const int *fds, size_t count);

/* Stops every process and says PAUSED, and lets those go on that were not stopped before.  With patience: who
 * does not stop in that time is left to the keeper, and everybody as they are. */
void pause_all(uint64_t patience_ms);
void resume_all(void);

/* While it is paused: stops whoever was woken.  Gives the milliseconds to the next look, -1: there is no pause.
 */
int pause_watch(void);

/* Whether there is a pause: then a SIGCONT for this process group has to wait for its end. */
bool pause_holds(pid_t group);

/* In the spawner: enters the Landlock domain.  -1: it does not hold, or cannot be entered. */
int command_enter_domain(struct error *err);

/* ASIDE: lets the keeper exchange what our overlays lie on, if nobody but us uses them.  Comes back when
 * everything is mounted again, and does not come back if that cannot be. */
void switch_layers(const int *fds, size_t count);

/* The mount that is seen at `path`, as /proc/self/mountinfo numbers it; 0 on failure. */
uint64_t mount_id(const char *path);

/* In the child, in PID 1's memory: takes every right away that a command must not have, checks
 * that it is gone, and becomes the command.  A failure is left in `start`. */
_Noreturn void command_become(struct start *start);
