#pragma once

/* A process that puts package files into the cache, and makes room there: the keeper waits for no disk.
 *
 * Should: copy what it is given, and name it by its hash only if that is its hash.  Must not: read anything
 * else of the bytes; hold the sandbox's lock or a client's socket; outlive the keeper. */

#include "base/checksum.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STOWER_WAITS_MAX = 1 << 30 }; /* bytes that are on the disk until it has looked at them */

struct stower {
    pid_t pid;        /* 0: there is none */
    int to;           /* a socket; -1 */
    uint64_t waiting; /* bytes that it was given since it last had nothing to do */
};

#define STOWER_NONE ((struct stower){ .to = -1 })

/* In the directory `packages`, of at most so many bytes.  False: it cannot be had. */
bool stower_start(struct stower *stower, int packages, uint64_t most);

/* To keep what `spool` has under that name; or with -1 to look whether what is there is right.  Best effort:
 * who has more to do than there is room for is not told of it. */
void stower_give(struct stower *stower, const struct checksum *name, int spool);

/* Lets it finish what it was given, if that does not take long, and ends it. */
void stower_end(struct stower *stower);
