#pragma once

/* The gateway's program (gateway/gateway.h), which is part of ours. */

#include <stddef.h>
#include <sys/types.h>

struct error;

/* Starts it in a session of its own, with the descriptors `fds`, from 0 on, and no others; one that is -1 is
 * closed there.  No variable of ours is handed on.  -1 and errno: it could not be forked. */
pid_t program_start(const char *const argv[], const int *fds, int count);

/* Starts it and waits for its end: what it is told is `in`, or -1, and what it says, as far as there is room,
 * comes to `out`, which ends with a zero.  -1: it did not come to a good end. */
int program_ask(const char *const argv[], int in, char *out, size_t size);

/* Whether these are certificates that somebody can be believed by. */
int program_check_bundle(const char *pem, struct error *err);
