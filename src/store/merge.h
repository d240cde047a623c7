#pragma once

/* Several layers as one, made of hard links to their files: as the kernel would show them, with white-outs and
 * marks for what lies below.  The layers themselves stay as they are. */

#include "store/stack.h"

#include <stdbool.h>
#include <stddef.h>

/* Which marks the kernel obeys: root's overlays read trusted.overlay.*, all others user.overlay.* */
enum merge_marks { MERGE_USER, MERGE_TRUSTED };

/* Fills the empty directory `out` with what `sources`, upper directories, newest first, show together.  Whoever
 * has closed one of their directories to its owner closes it to us too, unless we have CAP_DAC_OVERRIDE: an
 * ordinary user merges in a process that has called sys_own_user_namespace(). */
int merge_uppers(const int *sources, size_t count, int out, enum merge_marks marks, struct error *err);

/* How many of the newest layers of the stack below `top` should be merged by now; 0: none.  Old, large ones are
 * taken along seldom, so that in the end each step is linked a few times only. */
int merge_wanted(int layers, const char *top, size_t *count, struct error *err);

/* Makes a layer out of the `count` newest ones, held by `holder`; `lid` is its id.  It lies on what the last
 * one of them lies on. */
int merge_layers(int layers, const char *top, size_t count, enum merge_marks marks, const char *holder,
                 char lid[ID_LENGTH + 1], struct error *err);

/* Has the sandbox lie on a merged layer instead of its parts, from its next start or switch on, wherever they
 * are in its stack.  It must hold the merged layer, and still holds the parts.  Gives 1, with nothing changed,
 * if it does not lie on them any more. */
int merge_adopt(const struct stack_place *place, const char *lid, struct error *err);

/* For readers of changes, who know of one upper directory: what the sandbox wrote into its writable tree
 * `number`, from its first start on.  Without layers that is its own directory, else a merged one under a
 * name that begins with STACK_SEEN, which the caller removes. */
int merge_upper(const struct stack_place *place, int number, enum merge_marks marks, struct error *err);
