#pragma once

/* A plan is the whole set-up of one sandbox as data: an ordered list of small steps.  It is made
 * from the spec without privilege and without effect, can be printed and tested, and is carried
 * out by a loop (execute.c). */

#include "base/array.h"
#include "box/image_host.h"
#include "box/tree.h"
#include "limits/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct host;
struct spec;
struct text;
struct workspace;

/* Who carries a step out.
 *   KEEPER  the process that clones, before or while it does
 *   MOUNTER assembles the root, beside the clone: for an ordinary user a fork of the clone; for
 *           root a helper that has the host's rights and only the new mount namespace
 *   CLONE   the clone, root of its own user namespace, before it becomes init
 *   COMMAND the child of PID 1, before it becomes the command */
enum actor { BY_KEEPER, BY_MOUNTER, BY_CLONE, BY_COMMAND };

enum step_kind {
    STEP_NAMESPACES,
    STEP_IDS,
    STEP_LIMIT,     /* target: what, source: how */
    STEP_ROOT,      /* the root file system: the image below a writable layer */
    STEP_TREE,      /* a host directory at target */
    STEP_FILE,      /* a single host file at target */
    STEP_TEXT,      /* a file of our own: `source` is its content */
    STEP_DIRECTORY, /* make target with `mode` */
    STEP_LINK,      /* target -> source */
    STEP_PROC,
    STEP_TMPFS, /* source: options */
    STEP_DEVPTS,
    STEP_DEVICE,   /* the host's node `source` */
    STEP_SYSFS,    /* the directory `source` of the host's /sys, read-only */
    STEP_MASK,     /* target of /proc shows nothing */
    STEP_SEAL,     /* a directory of /proc becomes a read-only mount of itself */
    STEP_PROTECT,  /* a path in a tree that is written through stays as it is */
    STEP_COVER,    /* the same for what is hidden there: it shows nothing */
    STEP_READONLY, /* what is mounted at target cannot be changed any more */
    STEP_KNOB,     /* writes source to the file target of /proc/sys */
    STEP_HAND,     /* the root to the clone, with all in it that the clone needs */
    STEP_AWAIT,    /* until the mounter has made the root, or all of it, or has left the host's */
    STEP_PART,     /* the clone needs nothing of the host's root any more */
    STEP_LOOPBACK,
    STEP_HOSTNAME,
    STEP_PIVOT,
    STEP_VERIFY, /* compares the mounts that are there with those that were made */
    STEP_LANDLOCK,
    STEP_FILTER,
    STEP_CAPABILITIES,
    STEP_COUNT,
};

enum { STEP_MODE_OPTIONAL = 1 << 16 }; /* in `mode`: the step is skipped where source or target is missing */

struct step {
    enum step_kind kind;
    enum actor by;
    const char *guard; /* the protection it is part of; tests leave one out by this name */
    char *target, *source;
    mode_t mode;
    uint64_t flags; /* MS_* that the mount must have */
    size_t tree;    /* STEP_ROOT, STEP_TREE, STEP_FILE, STEP_PROTECT, STEP_COVER: index in plan->trees */
    int layer;      /* number of the writable layer, -1 if read-only */
};

struct steps {
    struct step *items;
    size_t len, cap;
};

struct id_row {
    uint32_t inside, outside, count;
};

/* CLONE_NEW*: what every sandbox has of its own. */
extern const uint64_t plan_own_namespaces;

enum { ID_RANGE = 65536, ID_INIT = ID_RANGE - 1 };

struct ids {
    struct id_row uids[2], gids[2];
    size_t rows;       /* of each */
    uint32_t uid, gid; /* of the command, as seen inside */
    uint32_t init;     /* uid and gid of PID 1, as seen inside */
    uint32_t base;     /* outside id of 0 inside, for what root must own */
    bool shifted;      /* by root: a range; trees are id-mapped */
    bool helpers;      /* maps are written by newuidmap and newgidmap */
};

struct plan {
    struct steps steps;
    struct trees trees;      /* trees.items[0] is the image's root */
    struct strings granted;  /* "ADDRESS PORT" that lead to the gateway besides names; "*": all of them */
    struct strings writable; /* what Landlock lets the command write below */
    struct strings stack;    /* frozen layers that the writable ones lie on, newest first (store/layers.h) */
    bool trust;   /* the sandbox's directory has a layer with certificates for the root (keeper/trust.h) */
    bool stays;   /* its PID 1 shares what its program takes of memory with others (box/lent.h) */
    bool resumed; /* it was started before: what a first start puts into its layers is there */
    struct ids ids;
    struct strings argv, env;
    char *cwd;
    char *workspace;
    enum workspace_mode workspace_mode;
    char *hostname;
    struct limits limits;
    int layers;           /* how many writable layers */
    uint64_t namespaces;  /* CLONE_NEW* */
    uint32_t start_flags; /* protocol.h */
    int landlock_abi;
    bool host_image;
    struct image_check image_check;
    const char *without; /* test builds only: guards that are left out, comma-separated */
};

/* "ADDRESS PORT" that lead to the gateway besides names; "*": all of them. */
void plan_granted(const struct spec *spec, struct strings *out);

/* The workspace was found before (the repository's own policy may have narrowed the spec since);
 * `trees` has it, and is empty afterwards. */
int plan_build(const struct spec *spec, const struct host *host, const struct workspace *workspace,
               struct trees *trees, struct plan *plan, struct error *err);
void plan_free(struct plan *plan);

/* The bound on processes that each user inside gets; 0: none, or another way keeps it. */
uint64_t plan_process_rlimit(const struct plan *plan);

/* Whether the host image is still right.  Must be asked before a command runs; if it is not,
 * plan_renew() takes a fresh one into the plan. */
bool plan_holds(const struct plan *plan);
int plan_renew(struct plan *plan, const struct host *host, struct error *err);

/* One line a step, for people, or a JSON document. */
void plan_print(const struct plan *plan, struct text *out);
void plan_json(const struct plan *plan, struct text *out);

/* What a kind of step is called, and what the host must have for it. */
const char *step_name(enum step_kind kind);
const char *step_needs(enum step_kind kind);

/* Ids for this user, image and wish (ids.c). */
int ids_choose(const struct spec *spec, const struct host *host, struct ids *ids, struct error *err);
