#pragma once

#include <stdint.h>

struct strings;

/* Mount points of this process's mount namespace that lie strictly below `path`, outermost first.
 * Empty if the list cannot be read: whoever mounts finds out then. */
void mounts_below(const char *path, struct strings *out);

/* The first of the MS_* flags that the options of a line of mountinfo do not have, by its name; NULL: none. */
const char *mounts_lack(const char *options, uint64_t flags);
