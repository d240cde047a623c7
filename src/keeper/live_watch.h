#pragma once

/* Which paths of a layer were written to: inotify on its directories.  Older kernels tell only of names that
 * come and go there, not of writes, and none tells of writes through a mapping: so somebody has to look around
 * now and then all the same. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum watch_what {
    WATCH_CHANGED, /* made, or written to and still open */
    WATCH_CLOSED,  /* written to, and closed, or moved here: likely complete */
    WATCH_REMOVED,
    WATCH_DIRECTORY, /* came: what is in it may be new too */
};

struct watch_dir {
    int number;
    char *path; /* relative to the layer; "" is its top */
};

struct watch {
    int fd; /* to be polled; -1: nothing is told */
    int upper;
    struct watch_dir *items; /* by number */
    size_t len, cap;
    bool lost;  /* events, since the owner set it to false */
    bool deaf;  /* not all directories are watched: there are too many */
    bool hears; /* of writes to files */
};

#define WATCH_NONE ((struct watch){ .fd = -1, .upper = -1 })

/* Without inotify it is deaf.  `upper` stays the caller's. */
void watch_open(struct watch *watch, int upper);
void watch_close(struct watch *watch);

/* Watches the directory `path`, or also all below it, as long as there is room. */
void watch_add(struct watch *watch, const char *path);
void watch_tree(struct watch *watch, const char *path);

typedef void watch_told(void *owner, const char *path, enum watch_what what);

/* Tells what has happened, a bounded number of events at a time. */
void watch_read(struct watch *watch, watch_told *told, void *owner);
