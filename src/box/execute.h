#pragma once

#include "box/orders.h"

struct error;

/* What a process that carries steps out knows.  All descriptors are in its own mount namespace. */
struct executor {
    const struct orders *orders;
    const struct plan *plan; /* of the orders */
    int layers;              /* sandboxes/<id>: where u0, w0, m0 ... are; the mounter's */
    int root;                /* the new root, -1 before STEP_ROOT */
    int stage;               /* an own tmpfs in which id-mapped trees are attached, -1 if there are none */
    int empty;               /* a directory that is always empty */
    int userns;              /* for id-mapping, -1 if trees are not */
    int *copies;             /* one a tree: its id-mapped copy, detached (executor_prepare) */
    int null;                /* the host's /dev/null, for masks of files */
    int nothing;             /* an empty read-only tmpfs, for masks of directories; -1: not made yet */
    int proc, dev;           /* /proc and /dev of the new root, once mounted */
    int go;                  /* a socket between mounter and clone */
    struct error *network;   /* what went wrong when it was made; the clone's */
    int landlock;            /* the ruleset, once made */
    uint64_t *mounts;        /* ids of the mounts made, with the flags they must have: pairs */
    size_t mount_count, mount_cap;
};

/* For root's mounter, in the host's mount namespace: makes id-mapped copies of the trees.  Inside the
 * sandbox's the kernel would not part a tree from what is mounted below it. */
int executor_prepare(struct executor *x, struct error *err);

/* Both carry out all steps of one actor in order; the error names the step and what it needs.  The
 * mounter sends the root over `go` when it is there, and word when all is done; the clone waits for
 * each where its plan says so. */
int executor_mount(struct executor *x, struct error *err);
int executor_clone(struct executor *x, struct error *err);

/* STEP_VERIFY and STEP_LANDLOCK, in files of their own. */
int verify_mounts(const struct executor *x, struct error *err);
int landlock_build(const struct plan *plan, int *out, struct error *err);
