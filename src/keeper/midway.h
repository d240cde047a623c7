#pragma once

/* A checkpoint while processes are alive: they rest for a moment, and what changed since the last one is copied
 * into a frozen layer.  The sandbox goes on with the directories that it has. */

#include "keeper/loop.h"
#include "keeper/rest.h"
#include "store/layers.h"

#include <stdbool.h>
#include <sys/types.h>

struct checkpoints;
struct error;

enum midway_result {
    MIDWAY_MADE,
    MIDWAY_SAME,      /* nothing has changed since the last one */
    MIDWAY_NOT,       /* `err` says why there is none */
    MIDWAY_UNDER_WAY, /* checkpoints_copied() is told of one of the others, or of -1 */
};

/* One that is being made. */
struct midway {
    pid_t child; /* who copies; 0: nobody does */
    struct loop_source source;
    struct rest rest;
    struct layer_info layer;
    int alone, out, before; /* keeps sweeps out; the new layer; the last one, or -1 */
    bool bounded;
    char shown[ID_LENGTH + 1]; /* the layer that showed what was there before it */
};

#define MIDWAY_NONE ((struct midway){ .source = { .fd = -1 }, .alone = -1, .out = -1, .before = -1 })

/* What is done beneath processes that are at rest, when there is a checkpoint of what was there. */
struct midway_then {
    int (*act)(void *owner, struct error *err);
    void *owner;
};

/* `bounded`: not if more has changed than the sandbox's bounds let one copy.  Both give an enum midway_result;
 * or -1: the sandbox is lost.  checkpoints_shown() is then the layer that shows what is there. */

/* Begins one, and lets the loop go on while files are copied.  Until it is over nobody may be started, woken or
 * paused. */
int midway_begin(struct checkpoints *checkpoints, bool bounded, struct error *err);

bool midway_is_under_way(const struct checkpoints *checkpoints);

/* Nobody is told; everybody goes on. */
void midway_abandon(struct checkpoints *checkpoints);

/* Waits until it is done.  If `then` fails, the result is MIDWAY_NOT. */
int midway_make(struct checkpoints *checkpoints, const struct midway_then *then, struct error *err);
