#pragma once

/* The checkpoints of a sandbox that stays: after each step what it wrote becomes a frozen layer
 * (store/layers.h), and the sandbox goes on above it. */

#include "keeper/counting.h"
#include "keeper/later.h"
#include "keeper/midway.h"
#include "keeper/retention.h"
#include "store/stack.h"

#include <stdbool.h>
#include <stdint.h>

struct box;
struct error;
struct jobs;
struct meter;
struct stay;

struct checkpoints {
    const struct stay *stay;
    struct box *box;
    struct jobs *jobs;
    struct meter *meter;
    struct later later;
    struct counting counting;
    int layers;      /* -1: none are made */
    uint32_t turned; /* steps up to this one were rolled back, if they had not been looked at before */
    char
        midway[ID_LENGTH + 1]; /* the last copy of what is in use (midway.h), since the last switch; "": none */
    struct midway making;      /* the next one of those */
    struct retention retention;

    /* Told when one is over that was made beside the loop: an enum midway_result, or -1: the sandbox is lost.
     */
    void (*copied)(void *owner, int made, const struct error *err);
    void *owner;
};

#define CHECKPOINTS_NONE                                                                                       \
    ((struct checkpoints){                                                                                     \
        .later = LATER_NONE, .counting = COUNTING_NONE, .layers = -1, .making = MIDWAY_NONE })

struct stack_place checkpoints_place(const struct checkpoints *checkpoints);

/* The layer that shows what was there at the last checkpoint; "": there was none. */
const char *checkpoints_shown(const struct checkpoints *checkpoints);

/* The functions below give -1 when the sandbox is lost and must be ended. */

/* Before anybody hears that the sandbox is ready: what it cannot be without. */
int checkpoints_open(struct checkpoints *checkpoints, struct error *err);

/* When the sandbox is ready: the first checkpoint, or that of what an earlier keeper has left. */
int checkpoints_begin(struct checkpoints *checkpoints, struct error *err);

/* After each turn of the loop: a checkpoint, if steps have ended, and the third line of their trace. */
int checkpoints_tend(struct checkpoints *checkpoints, struct error *err);

/* How many milliseconds the loop may wait until it is called again; -1: for ever. */
int checkpoints_patience(const struct checkpoints *checkpoints);

/* Makes one now, if anything was written, also while processes are alive; `layer` shows what is there.  1: not
 * now, `err` says why.  CHECKPOINTS_LATER: files are being copied, and `copied` is told. */
enum { CHECKPOINTS_LATER = 2 };
int checkpoints_make(struct checkpoints *checkpoints, char layer[ID_LENGTH + 1], struct error *err);

/* Goes to another layer, when no process is left; what is there is frozen first.  `step` is for the trace.
 * 1: everything is as it was, `err` says why. */
int checkpoints_turn(struct checkpoints *checkpoints, const char *layer, uint64_t step, struct error *err);

/* Before the trace is closed: waits a moment for what is being counted; not if nobody will read it. */
void checkpoints_settle(struct checkpoints *checkpoints, bool read);

/* The same for who stays alive: then files go back where they are, which `in_place` tells; else it is a turn.
 * (stepback.c) */
int checkpoints_undo(struct checkpoints *checkpoints, const char *layer, uint64_t step, bool *in_place,
                     struct error *err);

/* Before that: 1 if what changed is being copied first, beside the loop; an undo has less to copy then. */
int checkpoints_prepare_undo(struct checkpoints *checkpoints, struct error *err);

/* What midway.c tells. */
void checkpoints_copied(struct checkpoints *checkpoints, int made, struct error *err);

/* Lets go of old ones. */
void checkpoints_drop_old(struct checkpoints *checkpoints);

void checkpoints_end(struct checkpoints *checkpoints);
