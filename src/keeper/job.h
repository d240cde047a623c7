#pragma once

/* One command of a sandbox that stays, from the keeper's side: its output goes to whoever waits for it. */

#include "keeper/relay.h"
#include "keeper/result.h"
#include "keeper/start.h"
#include "keeper/words.h"
#include "store/output.h"

#include <sys/types.h>

struct control;
struct jobs;
struct limits;
struct loop;
struct message;
struct trace;

enum job_phase {
    JOB_ASKED,   /* START was sent */
    JOB_RUNNING, /* it runs as `pid` */
    JOB_ENDED,   /* it has ended; its output is passed on */
    JOB_TOLD,    /* everybody knows; what it has left in the background may still write */
};

struct job;

/* For a command that is no step: who is told of its end. */
struct job_watch {
    void (*over)(void *owner, const struct job *job); /* NULL: nobody, and it is a step */
    void *owner;
    uint64_t output; /* what it writes is kept under this number; 0: it is not */
};

/* One of its two outputs. */
struct job_stream {
    struct relay relay;
    struct job *job;
    int to;         /* ours, towards who waits; -1: nowhere any more */
    uint64_t until; /* when it has ended: as far as this its output is its own */
};

struct job {
    struct job *next;
    struct jobs *jobs;
    uint32_t step;
    enum job_phase phase;
    bool tty, detached;
    bool copies; /* it is the program for files: what it writes is for who speaks with it */
    int waiter;  /* the connection of who waits for it, borrowed; -1: nobody does */
    struct words words;
    struct start_order order;
    int in;      /* our end of its input, until somebody has it; kept for who attaches if that was asked for */
    int hand[2]; /* the other ends of the streams' `to`, until somebody has them */
    struct job_stream streams[2];
    int master;  /* of its terminal */
    int32_t pid; /* as seen inside */
    struct result result;
    struct output log; /* what it wrote, as far as that is kept */
    struct job_watch watch;
    bool recorded;   /* its end is in the trace; or nothing of it goes there */
    bool marked;     /* the streams' `until` is known */
    uint64_t unsent; /* signals that PID 1 could not be told yet, by number less one */
    uint64_t output_left;
    uint64_t began, ended_at; /* CLOCK_MONOTONIC in microseconds */
    uint64_t end_at, kill_at; /* when SIGTERM, and SIGKILL, is due; 0: never */
};

/* What all of one sandbox share. */
struct jobs {
    struct loop *loop;
    int init_fd;                 /* borrowed; -1: PID 1 is gone */
    size_t most;                 /* there may be at a time */
    const struct limits *limits; /* of the sandbox */
    uint32_t steps;              /* the number of the last one */
    uint32_t others;             /* how many were no steps; their numbers begin at JOB_OTHERS */
    int dir;                     /* the sandbox's directory, borrowed */
    struct trace *trace;         /* borrowed */
    struct {
        uint32_t *items;
        size_t len, cap;
    } over;          /* steps whose end was told and recorded; what they changed was not looked at yet */
    uint32_t undone; /* files went back to before this step, and no command was told yet; 0: they did not */
    int nowhere;     /* /dev/null */
    struct job *first;
    uint64_t paused_at; /* in microseconds; 0: it is not paused */
};

/* Who a command is, and what it may. */
struct job_as {
    uint32_t uid, gid, flags; /* as in struct keeper_run */
    uint64_t processes;
    uid_t pipe_owner;
    int program; /* a sealed memfd that is run instead of a command, and no step; -1: none */
    struct job_watch watch;
};

/* Asks for a command; `words` is taken.  What comes of it is told to `waiter`. */
int job_start(struct jobs *jobs, const struct control *request, struct words *words, const struct job_as *as,
              int waiter, struct error *err);

/* What PID 1 says of it.  False: it is none that was asked for, or out of place. */
bool job_heard(struct jobs *jobs, const struct message *message, int *fds, size_t count);

/* Passes on what is due: time-outs, ends.  Gives the milliseconds until there is more, -1 for never. */
int jobs_tend(struct jobs *jobs);

/* The one of this number, 0: the last that runs; NULL: it does not run. */
struct job *jobs_find(const struct jobs *jobs, uint64_t step);
size_t jobs_running(const struct jobs *jobs); /* but those that are watched */

/* Makes `waiter` the one who is told.  ERROR_REFUSED: there is one. */
int job_attach(struct job *job, int waiter, struct error *err);

/* A connection is gone: what it waited for in front is hung up. */
void jobs_leave(struct jobs *jobs, int waiter);

void job_signal(struct job *job, int number);

/* While a sandbox is paused no time-out runs. */
void jobs_pause(struct jobs *jobs, bool paused);

/* Nothing inside is alive: those that still run have ended for this reason. */
void jobs_end(struct jobs *jobs, enum result_reason reason, enum limit_id limit, const struct error *why);
void jobs_free(struct jobs *jobs);
