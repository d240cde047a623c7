#pragma once

/* A program of ours in memory that many sandboxes share: a sealed memfd, which nobody can change, of a keeper
 * that has come to rest.  A link in the state directory leads to its descriptor, and nowhere once that keeper
 * is gone. Wherever it leads, only what is sealed and is our program to the byte is taken. */

#include <stddef.h>

struct lent {
    const char *name; /* the memfd's and, in the state directory, the link's */
    const unsigned char *bytes;
    size_t size;
};

/* A descriptor of it, or -1: nobody lends it. */
int lent_take(const char *state, const struct lent *what);

/* Lends it for as long as the descriptor is open.  -1: somebody does already, or it cannot be done. */
int lent_offer(const char *state, const struct lent *what);
