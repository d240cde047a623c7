#pragma once

/* A directory for fuzzers of what reads files: in memory if there is such a place, gone at the end. */

#include "base/own.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *place_path;
static int place_fd = -1;
static const char *const *place_names; /* everything that can be in it, directories last */

static inline void place_remove(void)
{
    for (size_t i = 0; place_names[i]; i++)
        if (unlinkat(place_fd, place_names[i], 0) < 0)
            (void)unlinkat(place_fd, place_names[i], AT_REMOVEDIR);
    (void)rmdir(place_path);
    free(place_path);
}

static inline int place_open(const char *const *names)
{
    if (place_fd >= 0)
        return place_fd;
    place_path = text_format("%s/cove-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    check(mkdtemp(place_path) != NULL);
    place_fd = open(place_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    place_names = names;
    check(place_fd >= 0 && atexit(place_remove) == 0);
    return place_fd;
}

static inline void place_write(const char *name, const void *bytes, size_t len)
{
    autoclose int fd = openat(place_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    check(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
}
