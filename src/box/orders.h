#pragma once

/* What the keeper tells a clone that is already there.  The clone is made before anybody knows what
 * for: the kernel takes as long for its namespaces as we do for the plan.  So the plan is copied into
 * memory that both have had, at the same address, since before the clone. */

#include "box/plan.h"

struct error;

struct orders {
    struct plan plan; /* without what only the keeper needs: argv, env, image_check */
    const char *state, *id;
};

/* Memory for orders; NULL: there is none. */
struct orders *orders_new(void);
void orders_free(struct orders *orders);

/* Everything that is not a constant of the program lies in the shared memory afterwards. */
int orders_write(struct orders *orders, const struct plan *plan, const char *state, const char *id,
                 struct error *err);
