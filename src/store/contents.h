#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What is in a file, from one to another: shared where the file system can do that, and with its holes. */
struct contents {
    /* Asked between pieces of big files; false ends the copy with EINTR.  May be NULL. */
    bool (*go_on)(void *owner);
    void *owner;
    uint64_t bytes; /* copied so far, of all files */
    bool no_clone;  /* the file system cannot share; no need to ask for each file */
    char *buffer;
};

void contents_free(struct contents *contents);

/* `to` is empty and open for reading and writing; `status` is that of `from`.  -1 and errno. */
struct stat;
int contents_copy(struct contents *contents, int from, int to, const struct stat *status);
