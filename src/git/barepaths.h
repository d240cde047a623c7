#pragma once

/* Directories of a commit that git would take for a repository although they are not called .git, by
 * the paths of its files alone (as changes/bare.h does for files). */

#include "base/map.h"

#include <stdbool.h>

struct barepaths {
    struct map directories; /* which of classify_telling they have, one bit each */
    bool any;               /* one has what all of them need */
};

#define BAREPATHS_NONE ((struct barepaths){ MAP_NONE, false })

void barepaths_free(struct barepaths *paths);
void barepaths_add(struct barepaths *paths, const char *path);

/* The part of `path` that lies below the innermost such directory; NULL: below none. */
const char *barepaths_below(const struct barepaths *paths, const char *path);
