#pragma once

#include "store/copytree.h"

struct plan;

/* Where copies are, or go to: the directory of a sandbox, or a layer (store/bottom.h). */
struct private_place {
    int dir;
    const char *path; /* absolute; of one that is being made, as it will be called */
};

/* --workspace copy: takes a copy of each tree of the workspace, without what is hidden, and lets the plan lie
 * on it.  A plan that was carried out before, for another directory, starts again from the host's own tree.
 * `how` has no trees: only what is asked and told meanwhile. */
int private_copy_take(struct plan *plan, const struct private_place *place, const struct copytree *how,
                      struct strings *notes, struct error *err);

/* The same with copies that are there already. */
int private_copy_use(struct plan *plan, const struct private_place *place, struct error *err);
