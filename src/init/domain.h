#pragma once

/* The Landlock rules of commands.  Built by the clone for the first ones, and by PID 1 again after its layers
 * were switched: rules are bound to inodes, and those of an overlay go with it. */

#include <stddef.h>

struct error;

/* A ruleset, as a descriptor: everything may be read, and written what lies below `writable`, paths that count
 * from our root.  `abi` is what the kernel can do (1 at least). */
int domain_build(int abi, char *const *writable, size_t count, struct error *err);
