#pragma once

/* The record of what happened in a sandbox that stays: trace.jsonl in its directory, one event a line, each
 * with the hash of the one before (docs/trace.md).
 *
 *     trace_open -> trace_add ... trace_sync ... -> trace_close
 *
 * Lines are only ever added.  There is one writer, who holds the sandbox's lock. */

#include "base/sha256.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct node;

#define TRACE_FILE "trace.jsonl"

/* `seq` and `hash` are of the last line: whoever keeps them elsewhere can tell later that it was there.  With
 * no line yet, 0 and zeros. */
struct trace {
    int fd;
    uint64_t seq;
    char hash[SHA256_TEXT];
    uint64_t size; /* of the file, as far as it holds whole lines */
    bool torn;     /* there may be a part of a line behind them */
};

#define TRACE_NONE ((struct trace){ .fd = -1 })

/* Opens the trace in `dir`, or makes it.  The cost does not depend on its length: of a trace that ends with a
 * whole line only the end is read.  What a crash has torn off stays as it is on the disk, and a record `gap`
 * behind it says how many bytes that are. */
int trace_open(int dir, struct trace *out, struct error *err);

/* Adds one event, with one write.  `data` is a mapping, borrowed, its keys are sorted by this; NULL: it has no
 * members.  After a failure the line is not there, nor a part of it; ERROR_REFUSED if it would be too long. */
int trace_add(struct trace *trace, const char *kind, struct node *data, struct error *err);

/* What was added survives a power cut from now on. */
int trace_sync(const struct trace *trace, struct error *err);

void trace_close(struct trace *trace);
