#pragma once

/* The head of an HTTP/2 request, written as the one of HTTP/1.1 that says the same.
 *
 * What is written is read again by whoever reads all requests (head.h), so there is one judge of them.  Here is
 * refused what HTTP/1.1 has no words for, and what would be two things once it is written. */

#include "base/text.h"
#include "net/fields.h"

enum h2_part { H2_METHOD, H2_SCHEME, H2_AUTHORITY, H2_PATH, H2_PARTS };

/* All zero is an empty one. */
struct h2_head {
    struct text parts[H2_PARTS];
    struct text host, cookie; /* fields that may come in two places, or in pieces */
    struct text fields;       /* the others, as lines */
    size_t size;
    bool ordinary;   /* a field that is no part came */
    bool careless;   /* in tests: nothing is refused here */
    const char *why; /* it is refused; NULL: not yet */
};

void h2_head_clear(struct h2_head *head); /* empties it, keeps the memory */
void h2_head_free(struct h2_head *head);

/* The next field, in the order in which they came. */
void h2_head_add(struct h2_head *head, struct head_part name, struct head_part value);

/* Adds it to `out`; `ended`: there is no body.  NULL, or what is wrong with it; then `out` and the others are
 * not touched.  `body` and `length` tell how HTTP/1.1 has to frame what comes. */
const char *h2_head_write(const struct h2_head *head, bool ended, struct text *out, enum head_body *body,
                          uint64_t *length);
