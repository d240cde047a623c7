#pragma once

/* The frames of a tree, checked: whoever sends them may be lying.  What passes has names that are one
 * component, comes in order, and never has more content than was said. */

#include "inside/frames.h"

#include <stdbool.h>

/* One name that comes; strings end with NUL. */
struct tree_item {
    struct files_entry entry;
    const char *name;
    const char *target;     /* of a link, or "" */
    struct files_note note; /* of what was left out */
};

/* Who takes it.  All give 0, or -1 and errno, which ends the tree. */
struct tree_sink {
    int (*enter)(void *owner, const struct tree_item *item);
    int (*leave)(void *owner);
    int (*file)(void *owner, const struct tree_item *item);
    int (*data)(void *owner, const void *bytes, size_t len);
    int (*hole)(void *owner, uint64_t len);
    int (*file_end)(void *owner, int status); /* status 0: all of it came; else forget it */
    int (*link)(void *owner, const struct tree_item *item);
    int (*twin)(void *owner, const struct tree_item *item);
    int (*left_out)(void *owner, const struct tree_item *item);
};

struct tree_reader {
    const struct tree_sink *sink;
    void *owner;
    unsigned depth;
    uint32_t twins; /* so many files had a number */
    bool begun, in_file;
    uint64_t size, got; /* of the file */
    char name[FILES_NAME_MAX + 1], target[FILES_PATH_MAX + 1];
};

/* One frame TREE_*.  -1 and errno: EBADMSG if it has no place here, else what the sink said. */
int tree_read(struct tree_reader *reader, const struct frame *frame);

/* Whether one entry came, whole. */
bool tree_is_whole(const struct tree_reader *reader);

/* Whether it may be a name in a directory. */
bool tree_is_name(const char *name, size_t len);
