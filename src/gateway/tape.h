#pragma once

/* A file of exchanges, one in a line: which of them answers what is asked. */

#include "gateway/take.h"

#include <stddef.h>

enum {
    TAPE_BYTES_MAX = 256 << 20, /* of the file */
    TAPE_TAKES_MAX = 65536,
};

struct tape_take {
    struct take take;
    bool used;
};

struct tape {
    struct tape_take *items;
    size_t len, cap;
    size_t broken;    /* lines that are no exchange: what was written when somebody was killed, or anything */
    size_t first_bad; /* the number of the first of them, from 1; 0: there is none */
};

#define TAPE_NONE ((struct tape){ 0 })
#define autotape __attribute__((cleanup(tape_free)))

/* All exchanges that are in it.  -1 if there are too many. */
int tape_read(const char *bytes, size_t len, struct tape *out, struct error *err);
void tape_free(struct tape *tape);

enum tape_answer {
    TAPE_NO_HOST,   /* nothing was recorded of this host and port */
    TAPE_NOTHING,   /* nothing that was asked so */
    TAPE_NOT_WHOLE, /* it was, but its answer cannot be given: it was not kept whole, or is no answer */
    TAPE_HAS,
};

/* What is asked for.  `method` NULL: not known yet. */
struct tape_question {
    const char *host;
    unsigned port;
    const char *method, *path;
};

enum tape_answer tape_look(const struct tape *tape, const struct tape_question *question);

/* The answer to what tape_look() has found: if there are several, the one that was asked for with the same
 * body, and of those the next one that was not given yet, or else the last. */
const struct take *tape_take(struct tape *tape, const struct tape_question *question, const char *body_sha256);
