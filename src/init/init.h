#pragma once

/* The parts of the program that runs as PID 1 and as spawner inside a sandbox.  It is linked static
 * against musl, embedded in `cove` and started from a sealed memfd: nothing of the host's file
 * system, and nothing of the keeper's memory, comes in with it. */

#include "init/protocol.h"

#include <stdbool.h>
#include <sys/types.h>

/* Commands whose end somebody waits for.  Shared by PID 1 and the spawner (one mapping): when a payload
 * kills the spawner, its commands become PID 1's children, and PID 1 must know which to report. */
enum { COMMANDS_MAX = 1024 };
struct commands {
    volatile pid_t pids[COMMANDS_MAX];
};

bool commands_add(struct commands *commands, pid_t pid);
bool commands_remove(struct commands *commands, pid_t pid); /* false: it was none */

/* The spawner: enters the Landlock domain once and starts commands until the keeper goes away. */
_Noreturn void spawner_run(struct commands *commands);

/* What a command is started with: START and its words, taken apart. */
struct start {
    struct message message;
    const char *cwd;
    char **argv, **envp;
    int stdio[3];   /* -1 with a terminal */
    int terminal;   /* the pty's other side, -1 without */
    int error_pipe; /* where a failure is written to; closed by a successful exec */
};

/* In the forked child: takes every right away that a command must not have, checks that it is
 * gone, and becomes the command.  Failures go to start->error_pipe. */
_Noreturn void command_become(const struct start *start);

/* Sends EXITED for `pid` over `fd`. */
struct rusage;
void report_exit(int fd, pid_t pid, int status, const struct rusage *usage);
