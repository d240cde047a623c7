#pragma once

/* The last step: a pack that was checked, and one new reference to it, in the owner's repository.
 * Everything goes by handle from the git directory down, through no link.  Files are written beside
 * their place, made durable, and then given their names, none of which may exist: stopped at any
 * moment the repository is as it was or has the commits, and nothing that was there is different. */

#include "git/refs.h"

struct landing {
    int git;            /* the git directory */
    int pack, index;    /* files that can be read */
    const char *name;   /* of the pack: the hash that it ends with */
    size_t digits;      /* of a hash */
    const char *branch; /* what stands behind refs/heads/ */
    const char *hash;   /* what it will point to */
};

int land(const struct landing *landing, struct error *err);

/* The name of a pack: the hash of all before it, with which it ends.  Refuses what is no pack, and one
 * whose hash is wrong. */
int land_name_pack(int pack, size_t digits, char out[HASH_MAX + 1], struct error *err);
