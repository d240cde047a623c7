#pragma once

#include "box/plan.h"

struct error;
struct network;

/* What a process that carries steps out knows.  All descriptors are in its own mount namespace. */
struct executor {
    const struct plan *plan;
    const char *state;       /* path of the state directory */
    const char *id;          /* of the sandbox */
    int layers;              /* sandboxes/<id>: where u0, w0, m0 ... are; opened by executor_open() */
    int root;                /* the new root, -1 before STEP_ROOT */
    int stage;               /* an own tmpfs in which id-mapped trees are attached, -1 if there are none */
    int empty;               /* a directory that is always empty */
    int userns;              /* for id-mapping, -1 if trees are not */
    int *copies;             /* one a tree: its id-mapped copy, detached (executor_prepare) */
    int null;                /* the host's /dev/null, for masks of files */
    int nothing;             /* an empty read-only tmpfs, for masks of directories; -1: not made yet */
    int proc, dev;           /* /proc and /dev of the new root, once mounted */
    struct network *network; /* being made beside the steps */
    int landlock;            /* the ruleset, once made */
    uint64_t *mounts;        /* ids of the mounts made, with the flags they must have: pairs */
    size_t mount_count, mount_cap;
};

/* Opens what the steps need, in the calling process's mount namespace. */
int executor_open(struct executor *x, struct error *err);

/* For the mounter, in the host's mount namespace: makes id-mapped copies of the trees.  Inside the
 * sandbox's the kernel would not part a tree from what is mounted below it. */
int executor_prepare(struct executor *x, struct error *err);

/* For the clone when another process was the mounter and `root` came from it: remembers its
 * mounts for the comparison. */
int executor_adopt(struct executor *x, struct error *err);

/* Carries out all steps of one actor in order.  The error names the step and what it needs. */
int executor_run(struct executor *x, enum actor actor, struct error *err);

/* STEP_VERIFY and STEP_LANDLOCK, in files of their own. */
int verify_mounts(const struct executor *x, struct error *err);
int landlock_build(const struct plan *plan, int *out, struct error *err);
