#pragma once

/* Reads what is kept of a step's output (store/output.h), also while it is written.  The bytes are the
 * command's own, the files may be torn, or may have been changed: memory is bounded, and what makes no sense is
 * said. */

#include "store/output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum output_event_kind {
    OUTPUT_BYTES, /* of `stream`, written at `time_us` */
    OUTPUT_GAP,   /* `left_out` was not kept here */
    OUTPUT_TORN,  /* `len` bytes of a segment make no sense, and what follows in it is not read */
};

struct output_event {
    enum output_event_kind kind;
    enum output_stream stream;
    uint64_t time_us; /* CLOCK_REALTIME */
    const unsigned char *bytes;
    size_t len;
    struct output_count left_out;
};

/* Nonzero ends the reading. */
typedef int output_visit(void *owner, const struct output_event *event);

/* Where a reader is.  Segments may come and go beside it. */
struct output_cursor {
    int sandbox;         /* borrowed */
    int dir, fd;         /* output/, the segment; -1: none */
    uint64_t step, next; /* of the output, and the number that the next segment has at least */
    uint64_t at;         /* in the file */
    bool torn;           /* the rest of it makes no sense */
    uint64_t began_us;
    struct output_count counted; /* given or left out */
    unsigned char *buffer;
};

#define OUTPUT_CURSOR_NONE ((struct output_cursor){ .sandbox = -1, .dir = -1, .fd = -1 })
#define autooutputcursor __attribute__((cleanup(output_cursor_close)))

/* Also of a step that has written nothing yet. */
int output_cursor_open(int sandbox, uint64_t step, struct output_cursor *out, struct error *err);
void output_cursor_close(struct output_cursor *cursor);

/* Gives what has come since the last time.  A frame that is not whole yet is left for the next time. */
int output_cursor_advance(struct output_cursor *cursor, output_visit *visit, void *owner, struct error *err);

/* No more will come: what is not whole now is torn. */
int output_cursor_end(struct output_cursor *cursor, output_visit *visit, void *owner, struct error *err);

/* All that is kept of a step.  Gives what the visitor gave if that is not 0. */
int output_read(int sandbox, uint64_t step, output_visit *visit, void *owner, struct error *err);
