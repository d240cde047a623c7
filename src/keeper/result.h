#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The exit codes that are ours; below 128 the rest is the command's own, above it is 128 + n. */
enum {
    EXIT_TIMED_OUT = 124,
    EXIT_OUR_ERROR = 125,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNALED = 128,
};

enum result_reason {
    RESULT_EXITED,      /* the command ended by itself */
    RESULT_SIGNALED,    /* the command was ended by `signal` */
    RESULT_TIMED_OUT,   /* by --timeout */
    RESULT_INTERRUPTED, /* we killed everything because we were asked to end (`signal`) */
    RESULT_NOT_STARTED, /* it could not be started: `error` */
    RESULT_OUTPUT_LOST, /* what it wrote could not be passed on: `error` */
    RESULT_FAILED,      /* the sandbox itself failed: `error` */
};

/* How a run ended.  Times and memory are those of the command and the children it waited for. */
struct result {
    int exit_code;
    enum result_reason reason;
    int signal; /* 0: none */
    bool timed_out, core;
    uint64_t wall_us, user_us, system_us, peak_kib;
    uint64_t ready_at, started_at, exited_at, empty_at; /* CLOCK_MONOTONIC in microseconds, 0: never */
    struct error error;                                 /* kind ERROR_NONE unless the reason says otherwise */
};

/* One word, for JSON. */
const char *result_reason_name(enum result_reason reason);

/* From a status as wait(2) gives it. */
void result_from_status(struct result *result, int status);
