#pragma once

/* Steps that a program inside marks by itself (init/mark.h), from the keeper's side: numbered and recorded like
 * the others, as said by a program inside, with a checkpoint behind each.  Bounded in number, in size and in
 * time: who says more is not heard. */

#include "keeper/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keeper;
struct message;

struct marks {
    struct keeper *keeper;
    struct loop_source door; /* fd -1: there is none */
    bool asked;              /* PID 1 was, and has not answered */
    struct marking *first;
    size_t len;
    unsigned tokens;   /* so many more may come now */
    uint64_t refilled; /* in microseconds: when there was last one more */
    uint32_t total;    /* that were recorded */
};

/* Asks PID 1 for the place where programs mark steps, before the first command; without one there are no such
 * steps. */
void marks_begin(struct keeper *keeper);

/* What PID 1 answers.  False: it is out of place. */
bool marks_heard(struct keeper *keeper, const struct message *message, int *fds, size_t count);

/* Checkpoints were tried: who has ended a step is told.  Gives the milliseconds until there is more to do, -1
 * for never. */
int marks_tend(struct keeper *keeper);

/* Nothing inside is alive: what was under way has ended. */
void marks_end(struct keeper *keeper);
