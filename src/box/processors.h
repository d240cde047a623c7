#pragma once

/* Two processes on two processors.  Left to itself the scheduler queues a new task behind the one
 * that made it, and wakes it on the processor of who sends it a message, though another one is idle. */

#include <sched.h>

struct error;

struct processors {
    cpu_set_t allowed;
    int here; /* -1: there is only one, or nobody knows */
};

/* Those that this process may use, and where it is now.  Only the keeper asks, before it clones: while it moves
 * the clone away, what that one may use is for a moment less than it has. */
void processors_read(struct processors *processors);

/* Where we are now; stay there. */
void processors_stay(struct processors *processors);

/* To begin with, anywhere but where we are. */
void processors_move_away(struct processors *processors, pid_t pid);

/* All that were there at the beginning, or so many of them, from where we are on. */
int processors_take(const struct processors *processors, unsigned most, struct error *err);
