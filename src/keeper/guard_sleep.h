#pragma once

/* A guard of a sandbox that stays becomes a small program while there is nothing to do, and is made anew when
 * there is: what it knows goes through its variables. */

#include "box/box.h"
#include "box/plan.h"
#include "keeper/record.h"
#include "store/store.h"

#include <stdbool.h>

struct guarded {
    struct box box;          /* pidfd, control groups */
    const struct plan *plan; /* only what box/laid.h needs is there in one that has woken up */
    struct sandbox_dir dir;
    int verdict, users;
    struct record *record; /* NULL: it has none, or is to be read (`woken`) */
    bool woken;
    time_t wall_ahead; /* of the record */
};

/* With the descriptors of guard_fds.h.  Comes back only if it cannot be done. */
void guard_sleep(const struct guarded *guarded);

/* In a process that was made by a sleeper.  False: what it should know is not there. */
bool guard_recall(struct guarded *out, struct plan *plan);
