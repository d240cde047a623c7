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
    bool stays;
    uint64_t ttl_ms, idle_ms; /* of one that stays, as in the record */
    const char *then;
    bool no_checkpoints;
    struct timespec created;
};

/* Refuses a name or a label that is none. */
int keep_check(const struct keep_about *about, struct error *err);

/* Writes the record of a sandbox that starts, in which it is running, and gives it out.  Refuses a
 * name that another sandbox has. */
int keep_begin(const struct keep_about *about, const struct sandbox_dir *dir, struct record *out,
               struct error *err);

/* Writes the record of one that does not run yet.  Refuses a name that another sandbox has. */
int keep_name(const struct sandbox_dir *dir, const struct record *record, struct error *err);

/* When no process is left in the sandbox: 0 if it changed nothing, then it has no record any more
 * and is to be removed; 1 if it is kept, and its record says how it ended.  Without a result the
 * keeper was killed.  -1: it is kept, but its record could not be written. */
int keep_end(int dir, struct record *record, const struct result *result, struct error *err);

/* For a start of a sandbox that was there before: lets the plan use its layers, each for the tree it was made
 * for. Refuses if one of the owner's directories is another one by now. */
int keep_adopt(const struct record *record, struct plan *plan, struct error *err);

/* Writes the record of a sandbox that is started again, and gives it out: what it was called stays. */
int keep_again(const struct keep_about *about, const struct record *old, const struct sandbox_dir *dir,
               struct record *out, struct error *err);

/* Whether spec.json, of which a sandbox is started again or forked, is what its record vouches for. */
int keep_check_spec(int dir, const struct record *record, struct error *err);

/* Another spec.json for the sandbox `id`, which does not run; its record vouches for that one then. */
int keep_replace_spec(int dir, const char *id, const char *spec, struct error *err);

/* For a sandbox that stays: nothing in it runs any more. */
int keep_stop(int dir, struct record *record, const struct result *result, struct error *err);

/* Does the same for a sandbox whose keeper and guard both died.  Best effort. */
void keep_finish(int parent, const char *id);
