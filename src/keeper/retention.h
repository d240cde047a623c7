#pragma once

/* Which checkpoints of a sandbox are kept: the newest ones, up to a number and to what they take on the disk.
 * One that a snapshot or a fork holds, or that the sandbox lies on, is not among those that go. */

#include "store/stack.h"

#include <stdint.h>

struct error;
struct states;
struct trace;

/* 0: any number. */
struct checkpoint_bounds {
    uint64_t keep, space;            /* checkpoints, and bytes that they take beside the sandbox's own files */
    uint64_t live_bytes, live_files; /* that are copied by itself while processes are alive (midway.h) */
};

struct retained {
    char layer[ID_LENGTH + 1];
    uint64_t bytes; /* that would be free without it, and those before it; if counted */
    bool counted;
};

struct retention {
    struct checkpoint_bounds bounds;
    struct retained *items; /* oldest first; each layer once */
    size_t len, cap;
    char first[ID_LENGTH + 1]; /* what the sandbox began with, which always stays */
    uint64_t bytes;            /* of those that are counted */
    bool swept;                /* what an earlier keeper has left is gone */
};

#define RETENTION_NONE ((struct retention){ 0 })

void retention_free(struct retention *retention);

/* All that the trace of an earlier keeper knows. */
void retention_begin(struct retention *retention, const struct states *states);

/* One more, which took so much; 0: that is counted when the sandbox lies on it no more. */
void retention_add(struct retention *retention, const char *layer, uint64_t bytes);

/* Lets go of what is too much, and of what an earlier keeper has left; the trace says so before.  `used` is
 * what must stay, in pieces: lists of ids. */
void retention_tend(struct retention *retention, const struct stack_place *place, struct trace *trace,
                    const struct strings *used);
