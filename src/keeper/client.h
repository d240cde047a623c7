#pragma once

/* One command in a sandbox that stays, seen from whoever asked for it. */

#include "keeper/result.h"

#include <stdbool.h>
#include <stdint.h>

struct client {
    int keeper;              /* a connection, borrowed */
    const char *cwd;         /* NULL: as the sandbox was made */
    const char *const *argv; /* NULL: attach to `step` */
    const char *const *envp; /* added to the sandbox's own; may be NULL */
    const char *user;        /* NULL: as the sandbox was made */
    uint64_t step;           /* 0: the last that runs */
    uint64_t timeout_ms;     /* 0: none */
    bool tty;
    bool detach, input; /* it goes on without us; and its input stays open */
    int in, out, err;   /* usually 0, 1, 2; -1: closed */
};

/* Stays with it to the end, or until it runs if it is detached: bytes, signals, terminal.  Gives the number of
 * its step in *step.  -1 only for RESULT_FAILED, as keeper_run() does. */
int client_run(const struct client *client, uint64_t *step, struct result *result, struct error *err);
