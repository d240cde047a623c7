#pragma once

/* Other layers for a sandbox that goes on living: its PID 1 unmounts what can be written to, the layers are
 * exchanged, and it gets fresh overlays.  No process but PID 1 may be there.  What it costs does not depend on
 * what was written. */

#include "base/array.h"
#include "init/protocol.h"

#include <stddef.h>

struct box;
struct error;
struct host;
struct plan;
struct sandbox_dir;

enum switch_result {
    SWITCH_DONE, /* plan->stack is the new one */
    SWITCH_BUSY, /* somebody uses an overlay, or a mount is not where it was: nothing was done, err says why */
    SWITCH_KEPT, /* the layers could not be exchanged, err says why: the sandbox goes on with those it had */
};

struct box_switch {
    struct plan *plan; /* that the sandbox was started with; its stack is what it lies on now */
    const struct host *host;
    const struct sandbox_dir *dir;

    /* Bit K: uK is exchanged; 0: all are.  The overlays of others stay mounted, so what they lie on must not
     * change. */
    uint64_t trees;

    /* Called while nothing of the sandbox is mounted: freezes or turns (store/stack.h), and fills in what it
     * lies on from now on, newest first.  If it fails, nothing may have changed. */
    int (*exchange)(void *owner, struct strings *stack, struct error *err);

    /* A message of PID 1 that was already on its way, an EXITED for example; its descriptors belong to who is
     * called.  May be NULL: then none may come. */
    int (*other)(void *owner, const struct message *message, const int *fds, size_t count, struct error *err);
    void *owner;
};

/* Gives an enum switch_result, or -1 when the sandbox is lost and must be ended; its files are what `exchange`
 * has made of them.  When this returns its mounts were read back, and a command may be started.  What was set
 * aside is to be removed with stack_clean(), when there is time. */
int box_switch(struct box *box, const struct box_switch *what, struct error *err);
