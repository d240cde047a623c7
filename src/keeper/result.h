#pragma once

#include "base/error.h"
#include "spec/limit.h"

#include <stdbool.h>
#include <stdint.h>

/* The exit codes that are ours; below 128 the rest is the command's own, above it is 128 + n. */
enum {
    EXIT_TIMED_OUT = 124,
    EXIT_OUR_ERROR = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNALED = 128,
    EXIT_LIMIT = 137, /* as if killed: we did */
};

enum result_reason {
    RESULT_EXITED,      /* the command ended by itself */
    RESULT_SIGNALED,    /* the command was ended by `signal` */
    RESULT_TIMED_OUT,   /* by --timeout */
    RESULT_LIMIT,       /* by the limit `limit`: `error` */
    RESULT_INTERRUPTED, /* we killed everything because we were asked to end (`signal`) */
    RESULT_NOT_STARTED, /* it could not be started: `error` */
    RESULT_OUTPUT_LOST, /* what it wrote could not be passed on: `error` */
    RESULT_FAILED,      /* the sandbox itself failed: `error` */
};

/* What a run used: all its processes, as far as whoever counted has seen them.  `from` names who that was, a
 * control group, "rusage" or "sampled"; NULL: nobody. */
struct usage {
    uint64_t user_us, system_us;
    uint64_t peak_kib;      /* of all together; rusage: of the largest process */
    uint64_t written_bytes; /* to files on a disk */
    uint64_t processes;     /* the most at a time, with threads */
    const char *cpu_from, *memory_from, *processes_from;
};

/* How a run ended. */
struct result {
    int exit_code;
    enum result_reason reason;
    int signal; /* 0: none */
    bool timed_out, core;
    bool midline;        /* the last line it wrote on the user's terminal has no end */
    enum limit_id limit; /* of RESULT_LIMIT */
    unsigned reached;    /* limits that were, as far as we know: 1 << enum limit_id */
    uint64_t wall_us;
    struct usage usage;
    uint64_t ready_at, started_at, exited_at, empty_at; /* CLOCK_MONOTONIC in microseconds, 0: never */
    struct error error;                                 /* kind ERROR_NONE unless the reason says otherwise */
};

/* One word, for JSON. */
const char *result_reason_name(enum result_reason reason);

/* From a status as wait(2) gives it. */
void result_from_status(struct result *result, int status);
