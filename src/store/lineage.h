#pragma once

/* Where two stacks part.  Of a merged layer the parts count, as far as they are still there: a stack that was
 * merged later lies on the same steps as one that was not. */

#include "store/layers.h"

/* The layers of both stacks, newest first each, that may hold what the files differ by.  At most those that the
 * kernel would get for both.  `a` or `b` may be "", the base. */
int lineage_apart(int layers, const char *a, const char *b, struct strings *out, struct error *err);

/* What `top` stands for, newest first, down to the base: single steps, as far as they are still there. */
int lineage_steps(int layers, const char *top, struct strings *out, struct error *err);
