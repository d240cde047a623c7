#pragma once

#include "keeper/loop.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct error;

/* Signals and time: what makes a run end, or pause, from outside.  Decides only; the calls carry
 * it out. */
struct stop_calls {
    void (*forward)(void *owner, int number); /* to the process group of the command */
    void (*kill)(void *owner, int number);    /* everything, because of `number` */
    void (*timed_out)(void *owner);           /* told before the SIGTERM of a time-out */
    void (*resized)(void *owner);             /* the host's terminal has a new size */
    void (*pause)(void *owner);               /* we are about to be stopped by job control */
    void (*resume)(void *owner);              /* we go on */
};

struct stop_plan {
    bool tty;            /* keys reach the command as bytes, its size by the pty */
    uint64_t timeout_ms; /* 0: none */
};

struct stop {
    struct loop_source signals, timer;
    const struct stop_calls *calls;
    void *owner;
    struct stop_plan plan;
    sigset_t old_mask;
    struct sigaction old_pipe;
    bool begun, started;
    uint64_t pending;             /* signals that came before the command ran, by number */
    unsigned requests;            /* to end: INT, TERM and QUIT */
    uint64_t timeout_at, kill_at; /* boot time in ms; 0: never */
    int kill_number;
};

#define STOP_NONE ((struct stop){ .signals.fd = -1, .timer.fd = -1 })

int stop_begin(struct stop *stop, struct loop *loop, const struct stop_calls *calls, void *owner,
               const struct stop_plan *plan, struct error *err);

/* The command runs: what came before is forwarded now. */
void stop_started(struct stop *stop);

/* The command has ended: no time-out and no grace runs any more. */
void stop_disarm(struct stop *stop);

/* calls->kill(number) in so many milliseconds, unless it was to come earlier. */
void stop_kill_after(struct stop *stop, uint64_t ms, int number);

/* Signals do again what they did before. */
void stop_end(struct stop *stop);
