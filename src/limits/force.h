#pragma once

/* Whether limits are in force on a process: read from the kernel, whoever set them. */

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct limits;

/* Whether there are limits that can be read back: the others are kept by the keeper, who looks or counts. */
bool limits_of_the_kernel(const struct limits *limits);

/* Of each limit that the kernel keeps, that it is in force on this process.  Of limits->place only the kind and
 * the controllers are looked at. */
int limits_in_force(const struct limits *limits, pid_t pid, struct error *err);
