#pragma once

/* --workspace rw: the command writes to the owner's tree itself.  What acts by merely being there when it
 * starts is mounted over and stays as it is.  What it makes of that kind cannot be prevented, as no guard
 * of the kernel goes by names, so it is taken out of the tree as soon as the command has ended, into the
 * sandbox's layer: there `cove diff` shows it, and `cove apply` asks for it. */

#include "base/array.h"
#include "changes/autorun.h"

struct error;
struct plan;
struct trees;

struct through {
    struct autorun before; /* what was protected */
    struct strings aside;  /* paths that were taken out of the tree */
    struct strings stuck;  /* that could not be */
};

#define THROUGH_NONE ((struct through){ 0 })

void through_free(struct through *through);

/* Looks through the workspace in `trees`, before the plan is made of them, and says what is granted. */
int through_prepare(struct through *through, struct trees *trees, struct error *err);
void through_announce(const struct through *through, const struct plan *plan);

/* After the last process of the sandbox is gone; `dir` is its directory. */
void through_finish(struct through *through, const struct plan *plan, int dir);
void through_tell(const struct through *through);
