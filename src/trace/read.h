#pragma once

/* Reads a trace and checks its chain.  The file may have been changed by anybody: memory is bounded by the
 * longest line (trace/line.h), whatever it holds. */

#include "base/sha256.h"
#include "base/text.h"
#include "trace/line.h"

#include <stdbool.h>
#include <stdint.h>

struct error;

/* How the chain is broken, where it is first. */
enum trace_break {
    TRACE_WHOLE,
    TRACE_CHANGED,    /* the line does not continue the one before it: one of the two is not what it was */
    TRACE_MISSING,    /* lines before it are not there */
    TRACE_REORDERED,  /* it should stand further up */
    TRACE_DUPLICATED, /* it is the one before it once more */
    TRACE_UNREADABLE, /* it is no record, and no gap says so */
    TRACE_TRUNCATED,  /* the last line has no end */
};

/* What was found so far. */
struct trace_found {
    uint64_t lines, records; /* lines that end; of these, those that are records */
    uint64_t torn;           /* bytes that gaps account for */
    enum trace_break how;
    uint64_t broken; /* number of the line, from 1; 0: none is */
    uint64_t seq;    /* of the last record, and what the next one has as `prev` */
    char hash[SHA256_TEXT];
    uint64_t at, len; /* where the last record lies in the file, without its newline */
};

/* One record.  `verified`: the chain is whole up to here, and what comes next, if anything does, says the same.
 * Nonzero ends the reading. */
typedef int trace_visit(void *owner, const struct trace_line *line, bool verified);

struct trace_reader {
    int fd;
    uint64_t at;                 /* of the next byte to be read */
    struct text line;            /* as far as it was read */
    bool too_long;               /* its beginning is in the hash already */
    struct sha256 *since;        /* all from the last record on; NULL: there is nothing yet */
    uint64_t loose, loose_lines; /* since then: bytes that are no record, on so many lines */
    char last[SHA256_TEXT];      /* of the last record's line alone */
    struct trace_line held;      /* not yet given, as what comes next has a say */
    bool has_held;
    struct trace_found found;
};

#define TRACE_READER_NONE ((struct trace_reader){ .fd = -1 })
#define autotracereader __attribute__((cleanup(trace_reader_close)))

/* ERROR_MISSING if there is no trace. */
int trace_reader_open(int dir, struct trace_reader *out, struct error *err);
void trace_reader_close(struct trace_reader *reader);

/* Gives every record up to the end of the file, and may be called again when it has grown.  Gives what the
 * visitor gave if that is not 0. */
int trace_reader_advance(struct trace_reader *reader, trace_visit *visit, void *owner, struct error *err);

/* No more will come: a line that has no end is one that is broken. */
void trace_reader_end(struct trace_reader *reader);

/* All of it.  0 also if the chain is broken: `found` says so. */
int trace_read(int dir, trace_visit *visit, void *owner, struct trace_found *found, struct error *err);

/* In words, such as "line 7 is not there"; NULL if the chain is whole.  The caller frees. */
char *trace_found_says(const struct trace_found *found);

/* One word, for JSON. */
const char *trace_break_name(enum trace_break how);
