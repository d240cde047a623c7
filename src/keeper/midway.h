#pragma once

/* A checkpoint while processes are alive: they rest for a moment, and what changed since the last one is copied
 * into a frozen layer.  The sandbox goes on with the directories that it has. */

#include "store/store.h"

#include <stdbool.h>

struct checkpoints;
struct error;

enum midway_result {
    MIDWAY_MADE,
    MIDWAY_SAME, /* nothing has changed since the last one */
    MIDWAY_NOT,  /* `err` says why there is none */
};

/* What is done beneath processes that are at rest, when there is a checkpoint of what was there. */
struct midway_then {
    int (*act)(void *owner, struct error *err);
    void *owner;
};

/* `bounded`: not if more has changed than the sandbox's bounds let one copy.  Gives an enum midway_result; or
 * -1: the sandbox is lost.  checkpoints->midway is then the layer that shows what is there. `then` may be NULL;
 * if it fails, the result is MIDWAY_NOT. */
int midway_make(struct checkpoints *checkpoints, bool bounded, const struct midway_then *then,
                struct error *err);
