#pragma once

/* Which frozen layers a sandbox's own directories u0 u1 ... lie on, and how that changes.
 *
 * Everything here is done while none of these directories is mounted.  It may be interrupted between any two
 * system calls: stack_repair(), before the sandbox is used again, brings it to its end. */

#include "store/layers.h"

struct stack_place {
    int layers;     /* layers/ */
    int sandbox;    /* sandboxes/<id>, which we have the lock of */
    const char *id; /* of the sandbox */
    uint32_t ids;   /* of root's: where its range begins (struct ids, `base`); else 0 */

    /* Only for freezing and turning.  A tree that is left out stays as it is: nothing may have been written to
     * it, and for turning it must lie on the same in both chains.  A layer that lacks a tree is passed over. */
    uint64_t trees;              /* bit K: uK is meant; 0: all are */
    const struct strings *known; /* what the sandbox lies on, or for turning the new layer and what that lies
                                  * on; NULL: it is looked up */
};

enum { STACK_TREES_MAX = 64 };

/* Whatever begins so in a sandbox's directory is to be removed. */
#define STACK_ASIDE "gone."

/* A merged directory that somebody reads (merge_upper()); whoever made it removes it, else the next start. */
#define STACK_SEEN "seen."

/* The layer on top; "" if there is none. */
int stack_top(int sandbox, char top[ID_LENGTH + 1], struct error *err);

/* What u0 u1 ... hold becomes a layer, on which fresh ones lie from now on.  Costs the same whatever they hold.
 * `chain`, which is empty, is then what the sandbox lies on: the new layer and those below it.  The sandbox
 * holds the new one, and the others as before.  Refused if they would be more than the kernel gets. */
int stack_freeze(const struct stack_place *place, uint64_t step, struct strings *chain, struct error *err);

/* Fresh ones on another layer, "" being none.  What was in the old ones is dropped.  The sandbox holds the new
 * layer, and whatever it held before: to let go is its owner's decision. */
int stack_turn(const struct stack_place *place, const char *lid, struct strings *chain, struct error *err);

/* False if one of these two was begun and not finished.  If they fail and this holds, nothing has changed. */
bool stack_is_whole(int sandbox);

/* Only the link: for a layer that shows the same as the one before, and that the sandbox holds. */
int stack_set_top(int sandbox, const char *lid, struct error *err);

/* Sets the work directories w0 w1 ... of those trees aside: the kernel uses none twice. */
int stack_renew_work(const struct stack_place *place, struct error *err);

/* Brings to its end what was begun. */
int stack_repair(const struct stack_place *place, struct error *err);

/* Removes what freezing and turning have set aside, which takes its time.  Best effort. */
void stack_clean(int sandbox);
