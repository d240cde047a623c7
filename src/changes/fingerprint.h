#pragma once

#include <stdint.h>

struct error;

/* A number that is another one as soon as a file or link below `tree` was added, removed, written or given
 * other rights: from names, inodes, sizes, modes and times, not from contents.  Directories count by name
 * and mode only, and what lies in a `.git` not at all: git writes there whenever it is asked something. */
int fingerprint_tree(int tree, uint64_t *out, struct error *err);
