#pragma once

#include "base/array.h"
#include "spec/spec.h"

#include <sys/types.h>

struct place;

/* One host directory that is seen inside.  Device and inode are those of the directory that was
 * checked; whoever mounts it compares them, so that a path swapped in between is noticed. */
struct tree {
    char *source, *target; /* absolute; the target is as seen inside */
    enum tree_mode mode;
    struct strings hide;    /* paths below it, relative, that are absent inside */
    struct strings protect; /* TREE_RW: paths below it, relative, that stay as they are */
    dev_t device;
    ino_t inode;
    char *origin; /* `source` is a private copy of this; NULL: it is the host's own */
    dev_t origin_device;
    ino_t origin_inode;
    bool file;       /* a single regular file, not a directory */
    const char *why; /* for the plan: one of the TREE_WHY_ below */
};

/* Compared by address or by text, never built at run time. */
#define TREE_WHY_IMAGE "image"
#define TREE_WHY_WORKSPACE "workspace"
#define TREE_WHY_GIT "git"
#define TREE_WHY_TOOLS "tool root"
#define TREE_WHY_CACHE "cache"
#define TREE_WHY_GRANT "granted"

struct trees {
    struct tree *items;
    size_t len, cap;
};

#define TREES_NONE ((struct trees){ 0 })

void trees_free(struct trees *trees);

/* Adds what `place` holds, to be seen at `target`.  The result is valid until the next one is added. */
struct tree *trees_add(struct trees *trees, const struct place *place, const char *target, enum tree_mode mode,
                       const char *why);

/* By target, so that a tree comes before the trees that are mounted inside it. */
void trees_sort(struct trees *trees);

/* NULL if no tree has this target. */
struct tree *trees_at(const struct trees *trees, const char *target);

/* The tree with the longest target that `path` lies in (or is); NULL if there is none. */
struct tree *trees_around(const struct trees *trees, const char *path);

void trees_remove(struct trees *trees, struct tree *tree);
