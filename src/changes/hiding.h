#pragma once

#include <stdbool.h>

struct change;
struct patch_bytes;
struct patch_source;
struct text;

/* Whether a change makes git, or who reviews with it, look away: attributes that leave files out of diffs
 * or put a program before them, marks in the index, .git/info/exclude.  `says` gets what it is, with bytes
 * of the sandbox in it; untouched if the answer is no. */
bool hiding_of(const struct patch_source *source, const struct change *change, const struct patch_bytes *old,
               const struct patch_bytes *new, struct text *says);
