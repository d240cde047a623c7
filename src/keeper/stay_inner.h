#pragma once

/* What the parts of the keeper of a sandbox that stays (stay.c) share: its state, how it ends (stay_end.c), who
 * is connected (visitors.c) and what they may ask (requests.c). */

#include "keeper/checkpoint.h"
#include "keeper/control.h"
#include "keeper/job.h"
#include "keeper/loop.h"
#include "keeper/marks.h"
#include "keeper/meter.h"
#include "keeper/outlet.h"
#include "keeper/result.h"
#include "keeper/services.h"
#include "trace/trace.h"

enum {
    STAY_EMPTY_MS = 2000
}; /* PID 1 is killed if it has not emptied the sandbox that long after the rest had
    * to end */

enum phase { PHASE_MOUNTING, PHASE_READY, PHASE_ENDING, PHASE_OVER };

/* Somebody who is connected. */
struct visitor {
    struct visitor *next;
    struct keeper *keeper;
    struct loop_source source;
    bool stops;           /* waits for the end */
    bool pauses;          /* waits for a pause */
    bool turns;           /* waits for a rollback */
    bool copies;          /* waits for a checkpoint */
    bool prepared;        /* what it asked for was begun by a checkpoint */
    struct control *held; /* what it asked for, and is done when services run and no files are copied; with
                           * `held_fd` */
    int held_fd;
    uint64_t held_turn; /* who came first is served first */
};

struct keeper {
    const struct stay *stay;
    struct box *box;
    struct loop loop;
    struct loop_source init, death, door, signals;
    uint64_t door_at; /* in microseconds: when it is opened again; 0: it is open */
    struct visitor *visitors;
    size_t visitors_len, visitors_max;
    uint64_t turns; /* how often something was held */
    struct jobs jobs;
    struct trace trace;
    struct meter meter;
    struct checkpoints checkpoints;
    struct outlet outlet;
    struct services_run services;
    struct marks marks;
    bool told;           /* whoever started it knows that it is ready */
    struct error turned; /* why the last rollback came to nothing; ERROR_NONE: it did not */
    struct control turn; /* the rollback that is under way: every process is being ended; kind 0: none is */
    enum phase phase;
    uint64_t dead_by; /* in microseconds: PID 1 is killed then; 0: never */
    struct result result;
    uint64_t began, active; /* in microseconds: when it was ready, and when a command was last under way */
    int lent;               /* the program of PID 1, while we lend it; -1: we do not */
    uint64_t slimmed;       /* in microseconds: when memory was last given back */
    bool pausing, paused, frozen; /* it was asked for; it is; by the kernel */
    bool killed, remove;          /* remove: it goes with its end */
    bool discard;                 /* somebody is about to remove it */
    int verdict;                  /* to the guard */
};

/* --- stay.c --- */

/* Services run, or one does not: commands can be run.  Who waits for that is told. */
void keeper_served(struct keeper *keeper, const struct error *failed);

/* --- stay_end.c --- */

void keeper_kill(struct keeper *keeper);

/* All processes inside may take so long to end by themselves; PID 1 ends the others. */
void keeper_end(struct keeper *keeper, uint64_t patience_ms);

/* At once, because of an error, of what came from inside, or of a limit.  Only the first reason counts. */
void keeper_fail(struct keeper *keeper, const struct error *error);
void keeper_violated(struct keeper *keeper, const char *what);
void keeper_limited(struct keeper *keeper, enum limit_id limit);

/* Nothing of it is left. */
void keeper_over(struct keeper *keeper);

/* --- pausing.c --- */

/* Stops every process; who waits for that (`pauses`) is told when it is done. */
int keeper_pause(struct keeper *keeper, struct error *err);
void keeper_heard_paused(struct keeper *keeper, int status); /* PAUSED */
void keeper_resume(struct keeper *keeper);

/* --- visitors.c --- */

int visitors_open(struct keeper *keeper, struct error *err);
void visitors_reopen(struct keeper *keeper); /* if it was closed for a moment, and that is over */
void visitors_shut(struct keeper *keeper);

/* Who waits for a rollback is told: `failed` NULL: it was done. */
void visitors_turned(struct keeper *keeper, const struct error *failed);

/* Who waits for a pause is told: `failed` NULL: it is there. */
void visitors_paused(struct keeper *keeper, const struct error *failed);

/* Who waits for a checkpoint is told: `failed` NULL: it is there. */
void visitors_copied(struct keeper *keeper, const struct error *failed);

/* What was asked for while services were started, or files copied, is done. */
void visitors_release(struct keeper *keeper);

/* Who waits for the end is told, and all are sent away. */
void visitors_dismiss(struct keeper *keeper);

void visitor_answer(const struct visitor *visitor, const struct control *message);

/* --- requests.c --- */

/* 1: not yet; it is to be asked again when services run, or files were copied. */
int request_serve(struct visitor *visitor, const struct control *request, const int *fds, size_t count,
                  struct error *err);
