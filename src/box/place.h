#pragma once

#include <sys/stat.h>

/* One existing file or directory of the host.  The handle is opened first; path, owner and type
 * are then read from it, so that a name that changes its meaning in between changes nothing. */
struct place {
    int fd;     /* O_PATH */
    char *path; /* absolute, every symbolic link resolved */
    struct stat stat;
};

#define PLACE_NONE ((struct place){ .fd = -1 })
#define autoplace __attribute__((cleanup(place_close)))

/* -1 with errno if there is none.  `path` counts from the directory `at`; links are followed, but
 * not the magic ones of /proc, which lead anywhere. */
int place_open(int at, const char *path, struct place *out);

/* Accepts PLACE_NONE. */
void place_close(struct place *place);

/* Hands it over: `from` is PLACE_NONE afterwards, what `to` held is closed. */
void place_move(struct place *to, struct place *from);
