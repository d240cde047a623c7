#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What can be bounded, in the order of the fields of the same names. */
enum limit_id {
    LIMIT_MEMORY,     /* bytes */
    LIMIT_CPUS,       /* thousandths of a processor */
    LIMIT_PROCESSES,  /* threads count as well */
    LIMIT_OPEN_FILES, /* of one process */
    LIMIT_FILE_SIZE,  /* bytes of one file */
    LIMIT_DISK,       /* bytes in all layers */
    LIMIT_INODES,     /* files in all layers */
    LIMIT_OUTPUT,     /* bytes, standard output and error together */
    LIMIT_COUNT,
};

struct limit {
    uint64_t max; /* 0: none */
    bool hard;    /* refuse to start where it would not be hard */
};

/* Enough for any build, and little enough for the machine to survive it. */
#define LIMIT_PROCESSES_USUAL 4096
