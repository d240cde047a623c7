#pragma once

/* What became of one try: a line of the results, in a file or on its way from the process that saw it.
 *
 * All text is UTF-8 without control characters, made so by whoever fills it in: it comes from a sandbox, and
 * people read it. */

#include "base/array.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct node;
struct text;

enum {
    TRIED_LINE_MAX = 256 << 10, /* bytes of a line */
    TRIED_TAIL = 40,            /* lines of output that are kept ... */
    TRIED_TAIL_LINE = 400,      /* ... and bytes of each */
    TRIED_PATHS = 50,           /* paths that are told one by one */
};

struct tried {
    uint64_t task, number; /* from 1; task 0: there are no tasks */
    char *id;              /* of its sandbox */
    char *reason;          /* as result_reason_name() has it; "failed" is our own failure */
    uint64_t exit_code;
    uint64_t attempts; /* how often it was begun, from 1 */
    uint64_t wall_us, peak_kib;
    char *score;                    /* a number as score_write() has it; NULL: none */
    char *score_by;                 /* "number", "exit"; NULL: there was no score command, or it gave none */
    uint64_t score_exit;            /* of the score command, if it ran */
    uint64_t files, added, removed; /* that changed, and lines of them */
    struct strings tampered;        /* paths of the score that the try changed, of the workspace */
    struct strings output;          /* the last lines of the command ... */
    struct strings score_output;    /* ... and of the score command */
    char *error;                    /* NULL: nothing to say */
};

#define TRIED_NONE ((struct tried){ 0 })
#define autotried __attribute__((cleanup(tried_free)))

void tried_free(struct tried *tried);

/* All of it, for a new owner. */
struct tried tried_take(struct tried *tried);

/* One line without its end: sorted keys, no white space. */
void tried_json(const struct tried *tried, struct text *out);

/* The same as a tree that can be added to. */
void tried_node(const struct tried *tried, struct node *out);

/* ERROR_INVALID: it is none.  Members that are not known are passed over; on failure `out` is empty. */
int tried_read(const char *bytes, size_t len, const char *shown, struct tried *out, struct error *err);
