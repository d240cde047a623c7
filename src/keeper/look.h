#pragma once

#include <linux/seccomp.h>
#include <stdint.h>

/* A look at a waiting call of a sandboxed process, from outside, that changes nothing. */

enum look_how { LOOK_READ, LOOK_WRITE, LOOK_RUN };

enum look_found {
    LOOK_FINE,
    LOOK_ABSENT,    /* not inside, but on the host */
    LOOK_READ_ONLY, /* to be changed, and lies on a mount that cannot be */
    LOOK_DENIED,    /* inside, but a directory on the way is closed */
};

enum { LOOK_PATH_MAX = 4096 };

/* `path` is absolute, as it is called inside, with no "." or ".." in it. */
typedef void look_note(void *owner, enum look_how how, enum look_found found, const char *path);

/* Tells every path of the call that will not be had.  Noise is left out: what the host has neither,
 * a process's own entry in /proc, and compiled Python beside its source. */
void look_at_call(const struct seccomp_notif *call, look_note *note, void *owner);

/* Without following symbolic links: "/a//b/./../c" becomes "/a/c". */
void look_normalise(char *path);
