#pragma once

/* A body that passes, taken apart into its data. */

#include "net/fields.h"

struct body {
    enum head_body kind;
    uint64_t left;        /* of the body, or of the chunk */
    uint32_t skipped;     /* of extensions and trailers */
    unsigned char state;  /* of a chunked one */
    unsigned char digits; /* of the size of a chunk, so far */
    bool lenient;         /* extensions of chunks and trailers are passed over */
    bool over;
};

/* `lenient`, which is for answers: extensions of chunks and trailers may be there, and are left out.  In a
 * request they are an error: nobody sends them but who has something in mind. */
void body_begin(struct body *body, enum head_body kind, uint64_t length, bool lenient);

/* How many of the bytes belong to the body up to the end of the first piece of data in them, which is `data`,
 * or to their end.  0: the body is over.  -1: it is not framed as it must be. */
int64_t body_next(struct body *body, const char *bytes, size_t len, struct head_part *data);
