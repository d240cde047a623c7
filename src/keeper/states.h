#pragma once

/* Which frozen layer shows the files as they were after a step, as far as the trace knows:
 *
 *   checkpoint    layer, step    what the sandbox lies on from now on, and after which step that was
 *   rollback      layer, step    the same, of one that lies further back
 *   undo          layer, step    the same, in place, while processes are alive
 *   checkpoint.dropped  layer, why   it cannot be gone back to any more
 *   step.changed  trace/step.h   a step without a checkpoint has changed nothing, or says why it has none */

#include "base/array.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct trace;

#define STATES_CHECKPOINT "checkpoint" /* STEP_CHECKPOINT, trace/step.h */
#define STATES_ROLLBACK "rollback"
#define STATES_UNDO "undo"
#define STATES_DROPPED "checkpoint.dropped"

struct state {
    uint64_t step;
    char layer[ID_LENGTH + 1]; /* "": there is none */
    char *why;                 /* then; NULL: nobody said */
};

/* What a step began with. */
struct beginning {
    uint64_t step, parent; /* after which one: not the one before in number, if it was gone back meanwhile */
    char before[ID_LENGTH + 1]; /* the layer; "": that has no name */
};

struct beginnings {
    struct beginning *items;
    size_t len, cap;
};

struct states {
    struct state *items; /* in the order of the trace; a step is there once */
    size_t len, cap;
    struct beginnings beginnings;
    struct strings dropped;  /* layers that cannot be gone back to any more */
    struct strings named;    /* every layer that was made, in that order; some of them more than once */
    uint64_t at;             /* the step after which the sandbox is */
    char now[ID_LENGTH + 1]; /* what the sandbox lay on at last; "": that has no name */
    uint64_t last;           /* number of the last step that was started */
};

#define STATES_NONE ((struct states){ 0 })
#define autostates __attribute__((cleanup(states_free)))

void states_free(struct states *states);

/* Empty if there is no trace. */
int states_read(int dir, struct states *out, struct error *err);

/* The layer after a step.  ERROR_MISSING: there is no such step; ERROR_REFUSED: it has no checkpoint. */
int states_find(const struct states *states, uint64_t step, char layer[ID_LENGTH + 1], struct error *err);

/* What undoes the last `count` steps that changed something and were not undone yet: the layer, after which
 * step that is, and the first one that is undone.  ERROR_MISSING: there are not so many; ERROR_REFUSED: what
 * was before has no checkpoint. */
int states_before(const struct states *states, uint64_t count, uint64_t *step, uint64_t *undone,
                  char layer[ID_LENGTH + 1], struct error *err);

/* Why there is none; NULL: there is one, or nobody said. */
const char *states_why(const struct states *states, uint64_t step);

/* What a step began with: the layer, and after which one that was.  ERROR_MISSING: there is no such step;
 * ERROR_REFUSED: what was before has no checkpoint. */
int states_begin(const struct states *states, uint64_t number, uint64_t *step, char layer[ID_LENGTH + 1],
                 struct error *err);

/* Whether anything is known of it. */
bool states_has(const struct states *states, uint64_t step);

/* Adds a line that a checkpoint goes: `why` is the bound that it passes, "keep" or "space". */
int states_write_dropped(struct trace *trace, const char *layer, const char *why, struct error *err);

/* Adds a line of one of the first three kinds. */
int states_write(struct trace *trace, const char *kind, const char *layer, uint64_t step, struct error *err);
