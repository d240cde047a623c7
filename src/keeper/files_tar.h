#pragma once

/* Inside keeper/ only: a tree that comes out of a sandbox, written as a tar archive. */

#include "base/array.h"
#include "base/text.h"
#include "inside/tree_read.h"

struct files_copy;

struct files_tar {
    int fd;
    bool bare; /* names begin within the first directory */
    struct files_copy *copy;

    uint64_t files, bytes; /* that were written */
    const char *problem;   /* what an error was about, or NULL */

    struct text path; /* from here on: our own */
    size_t lengths[FILES_DEPTH_MAX];
    unsigned depth;
    struct strings twins; /* the first name of each */
    uint64_t size, at;    /* of the file */
    uint64_t holes;
};

/* The owner is a struct files_tar. */
extern const struct tree_sink files_tar_sink;

/* What stands at the end of an archive; -1 and errno. */
int files_tar_end(struct files_tar *tar);
void files_tar_free(struct files_tar *tar);
