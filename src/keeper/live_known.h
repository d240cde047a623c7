#pragma once

/* What the process that brings work home while a sandbox runs remembers of each path: which state of it
 * was looked at last, and what was put on the host.  The sandbox chooses the paths, so there is a bound; what
 * is not remembered is left to the end. */

#include "base/map.h"
#include "changes/apply.h"

#include <sys/stat.h>

enum known_state {
    KNOWN_SAME,  /* the host has the same, and not from us */
    KNOWN_OURS,  /* `put` is from us */
    KNOWN_GONE,  /* it is nowhere */
    KNOWN_WAITS, /* for consent, or because it is the owner's turn, or it cannot be brought */
};

/* A state of a file in the layer.  Zero: none. */
struct known_mark {
    ino_t inode;
    off_t size;
    struct timespec mtime, ctime;
};

struct known {
    char *path;
    enum known_state state;
    struct known_mark seen;
    struct print put;    /* for OURS */
    bool based;          /* the host had something there when we looked */
    bool brought;        /* at least once */
    size_t place;        /* of its prints; 0: none yet */
    bool second;         /* which of two is the newer one */
    uint64_t rest_until; /* monotonic, in microseconds: what is dear to bring is not brought all the time */
};

struct known_paths {
    struct known *items;
    size_t len, cap;
    struct map places; /* from path to index + 1 */
    size_t bytes;      /* of all paths */
    bool full;         /* something was not remembered */
};

#define KNOWN_PATHS_NONE ((struct known_paths){ 0 })

void known_free(struct known_paths *known);

/* NULL: not known.  Valid until the next one is added. */
struct known *known_find(const struct known_paths *known, const char *path);

/* Makes a new one if need be; NULL if there is no room. */
struct known *known_add(struct known_paths *known, const char *path);

struct known_mark known_mark_of(const struct stat *status);
bool known_is_marked(const struct known_mark *a, const struct known_mark *b);
