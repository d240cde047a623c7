#pragma once

#include <stddef.h>
#include <sys/un.h>

/* Where a socket address leads, as seen from a sandbox whose network is its own loopback (box/network.h). */

enum destination_kind {
    DESTINATION_INSIDE,  /* loopback, the gateway, or nothing that can be said */
    DESTINATION_NETWORK, /* another machine: `name` says which, and its port */
    DESTINATION_SOCKET,  /* a socket in the file system: `name` is its path */
};

enum { DESTINATION_MAX = sizeof(struct sockaddr_un) + 1 };

/* What is in `bytes` may be anything, and is not aligned.  `name` is only set for the kinds that have one. */
enum destination_kind destination_read(const void *bytes, size_t len, char name[DESTINATION_MAX]);
