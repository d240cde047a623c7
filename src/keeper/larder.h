#pragma once

/* The keeper's part of the package cache (store/packages.h): it hands single files to its gateway, to read, and
 * empty ones to write to; of these it takes back what its stower finds to be right.
 *
 * Whoever broke into the gateway gets files whose hashes they know, and can have bytes kept under their own
 * hash: nothing that another gateway would take for something else. */

#include "gateway/gateway.h"
#include "keeper/stower.h"

enum { LARDER_SPOOLS = 32 }; /* that a gateway may have at a time, so that it cannot fill a disk */

struct larder {
    int dir; /* -1: there is no cache */
    uint64_t most;
    struct stower stower;
    struct larder_spool {
        bool given;   /* the gateway may have it open; false: free */
        uint64_t tag; /* 0: nothing more is to be heard of it */
        int fd;
        struct checksum name;
    } spools[LARDER_SPOOLS];
};

#define LARDER_NONE ((struct larder){ .dir = -1, .stower = { .to = -1 } })

/* By a handle on the sandbox's directory, of at most `most` bytes; 0: none.  Where it cannot be had there is
 * none. */
void larder_open(struct larder *larder, int sandbox, uint64_t most);

/* What is given for a name, with its size if it is a file; `fd` is the caller's then. */
enum gateway_given larder_want(struct larder *larder, const struct checksum *name, uint64_t tag, int *fd,
                               uint64_t *size);

/* What was written by this tag: to be kept, or not.  And of a file that was read: it is wrong. */
void larder_keep(struct larder *larder, uint64_t tag);
void larder_drop(struct larder *larder, uint64_t tag);
void larder_check(struct larder *larder, const struct checksum *name);

/* Whether a gateway may have something to say of what it was given. */
bool larder_waits(const struct larder *larder);

/* The gateway is gone, and with it who could tell. */
void larder_drop_all(struct larder *larder);
void larder_close(struct larder *larder);
