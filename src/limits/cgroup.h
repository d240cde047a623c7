#pragma once

/* The control groups of one sandbox: made with their limits, joined by its first process, read, and
 * removed when nobody is in them any more. */

#include "limits/limits.h"

#include <sys/types.h>

struct strings;

struct cgroup {
    enum cgroup_kind kind;
    unsigned have;                /* 1 << enum controller */
    char *dirs[CONTROLLER_COUNT]; /* V1: one a controller; else the first one */
};

#define CGROUP_INIT ((struct cgroup){ 0 })

void cgroup_free(struct cgroup *cgroup);

/* Makes the groups that `limits` needs, with everything set and read back.  None needed: `out` is empty.  On
 * failure nothing is left.  Not for CGROUP_MANAGER, which needs a process first (manager.h). */
int cgroup_make(const struct limits *limits, const char *id, struct cgroup *out, struct error *err);

/* Whether what limits->items say about this group is in force there. */
int cgroup_check(const struct cgroup *cgroup, const struct limits *limits, struct error *err);

/* V2: a handle to clone into, or -1.  The caller closes it. */
int cgroup_open(const struct cgroup *cgroup, struct error *err);

/* V1: the files that a process writes "0" to in order to be in the groups, as long as it has one thread.
 * "tasks", not "cgroup.procs": that one takes a lock for which the whole machine is waited for. */
void cgroup_joins(const struct cgroup *cgroup, struct strings *out);

/* What the groups have counted.  A number that they do not have stays as it is. */
struct cgroup_counts {
    uint64_t memory_peak, memory_now; /* bytes, with what files take in memory */
    uint64_t processes_peak, processes_now;
    uint64_t user_us, system_us;
    uint64_t killed_for_memory, refused_forks, throttled; /* how often */
};

void cgroup_read(const struct cgroup *cgroup, struct cgroup_counts *out);

/* Removes groups beside ours that somebody left who was killed with their guard.  Best effort. */
void cgroup_sweep(const struct cgroup *cgroup);
void cgroup_sweep_dir(const char *dir);

/* Removes the groups, waiting for the last process to leave; -1: something is still in them. */
int cgroup_remove(const struct cgroup *cgroup, unsigned patience_ms);
int cgroup_remove_dir(const char *dir, unsigned patience_ms);
