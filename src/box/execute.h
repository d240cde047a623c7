#pragma once

#include "box/orders.h"

struct error;
struct network;
struct processors;

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
    int null;                /* the new root's /dev/null, for masks of files; -1: not opened yet */
    int nothing;             /* an empty read-only tmpfs, for masks of directories; -1: not made yet */
    int proc, dev;           /* /proc and /dev of the new root, once mounted */
    int go;                  /* a socket between mounter and clone */
    struct network *network; /* as it was made; the clone's */
    int landlock;            /* the ruleset, once made */
    struct processors *processors; /* to be taken again before the root is left; the clone's */
    bool pivoted;                  /* the host's root lies over ours, to be unmounted */
    struct made *made;             /* its own list, of the orders */
    size_t step;                   /* that is being carried out */
    bool overlays_only;            /* of all trees only those that are written to by overlays are wanted, */
    uint64_t trees;                /* and of these only those with such layers (step_is_of()) */
    bool look_only;                /* these are for looking at: without the sandbox's own directories */
    int init_fd;                   /* the socket to the keeper; the clone's */
};

/* For root's mounter, in the host's mount namespace: makes id-mapped copies of the trees.  Inside the
 * sandbox's the kernel would not part a tree from what is mounted below it. */
int executor_prepare(struct executor *x, struct error *err);

/* Opens what overlays are made of, in the mount namespace they are mounted in: a part of executor_mount(). */
int executor_open(struct executor *x, struct error *err);

/* Both carry out all steps of one actor in order; the error names the step and what it needs.  The
 * mounter sends the root over `go` when it is there, and word when all is done and when the host's root is
 * unmounted; the clone waits for each where its plan says so.  The clone tells the keeper.  Who comes after it
 * must wait for the end of the mounter (init/main.c). */
int executor_mount(struct executor *x, struct error *err);
int executor_clone(struct executor *x, struct error *err);

/* For the keeper: compares the sandbox's mountinfo, which it takes, with the mounts that were made, and notes
 * what each is mounted in. */
int verify_mounts(struct made *made, int list, struct error *err);
