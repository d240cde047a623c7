#pragma once

/* What a stack of frozen layers shows of one tree, as a directory to read: an overlay without an upper
 * directory, in a mount namespace that nobody else sees. */

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct ids;
struct strings;

struct showing {
    const char *state;           /* the state directory */
    const struct strings *chain; /* layers, newest first; may be empty */
    uint64_t number;             /* of the tree */
    const char *base;            /* what the lowest one lies on: absolute, and this device and inode */
    uint64_t device, inode;
    const char *copy; /* instead: the layer that holds the copy below (store/bottom.h); "" or NULL: none */
    const struct strings *hide; /* paths of the base, relative, that are not seen; or NULL */
    bool trusted;               /* which marks count: those of root's overlays */
};

/* For a process that has a user namespace of its own, or is root: gives it mounts of its own, and a place to
 * mount on.  Everything that is shown must be opened afterwards. */
struct showing_stage {
    int layers, room;
};
int showing_enter(const char *state, struct showing_stage *out, struct error *err);

/* A handle on it; it is gone with the last one. */
int showing_mount(const struct showing_stage *stage, const struct showing *showing, struct error *err);

/* All in one, for whoever stays where it is: `fds` gets `count` handles, 4 at most. */
int showing_open(const struct ids *ids, const struct showing *showings, size_t count, int *fds,
                 struct error *err);
