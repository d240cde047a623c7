#pragma once

/* The keeper of a sandbox that stays: it waits for whoever wants something of the sandbox, until it is told to
 * end it. */

#include "keeper/retention.h"

#include <stdbool.h>
#include <stdint.h>

struct box;
struct error;
struct host;
struct plan;
struct record;
struct reel;
struct registry_places;
struct rules;
struct sandbox_dir;
struct services;

struct stay {
    const struct host *host;
    struct plan *plan;
    struct sandbox_dir *dir;
    struct box *box;       /* that sets itself up */
    struct record *record; /* which says that it runs */
    const struct rules *rules;
    const struct reel *reel;
    const struct registry_places *registries; /* for what is proposed where it refuses; or NULL */
    uint64_t timeout_ms;                      /* the most that one command may have; 0: any time */
    const struct services *services;          /* that are started by themselves; NULL: none */
    struct checkpoint_bounds bounds;
    /* Called once, with `owner`, when commands can be run; may be NULL.  `failed`: it runs, but a service does
     * not; NULL: all do.  False: nobody wants it any more, and it is ended and removed. */
    bool (*ready)(void *owner, const struct error *failed);
    void *owner;
};

/* Stays with the sandbox to its end.  -1 if it was never ready, with nothing of it left but its files. */
int stay_run(const struct stay *stay, struct error *err);
