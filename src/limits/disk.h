#pragma once

/* What the layers of a sandbox take on disk. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct disk {
    uint64_t bytes, files;
    bool whole; /* false: a directory was closed to us, or there were too many */
};

/* Walks the upper directories below `dir`, a sandbox's own; each file of many names counts once in sum.
 * Stops early when one of the two bounds (0: none) is passed. */
void disk_walk(int dir, uint64_t most_bytes, uint64_t most_files, struct disk *out);

/* The same by a child with the rights of the sandbox's own user namespace: for what is closed to us, because
 * its modes say so or because it belongs to an id that only that namespace knows. */
void disk_walk_inside(int dir, pid_t init, uint64_t most_bytes, uint64_t most_files, struct disk *out);

/* Free bytes and inodes of the file system below `dir`, as its owner may use them.  Cheap. */
struct disk_free {
    uint64_t bytes, files;
};

bool disk_look(int dir, struct disk_free *out);
