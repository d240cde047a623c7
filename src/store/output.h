#pragma once

/* What one step of a sandbox wrote, as far as it is kept: below output/ in the sandbox's directory, in segments
 * (docs/trace.md has the format).
 *
 *     output/<step>.0       the first OUTPUT_SEGMENT bytes, which always stay
 *     output/<step>.1 .2 .3 segments that take turns: the end of the output is kept as well
 *
 * There is one writer, who holds the sandbox's lock; store/output_read.h is for readers. */

#include <stddef.h>
#include <stdint.h>

struct error;

enum output_stream { OUTPUT_STDOUT = 1, OUTPUT_STDERR = 2 };

enum {
    OUTPUT_SEGMENT = 1 << 20, /* bytes of output in one segment */
    OUTPUT_SEGMENTS = 4,      /* of one step */
    OUTPUT_FRAMES = 8192,     /* in one segment: who writes byte by byte gets less of it */
    OUTPUT_CHUNK = 64 << 10,  /* the most that one frame holds */
};

/* By stream: [0] standard output, [1] standard error. */
struct output_count {
    uint64_t bytes[2];
};

struct output {
    int dir, fd; /* output/, the segment that is written; -1: none yet */
    uint64_t step, began_us, began_wall_us;
    uint64_t segment;                          /* number of the one that is written, or the next */
    size_t size, frames, used;                 /* of the segment: bytes of the file, frames, bytes of output */
    struct output_count seen;                  /* all that was given */
    struct output_count held[OUTPUT_SEGMENTS]; /* what each file holds */
    int failed;                                /* errno of the first failure; 0: none */
    uint64_t again_us;                         /* after a failure: when to try once more */
};

#define OUTPUT_NONE ((struct output){ .dir = -1, .fd = -1 })

/* Makes output/ if it is not there.  Nothing is made of the step before its first byte. */
int output_open(int sandbox, uint64_t step, struct output *out, struct error *err);

/* Keeps what it can.  A failure is remembered, its bytes are counted as seen and not kept, and after a second
 * it is tried again. */
void output_add(struct output *output, enum output_stream stream, const void *bytes, size_t len);

/* How much of it is kept by now; never more than was seen. */
struct output_count output_kept(const struct output *output);

/* -1 if something could not be kept for another reason than the bound: the first failure. */
int output_close(struct output *output, struct error *err);

/* Removes what is kept of a step. */
void output_remove(int sandbox, uint64_t step);
