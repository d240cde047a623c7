#pragma once

/* The first message of a TLS client, of which no byte is believed. */

#include <stddef.h>

enum { HELLO_MAX = 16384 }; /* of all records that it comes in; longer ones are refused */

enum hello {
    HELLO_MORE,  /* so far so good */
    HELLO_BAD,   /* it is none, or none that can be read in one way only */
    HELLO_WHOLE, /* `name` is what it asks for */
};

/* Reads the bytes that a client has sent so far.  `name` points into `scratch`, which has room for HELLO_MAX;
 * of length 0: it names nobody. */
enum hello hello_read(const unsigned char *bytes, size_t len, unsigned char *scratch, const char **name,
                      size_t *name_len);
