#pragma once

#include "base/array.h"

#include <stdbool.h>

/* The names in one directory, read at once: cheaper than asking for a hundred that are mostly not
 * there.  In a very large directory it is not, and then every name counts as possible. */
struct names {
    struct strings sorted;
    bool all; /* false: too many, or it cannot be read */
};

#define NAMES_NONE ((struct names){ STRINGS_NONE, false })

void names_read(int dir, struct names *out);

/* Whether the first component of `path` may be there. */
bool names_may_have(const struct names *names, const char *path);
