#pragma once

/* What a checkpoint leaves to be done, while nobody waits for it: what was set aside is removed when the
 * sandbox has been quiet for a moment, and a stack that has become deep is merged in a process of its own. */

#include "keeper/loop.h"
#include "store/stack.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ids;

struct later {
    struct stack_place place;
    const struct ids *ids;
    struct loop *loop;
    struct loop_source merger; /* what it says; -1: none is at work */
    pid_t child;               /* the merger; 0: none */
    bool restacked;            /* the sandbox's stack has a merged layer that is not mounted yet */
    unsigned aside;            /* switches whose remains are still there */
    uint64_t clean_at;         /* in microseconds; 0: there is nothing to remove */
};

#define LATER_NONE ((struct later){ .merger.fd = -1 })

void later_begin(struct later *later, const struct stack_place *place, const struct ids *ids,
                 struct loop *loop);

/* After each switch. */
void later_switched(struct later *later);

/* In each turn of the loop; and how many milliseconds it may wait, -1: for ever. */
void later_tend(struct later *later);
int later_patience(const struct later *later);

/* Before a switch: one more layer must find its place on the stack.  Waits for a merger that is at work, if
 * there would be none. */
void later_make_room(struct later *later);

/* Ends a merger that is at work. */
void later_end(struct later *later);
