#pragma once

#include "inside/frames.h"

/* A request of the host, taken apart. */
struct ask {
    uint32_t id;
    struct files_request request;
    char path[FILES_PATH_MAX + 1], other[FILES_PATH_MAX + 1]; /* end with NUL */
    bool told;                                                /* it has failed, and the host knows */
};

/* False if it is not in order: a path that is empty, too long, has a NUL, or lengths that do not fit the frame.
 */
bool ask_read(const struct frame *frame, struct ask *out);
