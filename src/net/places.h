#pragma once

/* What the network of a sandbox and its gateway agree on. */

enum {
    NETWORK_PORT = 1019, /* below 1024: nobody inside can take it */
    NETWORK_SOCKETS = 4,
};

/* Which of the sockets is which.  -1: there is none, as where the kernel has no IPv6. */
enum { NETWORK_UDP, NETWORK_TCP, NETWORK_UDP6, NETWORK_TCP6 };

/* The sandbox's own addresses, besides those of loopback. */
#define NETWORK_OWN4 "192.0.2.2"
#define NETWORK_OWN6 "fd00:c0fe::2"

/* The addresses that stand for names: 198.18.0.0/16 and fd00:c0fe:0:1::/64 for allowed ones, 198.19.0.0/16 and
 * fd00:c0fe:0:2::/64 for others. */
#define NETWORK_POOL4 "198.18.0.0"
#define NETWORK_POOL4_REFUSED "198.19.0.0"
#define NETWORK_POOL6 "fd00:c0fe:0:1::"
#define NETWORK_POOL6_REFUSED "fd00:c0fe:0:2::"
