#pragma once

/* Keeping a sandbox: its record from the start to the end. */

#include "keeper/record.h"

struct plan;
struct result;
struct sandbox_dir;
struct spec;

/* What the record of a new sandbox is made of. */
struct keep_about {
    const struct plan *plan;
    const struct spec *spec;
    const char *name;             /* NULL: none */
    const struct strings *labels; /* KEY or KEY=VALUE */
    struct timespec created;
};

/* Refuses a name or a label that is none. */
int keep_check(const struct keep_about *about, struct error *err);

/* Writes the record of a sandbox that starts, in which it is running, and gives it out.  Refuses a
 * name that another sandbox has. */
int keep_begin(const struct keep_about *about, const struct sandbox_dir *dir, struct record *out,
               struct error *err);

/* When no process is left in the sandbox: 0 if it changed nothing, then it has no record any more
 * and is to be removed; 1 if it is kept, and its record says how it ended.  Without a result the
 * keeper was killed.  -1: it is kept, but its record could not be written. */
int keep_end(int dir, struct record *record, const struct result *result, struct error *err);

/* Does the same for a sandbox whose keeper and guard both died.  Best effort. */
void keep_finish(int parent, const char *id);
