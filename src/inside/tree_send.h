#pragma once

/* A tree as frames, read by handles: no link is followed.  A file is read up to the size that it had when it
 * was opened, so none is endless; holes stay holes.  What is no file, link or directory, or cannot be read, is
 * named in its place, and so are kernel file systems such as /proc. */

#include "inside/frames.h"

#include <dirent.h>
#include <sys/types.h>

struct tree_seen {
    dev_t device;
    ino_t inode;
    uint32_t number; /* 0: free */
};

struct tree_sender {
    struct frames *frames;
    uint32_t id;
    bool listens; /* stop with ECANCELED as soon as the other end says something */

    uint64_t files, bytes; /* that were sent */

    unsigned depth; /* from here on: our own */
    struct {
        DIR *entries;
        dev_t device;
    } levels[FILES_DEPTH_MAX];
    struct tree_seen *seen; /* files with several names */
    uint32_t twins;
};

/* Sends what `name` in `dir` is, under the name `as`.  -1 and errno: the other end cannot be reached. */
int tree_send(struct tree_sender *sender, int dir, const char *name, const char *as);
