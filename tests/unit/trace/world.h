#pragma once

/* A trace in a scratch directory, as bytes that a test can change. */

#include "base/text.h"
#include "spec/node.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "trace/read.h"
#include "trace/trace.h"

/* Adds an event with the one member "n". */
void world_add(struct trace *trace, const char *kind, unsigned n);

/* A trace of so many lines: seq i has "n" i. */
void world_make(const struct unit_scratch *scratch, unsigned lines);

/* All bytes of the trace, and other ones in their place. */
void world_bytes(const struct unit_scratch *scratch, struct text *out);
void world_replace(const struct unit_scratch *scratch, const char *bytes, size_t len);

/* What a reader saw. */
struct world_seen {
    uint64_t seqs[64];
    bool verified[64];
    char kinds[64][16];
    size_t len;
    struct trace_found found;
};

struct world_seen world_read(const struct unit_scratch *scratch);
