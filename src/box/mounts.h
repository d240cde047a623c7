#pragma once

struct strings;

/* Mount points of this process's mount namespace that lie strictly below `path`, outermost first.
 * Empty if the list cannot be read: whoever mounts finds out then. */
void mounts_below(const char *path, struct strings *out);
