#pragma once

/* Removes what a path names, and with `recursive` all that is below it; -1 and errno.  However deep the tree,
 * two directories are open at a time; mounts are not entered.  It stops at the first thing that cannot be
 * removed. */

#include <stdbool.h>

int remove_path(const char *path, bool recursive);
