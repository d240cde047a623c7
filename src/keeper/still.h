#pragma once

/* Checkpoints of a sandbox that does not run, by whoever has its lock. */

#include "store/store.h"

#include <stdint.h>

struct error;
struct record;

struct still {
    const char *state; /* the state directory */
    const struct record *record;
    const struct sandbox_dir *dir;
};

/* Freezes what was written, if anything was; `layer` is what the sandbox lies on. */
int still_checkpoint(const struct still *still, char layer[ID_LENGTH + 1], struct error *err);

/* Goes to another layer; what is there is frozen first. */
int still_turn(const struct still *still, const char *layer, uint64_t step, struct error *err);
