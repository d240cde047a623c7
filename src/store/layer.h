#pragma once

/* What a sandbox left in a writable layer.  Everything in there was made by a hostile program: it
 * is looked at by handles, no link is followed, no file is opened. */

#include <stdbool.h>
#include <stdint.h>

/* Whether the upper directory of an overlay holds nothing but directories that the kernel copied
 * up from `base` and nobody changed.  What cannot be read, or lies deeper than anybody looks, counts
 * as a change.  Both handles stay the caller's. */
bool layer_is_untouched(int upper, int base);

/* Bytes on disk below `dir`, as far as it can be read. */
uint64_t layer_space(int dir);
