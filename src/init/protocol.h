#pragma once

/* What keeper and PID 1 say to each other.
 *
 * One SOCK_SEQPACKET pair, made by the keeper before it clones.  At END, at the end of a command
 * that was started as the last, or when the keeper's end closes, PID 1 exits and with it everything
 * in the pid namespace.  A message is one struct message, whole, with descriptors beside it
 * (SCM_RIGHTS).  Both ends are our own code, but the keeper treats what comes from inside as
 * hostile: it checks size, kind and the number of descriptors. */

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PROTOCOL_INIT_FD = 3,
    PROTOCOL_LANDLOCK_FD = 4, /* a ruleset, or closed where the kernel has no Landlock */
    PROTOCOL_FDS_MAX = 6,     /* who has an array of them begins with as many -1 */
};

enum message_kind {
    MESSAGE_GO = 1,  /* keeper -> clone, while it sets up (box/clone.h); keeper -> a command that is held */
    MESSAGE_MOUNTED, /* clone or init -> keeper: a descriptor, its mountinfo, to be compared before START, or
                      * before GO.  From the clone also the sockets that lead to the gateway, two for each
                      * family, and where refusals are written (box/network.h); or `error`, why there are none
                      */
    MESSAGE_START, /* keeper -> init: descriptors: words, then stdin, stdout, stderr unless START_TTY, then the
                      program with START_PROGRAM */
    MESSAGE_STARTED, /* init -> keeper: pid, `ready_us`; with START_TTY one descriptor, the pty's master */
    MESSAGE_FAILED,  /* init -> keeper: `error`, and `status` 125, 126 or 127 */
    MESSAGE_EXITED,  /* init -> keeper: pid, `status` as wait(2) gives it, usage */
    MESSAGE_SIGNAL, /* keeper -> init: `signal` to the process group of pid; with `flags` START_WATCHED its time
                     * is up, and it is for everybody who descends from it */
    MESSAGE_LISTENER, /* a command -> keeper: one descriptor, its seccomp listener (START_EXPLAIN) */
    MESSAGE_PAUSE,    /* keeper -> init: stop every process by SIGSTOP */
    MESSAGE_PAUSED, /* init -> keeper: they are; `status` EBUSY: some cannot be, and all go on; or, if PAUSE had
                     * `patience_ms`, are not yet */
    MESSAGE_RESUME, /* keeper -> init: let those go on */
    MESSAGE_END,    /* keeper -> init: `signal` to every process, and after `patience_ms` kill all and exit */
    MESSAGE_CLEAR, /* keeper -> init: the same, but PID 1 stays; the ends of commands are told as ever, then: */
    MESSAGE_CLEARED, /* init -> keeper: no process is left but PID 1 */
    MESSAGE_EMPTY,   /* init -> keeper, the last word: no process is left but PID 1, which exits now */

    MESSAGE_MARKS, /* keeper -> init: one descriptor, the program that marks steps (init/mark.h).  Back: one,
                    * the socket that listens inside; or `status`, an errno, and none */

    /* The switch of layers (box/switch.h).  It ends with MOUNTED, or with FAILED and PID 1's end. */
    MESSAGE_ASIDE,  /* keeper -> init: one descriptor, an aside_list.  Back: `status` 0 when its overlays are
                     * unmounted; else an errno, `error`, and everything is as it was */
    MESSAGE_ATTACH, /* the process that mounts -> init: fresh mounts, in the order of the list, as many at a
                     * time as a message takes */
};

enum start_flags {
    START_TTY = 1 << 0,      /* open a pty inside and make it the controlling terminal */
    START_STRICT = 1 << 1,   /* the strict seccomp profile */
    START_FAKEROOT = 1 << 2, /* changes of owner and identity succeed without effect */
    START_EXPLAIN = 1 << 3,  /* refused calls are reported to a listener first */
    START_ROOT = 1 << 4,     /* keep the capabilities of root in the box */
    START_LAST = 1 << 5,     /* when it has ended, so has the sandbox: as if END came then */
    START_WATCHED = 1 << 7,  /* it has a time: who descends from it can be told from others (init/watcher.c) */
    START_HELD = 1 << 8,     /* made ready at once, but it becomes the command only at GO; with START_LAST */
    START_PROGRAM = 1 << 6,  /* run a program of ours, a sealed memfd, instead of looking for argv[0] */
#ifdef COVE_UNSAFE
    /* Only in test builds: leave one guard out, to show that an attack works without it. */
    START_NO_SECCOMP = 1 << 16,
    START_NO_CAPS = 1 << 18,
    START_NO_DUMPABLE = 1 << 19,
    START_NO_SESSION = 1 << 20,
    START_NO_CLOSE = 1 << 21,
#endif
};

#ifndef COVE_UNSAFE
enum {
    START_NO_SECCOMP,
    START_NO_CAPS,
    START_NO_DUMPABLE,
    START_NO_SESSION,
    START_NO_CLOSE
}; /* mean nothing */
#endif

/* Whether a guard is to be left out: never, but in test builds. */
static inline bool start_leaves_out(uint32_t flags, uint32_t guard)
{
#ifdef COVE_UNSAFE
    return flags & guard;
#else
    (void)flags, (void)guard;
    return false;
#endif
}

struct message {
    uint32_t kind;
    uint32_t flags; /* START */
    uint32_t job;   /* START: a number of the keeper's, which STARTED, FAILED, EXITED and LISTENER repeat */
    int32_t pid;    /* as seen inside */
    int32_t status, signal;
    uint32_t uid, gid;                         /* START: as seen inside */
    uint32_t rows, columns, width, height;     /* START: of the terminal, in characters and in pixels */
    uint32_t arguments, variables;             /* START: how many of each are in the words */
    uint64_t processes, open_files, file_size; /* START: rlimits; 0: as they are */
    uint64_t patience_ms;                      /* END, CLEAR; 0: at once.  PAUSE */
    uint64_t ready_us;                         /* STARTED: CLOCK_MONOTONIC when set-up was over */
    /* EXITED: of the command and whom it waited for; EMPTY: of everybody */
    uint64_t user_us, system_us, peak_kib, written_bytes;
    struct error error;
};

/* The list of ASIDE is a memfd: this, then the paths of its mounts, then those that commands may write below,
 * each ended by NUL.  Parents come before what is mounted in them, so the root is the first; without it all are
 * overlays that come anew, in which nothing is mounted. */
enum { ASIDE_MOUNTS_MAX = 128, ASIDE_WRITABLE_MAX = 512, ASIDE_SIZE_MAX = 1 << 20 };

enum aside_flags {
    ASIDE_FRESH = 1 << 0, /* it is unmounted, and another one comes in its place */
    ASIDE_FILE = 1 << 1,  /* it is mounted on a file */
};

struct aside_list {
    uint32_t mounts, writable;
    int32_t landlock_abi; /* 0: there is none */
    uint32_t reserved;
    struct aside_mount {
        uint64_t id; /* that must be found at its path */
        uint64_t flags;
    } items[];
};

/* The words of START are a memfd: working directory, arguments, variables, each ended by NUL. */
