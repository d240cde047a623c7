#pragma once

/* Puts files, directories and links below a directory, by handles: no link is followed, nothing is written
 * through one, and no name leads out.
 *
 * A file is made under a name of our own and takes its name when it is whole.  It replaces a file and nothing
 * else, a link only a link; a directory that is there is added to and keeps its mode.  Bits of mode beyond 0777
 * do not come.  What cannot be put is told as a note, and the rest goes on; only what would stop everything
 * else too (no room, a disk that fails) is an error. */

#include "inside/tree_read.h"

#include <sys/types.h>

struct lay_level {
    int fd;          /* -1: what is in it is left out */
    bool made;       /* by us: its mode and time are set when all is in it */
    size_t path_len; /* of lay->path, without it */
    mode_t mode;
    struct timespec mtime;
};

struct lay_twin {
    dev_t device; /* 0 and 0: it did not come */
    ino_t inode;
    char *path;
};

struct lay {
    int top;        /* the caller's */
    const char *as; /* the first entry has this name instead of its own; or NULL */
    bool into;      /* what is in the first entry, a directory, goes into `top` */

    void (*note)(void *owner, const struct files_note *note, const char *path);
    void *owner;

    uint64_t files, bytes; /* that came; a directory or link counts as a file */

    unsigned depth; /* from here on: our own */
    struct lay_level levels[FILES_DEPTH_MAX];
    size_t path_len;
    struct lay_twin *twins;
    size_t twins_len;
    int fd; /* of the file that is being written, or -1 */
    bool in_file;
    struct files_entry entry;
    uint64_t at;
    uint64_t seed;
    char temp[32], name[FILES_NAME_MAX + 1];
    char path[(FILES_DEPTH_MAX + 1) * (FILES_NAME_MAX + 1)];
};

/* Takes what tree_read() gives; the owner is a struct lay. */
extern const struct tree_sink lay_sink;

/* For an empty one in which `top`, `as`, `into`, `note` and `owner` are set. */
void lay_begin(struct lay *lay);

/* Closes everything; what is not whole is removed, directories that are there stay. */
void lay_end(struct lay *lay);

void lay_note(struct lay *lay, enum files_why why, int number, const char *name);

/* A hard link to what lies at `path` below `top`. */
int lay_hard_link(struct lay *lay, const char *name, const char *path);
