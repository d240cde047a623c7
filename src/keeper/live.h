#pragma once

/* --workspace live, from the keeper's side: a child that brings ordinary changes home while the command
 * runs, and what it has to say at the end. */

#include "keeper/live_main.h"
#include "keeper/live_report.h"

#include <sys/types.h>

struct plan;

struct live {
    pid_t pid; /* 0: none */
    int control, report;
};

#define LIVE_NONE ((struct live){ 0, -1, -1 })

/* `dir` is the sandbox's directory.  Nothing was written before `since`. */
int live_start(const struct plan *plan, int dir, struct timespec since, struct live *out, struct error *err);

/* When no process is left in the sandbox: has the rest brought home, and waits for it.  A signal that is
 * held back (SIGINT and its like) cuts that short.  True if the host has everything now; if not, or
 * if nobody knows, the layer is to be kept. */
bool live_finish(struct live *live, struct live_end *out);

/* For a start that failed. */
void live_drop(struct live *live);
