#pragma once

#include <sys/types.h>

struct plan;

/* Compares the mounts that the process has with the plan, from outside: each must be there with its flags, and
 * no other.  NULL if they agree; else what does not, for the caller to free. */
char *mounted_wrong(pid_t pid, const struct plan *plan);

/* What is masked in /proc and can be read all the same; NULL if nothing. */
char *mounted_unmasked(pid_t pid, const struct plan *plan);
