#pragma once

/* What one frozen layer changed of what lies below it: in all trees of the sandbox, by the layer alone and what
 * it covers. */

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

/* After showing_enter(), in a process that may open everything in the layer.  The workspace comes first. */
int count_layer(const struct count *count, const char *layer, struct error *err);
