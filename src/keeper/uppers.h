#pragma once

/* The directories u0 u1 ... of a sandbox, which its commands write to. */

#include "store/stack.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether there are any. */
bool uppers_exist(const struct stack_place *place);

/* Whether one of them holds anything, or looks otherwise than that of the newest layer of `stack` which has it.
 * What cannot be looked at does.  Costs the same whatever they hold. */
bool uppers_are_dirty(const struct stack_place *place, const struct strings *stack);

/* The same, of each that is meant (stack_place): bit K stands for uK.  UPPERS_ALL: that cannot be told apart.
 */
#define UPPERS_ALL (~0ULL)
uint64_t uppers_dirty(const struct stack_place *place, const struct strings *stack);

/* Those of which the two stacks have other layers. */
uint64_t uppers_between(const struct stack_place *place, const struct strings *one,
                        const struct strings *other);
