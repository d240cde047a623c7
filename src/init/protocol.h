#pragma once

/* What keeper, PID 1 and the spawner say to each other.
 *
 * Two SOCK_SEQPACKET pairs, made by the keeper before it clones.  Over the first (init, fd
 * PROTOCOL_INIT_FD) PID 1 says READY and reports children that were not the spawner's; at END, or
 * when the keeper's end closes, PID 1 exits and with it everything in the pid namespace.  Over the second
 * (fd PROTOCOL_SPAWN_FD) the keeper asks the spawner for commands.  A message is one
 * struct message, whole, with descriptors beside it (SCM_RIGHTS).  Both ends are our own code, but the keeper
 * treats what comes from inside as hostile: it checks size, kind and the number of descriptors. */

#include "base/error.h"

#include <stdint.h>

enum {
    PROTOCOL_INIT_FD = 3,
    PROTOCOL_SPAWN_FD = 4,
    PROTOCOL_LANDLOCK_FD = 5, /* a ruleset, or closed where the kernel has no Landlock */
    PROTOCOL_FDS_MAX = 4,
};

enum message_kind {
    MESSAGE_READY = 1, /* init -> keeper: set-up is over */
    MESSAGE_START,     /* keeper -> spawner: descriptors: words, then stdin, stdout, stderr unless START_TTY */
    MESSAGE_STARTED,   /* spawner -> keeper: pid; with START_TTY one descriptor, the pty's master */
    MESSAGE_FAILED,    /* spawner or init -> keeper: `error`, and `status` 125, 126 or 127 */
    MESSAGE_EXITED,    /* spawner or init -> keeper: pid, `status` as wait(2) gives it, usage */
    MESSAGE_SIGNAL,    /* keeper -> spawner: `signal` to the process group of pid */
    MESSAGE_LISTENER,  /* a command -> keeper: one descriptor, its seccomp listener (START_EXPLAIN) */
    MESSAGE_END,       /* keeper -> init: kill every process and exit */
    MESSAGE_EMPTY,     /* init -> keeper, the last word: no process is left but PID 1, which exits now */
};

enum start_flags {
    START_TTY = 1 << 0,      /* open a pty inside and make it the controlling terminal */
    START_STRICT = 1 << 1,   /* the strict seccomp profile */
    START_FAKEROOT = 1 << 2, /* changes of owner and identity succeed without effect */
    START_EXPLAIN = 1 << 3,  /* refused calls are reported to a listener first */
    START_ROOT = 1 << 4,     /* keep the capabilities of root in the box */
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
    uint64_t user_us, system_us, peak_kib; /* EXITED */
    struct error error;
};

/* The words of START are a memfd: working directory, arguments, variables, each ended by NUL. */
