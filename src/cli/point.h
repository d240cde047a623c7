#pragma once

/* A point of a sandbox's life that can be gone back to: after a step, or a snapshot. */

#include "cli/which.h"

#include <stdint.h>

struct point {
    char layer[ID_LENGTH + 1];
    uint64_t step;
    uint64_t undone; /* point_before(): the first step that comes after it */
};

/* Cuts ID@STEP behind ID; NULL: it is no such word. */
char *point_split(char *word);

/* ID@STEP in place of the first word is ID and --step STEP; what has no number behind @ stays. */
struct options;
int point_take_step(struct options *options, struct error *err);

/* `word` is the number of a step, 0: before the first one, or the name of a snapshot of this sandbox. */
int point_find(const struct which *which, const struct kept *kept, const char *word, struct point *out,
               struct error *err);

/* The state before the last `count` steps. */
int point_before(const struct which *which, const struct kept *kept, uint64_t count, struct point *out,
                 struct error *err);

/* What this step began with, and after which one that was. */
int point_begin(const struct which *which, const struct kept *kept, uint64_t step, struct point *out,
                struct error *err);

/* The state now: a checkpoint is made, if there is none. */
int point_now(const struct which *which, const struct kept *kept, struct point *out, struct error *err);

/* Goes there: asks the keeper, or does it itself if the sandbox does not run. */
int point_turn(const struct which *which, const struct kept *kept, const struct point *point,
               struct error *err);

/* The same, but what runs stays alive. */
int point_undo(const struct which *which, const struct kept *kept, const struct point *point,
               struct error *err);
