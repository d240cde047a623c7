#pragma once

#include "store/copytree.h"

struct plan;
struct sandbox_dir;

/* --workspace copy: takes a copy of each tree of the workspace into the directory of the sandbox, without
 * what is hidden, and lets the plan lie on it.  A plan that was carried out before, for another directory,
 * starts again from the host's own tree.  `how` has no trees: only what is asked and told meanwhile. */
int private_copy_take(struct plan *plan, const char *state, const struct sandbox_dir *dir,
                      const struct copytree *how, struct strings *notes, struct error *err);
