#pragma once

/* The user's side of one command: bytes between the descriptors that `cove` was started with and those that
 * lead into a sandbox, the user's terminal, and the filter between a program and that. */

#include "keeper/relay.h"
#include "keeper/termfilter.h"
#include "keeper/terminal.h"

#include <stdbool.h>
#include <stdint.h>

struct error;

struct front_plan {
    int in, out, err;  /* the host's side, borrowed, usually 0, 1, 2; -1: closed */
    bool tty;          /* the command has a pty */
    bool raw_terminal; /* what it writes to a terminal is not filtered (termfilter.h) */
    uint64_t *budget;  /* as in relay_plan */
};

struct front {
    struct front_plan plan;
    struct loop *loop;
    struct relay in, out, err;
    struct terminal terminal;
    struct termfilter filter, filter_err; /* the second only where stderr is a terminal and there is no pty */
    int master;
    bool asked;        /* the command asked the terminal something ... */
    uint64_t asked_at; /* ... when this many bytes of input had come */
    bool midline;      /* from front_close() on: the last line on the user's terminal has no end */
};

#define FRONT_NONE                                                                                             \
    ((struct front){                                                                                           \
        .in = RELAY_NONE, .out = RELAY_NONE, .err = RELAY_NONE, .terminal = TERMINAL_NONE, .master = -1 })

void front_open(struct front *front, struct loop *loop, const struct front_plan *plan);

/* Without a pty: takes our ends of the command's pipes.  Output that is held waits for front_wake(). */
void front_pipes(struct front *front, int in, int out, int err, bool held);

/* With a pty: takes its master.  What the command draws comes from there, or from `from` if that is not -1,
 * which is taken too.  -1: the user's terminal cannot be had. */
int front_draw(struct front *front, int master, int from, struct error *err);

void front_wake(struct front *front);

/* Whether a descriptor is a pty's master, made ready for front_draw(). */
bool front_is_master(int fd);

/* The user's terminal has another size; we are about to be stopped by job control; we go on. */
void front_resized(struct front *front);
void front_pause(struct front *front);
void front_resume(struct front *front);

/* No more input, and nothing of output that was still held. */
void front_end_input(struct front *front);

/* Whether all output has been passed on.  When nobody is left to write, what gives nothing for a while
 * (`drained`) is at its end too. */
bool front_is_over(struct front *front, bool drained);

/* Leaves the user's terminal as it was found, and closes all that was taken. */
void front_close(struct front *front);
