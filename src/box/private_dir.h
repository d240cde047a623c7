#pragma once

#include <stdbool.h>

struct error;

/* A directory of ours in which nobody else can read, or put, anything: state and runtime.
 *
 * Whoever can replace a directory or a link above it can replace it, so the way there is walked
 * from the root, and every directory and link on it must belong to root or to us and be closed to
 * writers other than that (a sticky one, as /tmp, is enough for what lies in it). */

/* The path with its links resolved, as far as it exists; what is missing is added as it stands.
 * NULL on failure; the caller frees. */
char *private_dir_find(const char *path, struct error *err);

/* Makes what is missing, 0700; what is there must be ours and closed to others. */
int private_dir_make(const char *path, struct error *err);

/* Whether this process is in the machine's own user namespace. */
bool private_dir_initial_namespace(void);
