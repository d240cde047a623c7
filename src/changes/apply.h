#pragma once

#include "base/error.h"
#include "changes/prints.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct change;
struct changes;

/* Brings changes of a sandbox into a tree of the owner.
 *
 * Every step goes by handles: the directory a change lies in is opened once, beneath the tree and
 * through no link.  A file is made beside its place and exchanged with what is there; if that turns
 * out not to be what was looked at, it is exchanged back and the change is a conflict.  So whoever
 * stops us at any moment finds each file whole, old or new, and can start again. */
struct apply {
    int upper; /* where the changes are: the sandbox's layer */
    int tree;  /* where they go */

    /* When the sandbox began: what was written later is the owner's own and never thrown away. */
    struct timespec since;

    bool only_look; /* say what would happen, change nothing */

    /* The sandbox still runs: what was put is told exactly, and nobody waits for the disk. */
    bool live;

    /* Called for each change just before it takes effect, when those before it have: false, and it is left.
     * Of a file that is brought there is the copy, complete and still without its name, and the original: so
     * what is judged cannot be changed any more from inside.  Else both are -1.  NULL: all are taken. */
    bool (*accept)(void *owner, const struct change *change, int original, int copy);
    void *owner;
};

enum apply_outcome {
    APPLY_DONE,
    APPLY_SAME,     /* the tree has it already */
    APPLY_CONFLICT, /* the owner's tree is not what the sandbox saw; nothing was changed */
    APPLY_REFUSED,  /* never brought home: devices, links that lead out, hidden files */
    APPLY_FAILED,   /* a system call failed; nothing was changed */
    APPLY_LEFT,     /* was not asked for */
};

struct apply_result {
    enum apply_outcome outcome;
    struct error why; /* for CONFLICT, REFUSED and FAILED */
    struct print put; /* for DONE, with `live`: what is there now; nothing if it was removed */
};

/* Which changes to take; `owner` is the caller's. */
typedef bool apply_wanted(void *owner, const struct change *change);

/* One result for each change, in their order.  Directories come before what is in them, removals last
 * and from the inside out.  -1 only if nothing could be tried. */
int apply_changes(const struct apply *apply, const struct changes *changes, apply_wanted *wanted, void *owner,
                  struct apply_result *results, struct error *err);
