#pragma once

#include "base/error.h"
#include "changes/prints.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct change;
struct changes;
struct digest;

/* What to do where the owner's tree is not what the sandbox saw. */
enum apply_way {
    APPLY_WAY_NONE,    /* say so, change nothing */
    APPLY_WAY_HOST,    /* the owner's stays, and that is all right */
    APPLY_WAY_SANDBOX, /* the sandbox's takes its place */
    APPLY_WAY_BOTH,    /* the sandbox's is put beside it, under a name with `suffix` at its end */
};

/* Brings changes of a sandbox into a tree of the owner.
 *
 * Every step goes by handles: the directory a change lies in is opened once, beneath the tree and
 * through no link.  A file is made beside its place and exchanged with what is there; if that turns
 * out not to be what was looked at, it is exchanged back and the change is a conflict.  So whoever
 * stops us at any moment finds each file whole, old or new, and can start again.  What was made beside
 * and not put away is called `.cove-apply-` and 16 letters; the next try removes it. */
struct apply {
    int upper; /* where the changes are: the sandbox's layer */
    int tree;  /* where they go */

    /* When the sandbox began: what was written later is the owner's own and never thrown away. */
    struct timespec since;

    /* What was looked at: one for each change.  Other bytes are not brought home.  NULL: not known. */
    const struct digest *contents;

    bool only_look; /* say what would happen, change nothing */

    enum apply_way way; /* out of a conflict */
    const char *suffix; /* with APPLY_WAY_BOTH */

    /* What we put there ourselves since, while the sandbox ran; or NULL. */
    const struct prints *ours;

    /* It still runs: nobody waits for the disk, or looks for what earlier tries left at other places. */
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
    APPLY_FAILED,   /* a system call failed; nothing was changed, or it says where yours is */
    APPLY_BESIDE,   /* a conflict; the sandbox's version was put beside the owner's */
    APPLY_LEFT,     /* was not asked for */
    APPLY_SETTLED,  /* a conflict; the owner's stays, as they said */
};

struct apply_result {
    enum apply_outcome outcome;
    struct error why; /* for CONFLICT, REFUSED and FAILED */
    struct print put; /* for DONE: what is there now; nothing if it was removed */
};

/* Which changes to take; `owner` is the caller's. */
typedef bool apply_wanted(void *owner, const struct change *change);

/* One result for each change, in their order.  Directories come before what is in them, removals later
 * and from the inside out, and last the modes of directories that shut their owner out.  -1: it is all in
 * the tree as the results say, but may not be on the disk. */
int apply_changes(const struct apply *apply, const struct changes *changes, apply_wanted *wanted, void *owner,
                  struct apply_result *results, struct error *err);
