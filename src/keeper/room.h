#pragma once

/* A sandbox that we need for ourselves, from its plan to its end: it has no guard and no record, and nothing
 * is left of it. */

#include "keeper/result.h"

#include <stdint.h>

struct box;
struct host;
struct plan;

struct room {
    uint64_t timeout_ms;  /* 0: none */
    uint64_t output_most; /* bytes that may be written to `out` or `err` if they are files; 0: no bound */
    int in, out, err;     /* -1: closed */
    int program;          /* as in struct keeper_run */
    /* Called once, with `owner`, when the command runs; may be NULL.  A failure ends the run. */
    int (*started)(void *owner, const struct box *box, struct error *err);
    void *owner;
};

/* Runs the command of the plan.  -1 if the sandbox could not be had, or did not last; what became of the
 * command is in the result.  The plan is taken anew where the host image was out of date. */
int room_run(const struct host *host, struct plan *plan, const struct room *room, struct result *result,
             struct error *err);
