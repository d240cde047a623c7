#pragma once

/* What we put on the host ourselves while a sandbox ran (--workspace live), so that later it is not taken for
 * the owner's work: a file in the sandbox's directory with a place for each path.  No names are needed:
 * another file does not have the same inode, size and time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* What lies at a place, as long as nobody writes to it. */
struct print {
    ino_t inode; /* 0: nothing */
    off_t size;
    struct timespec mtime;
};

struct prints {
    struct print *items; /* sorted */
    size_t len, cap;
};

#define PRINTS_NONE ((struct prints){ 0 })
#define autoprints __attribute__((cleanup(prints_free)))

enum { PRINTS_MAX = 1 << 19 };

struct print print_of(const struct stat *status);

/* Notes one at a place below PRINTS_MAX, instead of what was there.  Best effort. */
void prints_note(int fd, size_t place, const struct print *print);

/* Reads them all; none from a descriptor of -1. */
void prints_read(int fd, struct prints *out);
void prints_free(struct prints *prints);

bool prints_have(const struct prints *prints, const struct stat *status);
