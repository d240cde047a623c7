#pragma once

/* What keeper and PID 1 say to each other.
 *
 * One SOCK_SEQPACKET pair, made by the keeper before it clones.  At END, at the end of a command
 * that was started as the last, or when the keeper's end closes, PID 1 exits and with it everything
 * in the pid namespace.  A message is one struct message, whole, with descriptors beside it
 * (SCM_RIGHTS).  Both ends are our own code, but the keeper treats what comes from inside as
 * hostile: it checks size, kind and the number of descriptors. */

#include "base/error.h"

#include <stdint.h>

enum {
    PROTOCOL_INIT_FD = 3,
    PROTOCOL_LANDLOCK_FD = 4, /* a ruleset, or closed where the kernel has no Landlock */
    PROTOCOL_FDS_MAX = 4,
};

enum message_kind {
    MESSAGE_GO = 1,   /* keeper -> clone, while it sets up (box/clone.h) */
    MESSAGE_START,    /* keeper -> init: descriptors: words, then stdin, stdout, stderr unless START_TTY */
    MESSAGE_STARTED,  /* init -> keeper: pid, `ready_us`; with START_TTY one descriptor, the pty's master */
    MESSAGE_FAILED,   /* init -> keeper: `error`, and `status` 125, 126 or 127 */
    MESSAGE_EXITED,   /* init -> keeper: pid, `status` as wait(2) gives it, usage */
    MESSAGE_SIGNAL,   /* keeper -> init: `signal` to the process group of pid */
    MESSAGE_LISTENER, /* a command -> keeper: one descriptor, its seccomp listener (START_EXPLAIN) */
    MESSAGE_END,      /* keeper -> init: kill every process and exit */
    MESSAGE_EMPTY,    /* init -> keeper, the last word: no process is left but PID 1, which exits now */
};

enum start_flags {
    START_TTY = 1 << 0,      /* open a pty inside and make it the controlling terminal */
    START_STRICT = 1 << 1,   /* the strict seccomp profile */
    START_FAKEROOT = 1 << 2, /* changes of owner and identity succeed without effect */
    START_EXPLAIN = 1 << 3,  /* refused calls are reported to a listener first */
    START_ROOT = 1 << 4,     /* keep the capabilities of root in the box */
    START_LAST = 1 << 5,     /* when it has ended, so has the sandbox: as if END came then */
#ifdef COVE_UNSAFE
    /* Only in test builds: leave one guard out, to show that an attack works without it. */
    START_NO_SECCOMP = 1 << 16,
    START_NO_CAPS = 1 << 18,
    START_NO_DUMPABLE = 1 << 19,
    START_NO_SESSION = 1 << 20,
    START_NO_CLOSE = 1 << 21,
#endif
};

struct message {
    uint32_t kind;
    uint32_t flags; /* START */
    int32_t pid;    /* as seen inside */
    int32_t status, signal;
    uint32_t uid, gid;                     /* START: as seen inside */
    uint32_t rows, columns, width, height; /* START: of the terminal, in characters and in pixels */
    uint32_t arguments, variables;         /* START: how many of each are in the words */
    uint64_t ready_us;                     /* STARTED: CLOCK_MONOTONIC when set-up was over */
    uint64_t user_us, system_us, peak_kib; /* EXITED */
    struct error error;
};

/* The words of START are a memfd: working directory, arguments, variables, each ended by NUL. */
