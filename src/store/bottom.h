#pragma once

/* The private copy of a workspace (--workspace copy) as the lowest layer of a stack.
 *
 * It holds b0 b1 ... instead of u0 u1 ..., so overlays pass it over where they look for frozen directories, and
 * lie on it as on the host's own tree.  The layers above it hold it like any other: forks and snapshots share
 * it, and it goes with the last of them.  A sandbox without checkpoints has its copy in its own directory. */

#include "store/stack.h"

/* Begins one for a sandbox that has no layer yet, and gives a handle to copy into; `lid` is its id.  While
 * sweeps are not kept out (layers.h) it may be gone before it is finished. */
int bottom_begin(const struct stack_place *place, char lid[ID_LENGTH + 1], struct error *err);

/* From now on it is what the sandbox lies on. */
int bottom_finish(const struct stack_place *place, const char *lid, struct error *err);

/* The one below `top`; "" if there is none. */
int bottom_find(int layers, const char *top, char lid[ID_LENGTH + 1], struct error *err);

/* Where the copies of a sandbox are: their directory below the state directory, which the caller frees; NULL
 * with `err` if there are none. */
char *bottom_place(int sandbox, int layers, const char *id, struct error *err);

/* The copy that tree `number` of a sandbox lies on. */
int bottom_open(int sandbox, uint64_t number, struct error *err);
