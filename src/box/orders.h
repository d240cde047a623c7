#pragma once

/* What the keeper tells a clone that is already there.  The clone is made before anybody knows what
 * for: the kernel takes as long for its namespaces as we do for the plan.  So the plan is copied into
 * memory that both have had, at the same address, since before the clone. */

#include "box/plan.h"

struct error;

/* Mounts that one process made, by their ids, with the flags they must have. */
struct made {
    size_t count, room;
    struct made_mount {
        uint64_t id, flags;
        size_t step;     /* of the plan, which made it */
        uint64_t parent; /* the mount it is mounted in, once it was verified */
    } items[];
};

/* Both lists as one, which the caller frees. */
struct made *made_join(const struct made *one, const struct made *other);

struct orders {
    struct plan plan;     /* without what only the keeper needs: argv, env, image_check */
    struct strings joins; /* files that a process writes "0" to, to be in its control groups */
    const char *state, *id;
    struct made *by_mounter, *by_clone; /* the other way: theirs to write, ours to read */
};

/* Memory for orders; NULL: there is none. */
struct orders *orders_new(void);
void orders_free(struct orders *orders);

/* Everything that is not a constant of the program lies in the shared memory afterwards. */
int orders_write(struct orders *orders, const struct plan *plan, const struct strings *joins, const char *state,
                 const char *id, struct error *err);
