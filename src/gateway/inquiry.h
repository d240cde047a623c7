#pragma once

/* What the gateway asks a registry itself: as if it were a client inside, so that its request is judged, noted,
 * counted and verified as any other.
 *
 * An inquiry is the client side of a connection of its own, as a lane is (session.h).  One that is answered may
 * ask the same host again, by the same server.  Nothing here calls whoever waits for it: its source is told to
 * be ready. */

#include "gateway/package.h"
#include "net/body.h"

#include <sys/types.h>

struct connection;
struct event_source;
struct inquiry;

/* Asks for what is said of `package`.  `waiting` is told when there is an answer, or will be none.  NULL:
 * nobody can be asked now. */
struct inquiry *inquiry_begin(const struct package *package, struct event_source *waiting);

enum inquiry_answer { INQUIRY_WAITS, INQUIRY_FAILED, INQUIRY_ANSWERED };

enum inquiry_answer inquiry_answer(const struct inquiry *inquiry, const char **bytes, size_t *len);

/* Nobody waits for it any more. */
void inquiry_leave(struct inquiry *inquiry);

/* For the side that it is (side.c): as recv(), send() and close(). */

ssize_t inquiry_read(struct inquiry *inquiry, void *bytes, size_t size);
ssize_t inquiry_write(struct inquiry *inquiry, const void *bytes, size_t len);
void inquiry_close(struct inquiry *inquiry);
