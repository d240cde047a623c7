#pragma once

/* The gateway of one sandbox: a process with no right but to connect outside.
 *
 * It is given the sockets that are open inside the sandbox, answers what is asked there, and lets through what
 * the rules allow.  Every verdict goes to the keeper as a note, and has no effect before the keeper has written
 * it down. */

#include "base/hostname.h"
#include "net/places.h"

#include <stdint.h>

struct rules;

enum { GATEWAY_WHY = HOSTNAME_SIZE + 386, GATEWAY_COMMAND = HOSTNAME_SIZE + 66 };

/* What a connection was recognised as. */
enum gateway_protocol { GATEWAY_TCP, GATEWAY_TLS, GATEWAY_HTTP, GATEWAY_PROTOCOLS };

/* Over a SOCK_SEQPACKET pair, whole.  The keeper looks at everything: whoever broke into the gateway can send
 * what they like. */
struct gateway_note {
    uint64_t tag; /* repeated in the answer */
    uint32_t allowed, protocol;
    uint32_t port;
    char host[HOSTNAME_SIZE];
    char method[32]; /* of HTTP; else empty */
    char why[GATEWAY_WHY];
    char command[GATEWAY_COMMAND]; /* that would allow it, or empty */
};

/* The answer: it is written down. */
struct gateway_noted {
    uint64_t tag;
};

struct gateway {
    const struct rules *rules;
    int channel; /* to the keeper */
    int sockets[NETWORK_SOCKETS];
    unsigned generation;   /* how many there were before */
    const char *authority; /* of this sandbox, key and certificate as PEM; NULL: it can speak for nobody */
    const char *roots;     /* whom the host believes, as PEM; NULL: nobody */
#ifdef COVE_UNSAFE
    const char *without; /* guards to leave out; or NULL */
#endif
};

/* In a process of its own that has no other descriptors: confines itself, and serves until the keeper is gone.
 */
_Noreturn void gateway_main(const struct gateway *gateway);
