#pragma once

/* A file that is named before a run and written after it (--report, --audit-policy).
 *
 * What runs meanwhile may be able to replace what lies there, or a directory on the way, by a link.  So the
 * place is looked up once, before, and held: what is delivered goes there, or is an error. */

#include <stddef.h>

struct error;

struct delivery {
    const char *path, *name; /* the caller's, as it was given; and its last part */
    int dir, there; /* what was there before and is no regular file (/dev/stdout, a FIFO); -1: nothing such */
};

#define DELIVERY_NONE ((struct delivery){ .dir = -1, .there = -1 })
#define autodelivery __attribute__((cleanup(delivery_close)))

/* As far as can be told before it will work: nobody wants to hear of it after an hour. */
int delivery_open(const char *path, struct delivery *out, struct error *err);

/* To a new file that takes the name at once and whole, readable for its owner only; what was there before and
 * is no regular file is added to.  "-" is standard output. */
int delivery_put(const struct delivery *delivery, const void *bytes, size_t len, struct error *err);

/* To a new file, and over nothing. */
int delivery_put_new(const struct delivery *delivery, const void *bytes, size_t len, struct error *err);

void delivery_close(struct delivery *delivery);
