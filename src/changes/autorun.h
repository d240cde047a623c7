#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct error;

/* What in a tree runs or steers a tool merely by being there (class A of classify.h), as its names tell:
 * no content is looked at.  A directory whose every file would be one is listed itself, and not looked
 * into; so is a bare repository.  Files with a setuid or setgid bit count too, and directories that cannot
 * be read or lie too deep: nobody could say what is in them. */
struct autorun_place {
    char *path; /* relative to the tree */
    dev_t device;
    ino_t inode;
};

struct autorun {
    struct autorun_place *items; /* sorted by path */
    size_t len, cap;
    bool more; /* there are more than anybody wants to know at once */
};

#define AUTORUN_NONE ((struct autorun){ 0 })

void autorun_free(struct autorun *autorun);

/* Walks by handles, follows no link and enters no other file system. */
int autorun_find(int tree, struct autorun *out, struct error *err);

/* NULL if the path is none. */
const struct autorun_place *autorun_at(const struct autorun *autorun, const char *path);
