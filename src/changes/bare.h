#pragma once

#include "base/array.h"

#include <stdbool.h>
#include <stddef.h>

struct changes;
struct patch_source;

/* Directories that git would take for a repository although they are not called .git: in there a `config`
 * and `hooks` come alive as soon as somebody enters it and asks git anything. */
struct bare {
    const struct patch_source *source;
    const struct changes *changes; /* sorted */

    struct strings odd; /* directories with a HEAD that is spelt otherwise; sorted */
    bool prepared;

    /* Directories around the path that was asked for last, from the outside in. */
    struct bare_level *items;
    size_t len, cap;
};

void bare_free(struct bare *bare);

/* The part of `path` that lies below such a directory, the innermost one; NULL: below none.  Cheap if asked
 * in the order of the paths. */
const char *bare_below(struct bare *bare, const char *path);
