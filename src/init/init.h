#pragma once

/* The parts of the program that runs as PID 1 inside a sandbox.  It is linked static
 * against musl, embedded in `cove` and started from a sealed memfd: nothing of the host's file
 * system, and nothing of the keeper's memory, comes in with it. */

#include "init/protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What a command is started with: START and its words, taken apart. */
struct start {
    struct message message;
    const char *cwd;
    char **argv, **envp;
    int stdio[3]; /* -1 with a terminal */
    int terminal; /* the pty's other side, -1 without */
    bool domain;  /* there is a Landlock domain to enter: PROTOCOL_LANDLOCK_FD */
    int failed;   /* 125, 126 or 127 when it could not be started, and then why */
    struct error error;
};

/* Starts what START asks for and tells the keeper STARTED or FAILED; -1 if it does not run. */
pid_t launch(const struct message *message, bool domain, const int *fds, size_t count);

/* In the child, in PID 1's memory: takes every right away that a command must not have, checks
 * that it is gone, and becomes the command.  A failure is left in `start`. */
_Noreturn void command_become(struct start *start);
