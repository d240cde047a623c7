#pragma once

#include <linux/seccomp.h>
#include <stdint.h>

struct strings;

/* A look at a waiting call of a sandboxed process, from outside, that changes nothing. */

enum look_how { LOOK_READ, LOOK_WRITE, LOOK_RUN, LOOK_CONNECT };

enum look_found {
    LOOK_FINE,
    LOOK_ABSENT,    /* not inside, but on the host */
    LOOK_READ_ONLY, /* to be changed, and lies where the sandbox lets nothing be changed */
    LOOK_DENIED,    /* inside, but a directory on the way is closed, or by its mode it cannot be changed */
    LOOK_NO_NETWORK,
};

enum { LOOK_PATH_MAX = 4096 };

/* `subject` is a path, absolute, as it is called inside, with no "." or ".." in it.  With LOOK_NO_NETWORK it
 * is an address and its port. */
typedef void look_note(void *owner, enum look_how how, enum look_found found, const char *subject);

struct look_view {
    const struct strings *writable; /* what the Landlock rules leave open for writing; NULL: there are none */
    look_note *note;
    void *owner;
};

/* Tells every path and every address of the call that will not be had.  Noise is left out: what the host has
 * neither, a process's own entry in /proc, and compiled Python beside its source. */
void look_at_call(const struct seccomp_notif *call, const struct look_view *view);

/* Without following symbolic links: "/a//b/./../c" becomes "/a/c". */
void look_normalise(char *path);

/* The directory that such a path lies in.  The caller frees. */
char *look_above(const char *path);
