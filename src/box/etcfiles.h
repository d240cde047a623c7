#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct text;

/* The files of /etc that the `host` image shows: a fixed list of names, and of those only what
 * every user of the machine may read. */
struct etcfile {
    char *path; /* below /etc; "" is /etc itself */
    mode_t mode;
};

struct etcfiles {
    struct etcfile *items; /* a directory stands before what is in it */
    size_t len, cap;
};

#define ETCFILES_NONE ((struct etcfiles){ 0 })

/* Finds them, and adds to `stamp` what they were when they were found: of every directory and
 * regular file inode, size and time of change, which moves with its content, links and mode. */
int etcfiles_scan(int etc, struct etcfiles *out, struct text *stamp, struct error *err);
void etcfiles_free(struct etcfiles *files);

/* Whether everything is still as the stamp (`len` bytes) says; one statx for each.  Without `all`
 * only directories are looked at: that shows every file that came, went or was replaced, but not
 * one that was written to in place. */
bool etcfiles_unchanged(int etc, const char *stamp, size_t len, bool all);

/* Copies them below the directory `into`. */
int etcfiles_copy(int etc, const struct etcfiles *files, int into, struct error *err);
