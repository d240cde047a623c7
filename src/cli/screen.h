#pragma once

/* Standard output or error, for bytes of a sandbox: as they are into a pipe or file, filtered on a terminal. */

#include "keeper/termfilter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct screen {
    FILE *file;
    bool terminal;
    struct termfilter filter;
    int failed; /* errno of the first write that failed; nothing is written after it */
};

void screen_open(struct screen *screen, FILE *file);

/* At once: what comes from two streams stays in its order. */
void screen_put(struct screen *screen, const void *bytes, size_t len);

/* What comes next is somebody else's, or begins in the middle of something: a terminal is put back for it. */
void screen_settle(struct screen *screen);
