#pragma once

/* Files of a sandbox as they were, under processes that stay alive. */

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>

struct box;
struct error;
struct host;
struct plan;
struct sandbox_dir;

struct inplace {
    const struct box *box;
    const struct plan *plan;
    const struct host *host;
    const struct sandbox_dir *dir;
    int layers;                   /* layers/ */
    const struct strings *stack;  /* what the state that is wanted lies on, newest first */
    const struct strings *differ; /* layers by which that and what is there now differ */
    bool pair;                    /* as in store/restore.h */
};

/* Everybody must be at rest.  `changed` is how much was touched.  After a failure each file is in one of its
 * two states. */
int inplace_restore(const struct inplace *what, uint64_t *changed, struct error *err);
