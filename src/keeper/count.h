#pragma once

/* What one frozen layer changed, in all trees of the sandbox: of what lies below it, by the layer alone and
 * what it covers; or, where processes were alive before it, of the copy that was made of it then. */

#include "keeper/showing.h"

struct changes;
struct plan;

struct count {
    const char *state;
    const struct plan *plan; /* the sandbox's */
    struct showing_stage stage;

    /* Told of each tree: its changes, the layer's directory they are in, and where it is seen inside.  The
     * handle stays the caller's. */
    void (*found)(void *owner, const struct changes *changes, int upper, const char *target);
    void *owner;
};

/* Calls `act` in a process that may open everything in the sandbox's layers, and waits for it. */
int count_apart(const struct plan *plan, int (*act)(void *argument), void *argument, struct error *err);

/* After showing_enter(), in a process that may open everything in the layer.  The workspace comes first.
 * `before` is the layer that showed what was there before it; "": nobody knows. */
int count_layer(const struct count *count, const char *layer, const char *before, struct error *err);
