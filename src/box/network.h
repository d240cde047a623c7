#pragma once

/* The network of a sandbox: a loopback, and beside it nothing but sockets that lead to the gateway.
 *
 * Every address there is belongs to loopback.  What is sent to 127.0.0.0/8, ::1 and the sandbox's own two
 * addresses stays what it is.  Questions to name servers, and TCP to the addresses that stand for names or to
 * ports 80 and 443, come to sockets that are opened here and handed to the keeper.  The rest is refused at
 * once. There is no device to send anything by (decision 30). */

#include "base/error.h"
#include "net/places.h"

#include <stddef.h>
#include <stdint.h>

struct strings;

struct network {
    struct error error;   /* there is none at all, and no sandbox can be */
    struct error lacking; /* of kind ERROR_NONE: the sockets are there; else why there is a loopback only */
    int sockets[NETWORK_SOCKETS];
    int rules;   /* a socket to the kernel, for more rules; the clone's */
    int refused; /* a file inside, to be added to, for what was refused; or -1 */
};

#define NETWORK_CLOSED ((struct network){ .sockets = { -1, -1, -1, -1 }, .rules = -1, .refused = -1 })

/* Where it is inside. */
#define NETWORK_REFUSED_DIR "/run/cove"
#define NETWORK_REFUSED NETWORK_REFUSED_DIR "/refused"

/* Enters a new network namespace and sets it up. */
void network_make(struct network *out);

/* Lets connections to so many more addresses come to the gateway: "ADDRESS PORT" each, or "*" for all
 * but loopback.  With
 * none it does nothing.  An error where there are no sockets. */
int network_grant(const struct network *network, const struct strings *granted, struct error *err);

/* In the new root: makes the file of refusals. */
int network_open_refused(struct network *network, struct error *err);

/* What was wrong remains known. */
void network_close(struct network *network);

/* The way from the clone to the keeper: as descriptors of a message, and out of one.  Gives their number; the
 * second takes those it wants, and -1 if they are not what they should be. */
size_t network_pack(const struct network *network, int *fds);
int network_unpack(struct network *out, int *fds, size_t count, struct error *err);
