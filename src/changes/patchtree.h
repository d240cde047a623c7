#pragma once

#include <stdbool.h>

struct change;
struct changes;

/* Git knows no directories: that one went with all that was in it is for git a change of each of its
 * files.  Calls `visit` for those that `change` implies and that are no change of their own.  False if
 * there are too many; some were visited then. */
typedef void patchtree_visit(void *owner, const struct change *change);

bool patchtree_walk(int base, const struct changes *changes, const struct change *change,
                    patchtree_visit *visit, void *owner);
