#pragma once

/* The gateway of one sandbox: a process with no right but to connect outside.
 *
 * It is given the sockets that are open inside the sandbox, answers what is asked there, and lets through what
 * the rules allow.  Every verdict goes to the keeper as a note, and has no effect before the keeper has written
 * it down. */

#include "base/checksum.h"
#include "base/hostname.h"
#include "net/places.h"
#include "spec/network.h"

#include <stdbool.h>
#include <stdint.h>

enum { GATEWAY_WHY = HOSTNAME_SIZE + 386, GATEWAY_COMMAND = HOSTNAME_SIZE + 120, GATEWAY_PATH = 512 };

/* What a connection was recognised as. */
enum gateway_protocol { GATEWAY_TCP, GATEWAY_TLS, GATEWAY_HTTP, GATEWAY_PROTOCOLS };

/* What is said in a note.  Whoever wants a package file gets it to read, or if it is not there an empty one to
 * write to; that is kept, by the same tag, if it turns out to be what it should be. */
enum gateway_saying {
    GATEWAY_VERDICT,
    GATEWAY_WANT,
    GATEWAY_KEEP,   /* what was written is whole */
    GATEWAY_DROP,   /* it will not be */
    GATEWAY_WRONG,  /* what was read is not what its name says */
    GATEWAY_FAILED, /* what was allowed was not reached, or ended before it should */
    GATEWAY_SAYINGS
};

/* Over a SOCK_SEQPACKET pair, whole, and several at once: those of one turn.  The keeper looks at everything:
 * whoever broke into the gateway can send what they like. */
enum { GATEWAY_NOTES = 16 };

struct gateway_note {
    uint64_t tag; /* repeated in the answer */
    uint32_t saying;
    uint32_t allowed, protocol, reason;
    uint32_t without; /* of REASON_AUDIT: why it would be refused */
    uint32_t port;
    uint32_t rule;        /* whose bytes `spent` has, from 1; 0: it is of all */
    struct amounts spent; /* since the last time; with the tag 0 that is all it says, and it is not answered */
    char host[HOSTNAME_SIZE];
    char method[32];         /* of HTTP; else empty */
    char path[GATEWAY_PATH]; /* without its query, if a rule for it would have to name it; else, or too long:
                                empty */
    char why[GATEWAY_WHY];
    char command[GATEWAY_COMMAND]; /* that would allow it, or empty */
    struct checksum checksum;      /* of the file that is wanted; else empty */
};

/* The answer: it is written down; several at once, too.  And to GATEWAY_WANT, by itself and with a descriptor
 * unless there is nothing. */
enum gateway_given { GATEWAY_NOTHING, GATEWAY_FILE, GATEWAY_SPOOL };

struct gateway_noted {
    uint64_t tag;
    uint64_t size; /* of the file */
    uint32_t given;
};

/* A gateway is a program of its own, so that nothing of its keeper's memory is in it, and nothing of what it is
 * linked with in a keeper.  It has these descriptors and no variables; one that is closed is not given. */
enum {
    GATEWAY_CHANNEL = 3, /* to the keeper.  Before it nothing: no library's last words may reach a client */
    GATEWAY_BRIEF,       /* what it needs to know (gateway/brief.h) */
    GATEWAY_AUTHORITY,   /* of this sandbox, key and certificate as PEM; none: it can speak for nobody */
    GATEWAY_ROOTS,       /* whom the host believes, as PEM; none: nobody */
    GATEWAY_RECORD,      /* where exchanges are written down, which can only grow; none: nowhere */
    GATEWAY_TAPE,        /* exchanges that stand for the network; none: none do */
    GATEWAY_SOCKETS,     /* those open inside, by enum network_socket */
    GATEWAY_FDS = GATEWAY_SOCKETS + NETWORK_SOCKETS,
};

/* Confines itself, and serves until the keeper is gone. */
_Noreturn void gateway_main(int fds[GATEWAY_FDS]);

/* What else the program does, by the name that it is called.  GATEWAY_MINT COUNT makes authorities: each is a
 * line
 * "# NUMBER", the one that OpenSSL gives it in hexadecimal, its key and its certificate as PEM, and a zero.
 * GATEWAY_CHECK reads certificates from descriptor 0, and says what is wrong with them, if anything is. */
#define GATEWAY_MINT "cove-mint"
#define GATEWAY_CHECK "cove-check"
