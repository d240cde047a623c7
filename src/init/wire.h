#pragma once

/* One message of protocol.h over a SEQPACKET socket, with the descriptors that lie beside it.
 * Keeper, clone and PID 1 are all built with this file: it uses only libc and base/error. */

#include "init/protocol.h"

#include <stddef.h>

enum wire_got {
    WIRE_CLOSED,  /* the other end is gone */
    WIRE_MESSAGE, /* message, fds and count are filled in */
    WIRE_NOTHING, /* on a non-blocking socket: no message is there */
};

/* Sends the message whole; -1 and errno on failure.  The descriptors remain the caller's. */
int wire_send(int fd, const struct message *message, const int *fds, size_t count);

/* Gives an enum wire_got or -1.  `fds` has room for PROTOCOL_FDS_MAX; who receives owns them.  A
 * message of a wrong size, or with more descriptors, is an error and leaves none behind.  The text
 * in message->error is terminated; nothing else in the message was looked at. */
int wire_receive(int fd, struct message *message, int *fds, size_t *count, struct error *err);

/* The same, and the message stays where it is, for others who wait. */
int wire_peek(int fd, struct message *message, int *fds, size_t *count, struct error *err);

/* The same for other structs of a fixed size. */
int wire_put(int fd, const void *bytes, size_t size, const int *fds, size_t count);
int wire_take(int fd, void *bytes, size_t size, int *fds, size_t *count, struct error *err);

/* Where up to `most` structs of that size may stand, one behind the other; `len` is how many came. */
struct wire_room {
    void *structs;
    size_t size, most, len;
};

/* One message of several of them. */
int wire_take_several(int fd, struct wire_room *room, int *fds, size_t *count, struct error *err);
