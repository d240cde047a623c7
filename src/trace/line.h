#pragma once

/* One line of a trace: a JSON object with sorted keys and no white space, as docs/trace.md says. */

#include "base/sha256.h"
#include "spec/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct text;

/* Of a line without its newline; longer is no record. */
enum { TRACE_LINE_MAX = NODE_BYTES_MAX };

/* What a first line has as `prev`. */
#define TRACE_NO_PREV "0000000000000000000000000000000000000000000000000000000000000000"

/* What the writer says of a torn end: `data.torn` has its bytes. */
#define TRACE_GAP "gap"

struct trace_line {
    uint64_t seq;         /* from 1 */
    struct timespec time; /* CLOCK_REALTIME, to the millisecond */
    uint64_t mono_us;     /* CLOCK_MONOTONIC of the machine that wrote it */
    char *prev, *kind;
    struct node data; /* a mapping */
};

#define TRACE_LINE_NONE ((struct trace_line){ 0 })
#define autotraceline __attribute__((cleanup(trace_line_free)))

void trace_line_free(struct trace_line *line);

/* False if these bytes are no record; then `out` is empty. */
bool trace_line_read(const char *bytes, size_t len, struct trace_line *out);

/* Without a newline. */
void trace_line_write(struct trace_line *line, struct text *out);

/* As text, of the bytes of a line. */
void trace_hash(const void *bytes, size_t len, char out[SHA256_TEXT]);

/* The number of bytes that a gap stands for; 0 for everything else. */
uint64_t trace_line_torn(const struct trace_line *line);
