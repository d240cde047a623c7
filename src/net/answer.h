#pragma once

/* The head of an HTTP/1 answer, read as strictly as that of a request: a server and a client that take it for
 * different things would be two ways of reading what comes next. */

#include "net/fields.h"

#include <sys/types.h>

struct text;

enum { ANSWER_MAX = 32768 };

/* Everything points into the bytes that were read. */
struct answer {
    unsigned status;
    struct head_part reason;
    bool old; /* HTTP/1.0 */
    enum head_body body;
    uint64_t length;
    struct fields fields;
    size_t size; /* with the empty line at the end */
};

/* Reads what a server has sent so far, to a request with HEAD or another method.  `why` says what is wrong with
 * a bad one. */
enum head_read answer_read(const char *bytes, size_t len, bool to_head, struct answer *out, const char **why);

/* Of an answer that comes in pieces, `heard` is what was kept of the ones before; `take` gets each head, up to
 * the one that is not only for the time being.  How many of these bytes belong to heads; -1: it is no answer,
 * or `take` wants no more. */
typedef bool answer_taker(void *whose, const struct answer *answer);

ssize_t answer_heads(struct text *heard, const char *bytes, size_t len, bool to_head, answer_taker *take,
                     void *whose);

/* As it goes on to a client of HTTP/1.1 or 1.0 (`old`), without what was said to us alone.  `last`: the
 * connection ends with it. */
void answer_write(const struct answer *answer, bool old, bool last, struct text *out);

/* Whether the body goes on in chunks. */
bool answer_in_chunks(const struct answer *answer, bool old);
