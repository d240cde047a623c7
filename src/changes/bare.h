#pragma once

#include <stdbool.h>
#include <stddef.h>

struct patch_source;

/* Directories that git would take for a repository, whatever they are called (classify.h): made so by
 * the sandbox, or before.  One walk asks about many paths; each directory is looked at once if they come
 * sorted. */
struct bare_walk {
    struct bare_step {
        char *directory; /* "" is the workspace itself */
        bool bare;
    } * items;
    size_t len, cap;
};

#define BARE_WALK_NONE ((struct bare_walk){ 0 })
#define autobare __attribute__((cleanup(bare_free)))

void bare_free(struct bare_walk *walk);

/* The part of `path` below the outermost such directory; NULL if there is none. */
const char *bare_part(struct bare_walk *walk, const struct patch_source *source, const char *path);
