#pragma once

/* What the keeper of a sandbox that stays, and whoever wants something of it, say to each other.
 *
 * A SOCK_SEQPACKET socket named `control` in the sandbox's directory.  One message is one struct control,
 * whole, with descriptors beside it.  Several commands may run over one connection; `step` tells them apart.
 * Both ends are programs of the same user, but perhaps of another version of Cove: whoever gets a message of a
 * version that it does not know says so and closes. */

#include "base/error.h"
#include "init/protocol.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTROL_VERSION = 1, CONTROL_WORDS_MAX = 8 << 20, CONTROL_USER_MAX = 64 };

#define CONTROL_SOCKET "control"

enum control_kind {
    /* Of the client. */
    CONTROL_EXEC = 1, /* one descriptor: the words, as those of MESSAGE_START; answered by STARTED or FAILED */
    CONTROL_SIGNAL,   /* `signal` to the process group of `step`; answered only if there is none: FAILED */
    CONTROL_ATTACH, /* to be the one who waits for `step`, 0: the last that runs; answered by STARTED or FAILED
                     */
    CONTROL_STOP, /* ends the sandbox; answered by DONE when nothing of it runs and its files are on the disk */
    CONTROL_PAUSE,      /* stops every process of the sandbox; answered by DONE or FAILED */
    CONTROL_RESUME,     /* lets them go on; the same */
    CONTROL_ROLLBACK,   /* ends every process and goes back to `layer`, after `step`; answered by DONE or FAILED
                         */
    CONTROL_CHECKPOINT, /* freezes, or copies, what was written; answered by DONE, with `layer`, or FAILED */
    CONTROL_UNDO,       /* files go back to `layer`, after `step` and before `undone`, under processes that stay
                         * alive;       answered by DONE or FAILED */
    CONTROL_STATUS,     /* answered by DONE: how many commands run, and the number of the last one */

    /* Of the keeper. */
    CONTROL_STARTED, /* `step`; descriptors: input, output, errors; with a terminal: its master, output */
    CONTROL_ENDED,   /* the command of `step` has ended, and all its output was passed on */
    CONTROL_DONE,
    CONTROL_FAILED, /* `error`, and `exit_code` 125, 126 or 127 */

    /* Of the client, in a later version. */
    CONTROL_POLICY, /* two descriptors, as repolicy() takes them; answered by DONE or FAILED */
};

enum control_flags {
    CONTROL_TTY = 1 << 0,     /* EXEC: with a terminal.  STARTED: it has one */
    CONTROL_DETACH = 1 << 1,  /* EXEC: it goes on without us.  STARTED has no descriptors then */
    CONTROL_FILES = 1 << 3,   /* EXEC: the program for files (inside/files.c) instead of a command; no step */
    CONTROL_STEP = 1 << 5,    /* EXEC with FILES: a step all the same, called as the words say */
    CONTROL_DISCARD = 1 << 4, /* STOP: it is to be removed, so its files need not be on the disk */
    CONTROL_INPUT = 1 << 2,   /* EXEC with DETACH: its input stays open, for who attaches later */
};

struct control {
    uint32_t version, kind;
    uint64_t step;
    uint32_t flags;
    int32_t signal;
    uint32_t rows, columns, width, height; /* EXEC: of the terminal */
    uint32_t arguments, variables;         /* EXEC: how many of each are in the words */
    uint32_t running;                      /* DONE of STATUS */
    uint32_t undone; /* UNDO: the first step that is taken back.  STARTED: files went back to before this one
                      * since the last command; 0: they did not */
    char user[CONTROL_USER_MAX]; /* EXEC: as `cove run -u` takes it; "": as the sandbox was made */
    char layer[ID_LENGTH + 4];   /* ROLLBACK, UNDO; DONE of CHECKPOINT */
    uint64_t timeout_ms;         /* EXEC: 0: none.  STOP: how long commands may take to end */
    int32_t exit_code;           /* ENDED, FAILED */
    uint32_t reason;             /* ENDED: enum result_reason */
    uint64_t wall_us, user_us, system_us, peak_kib; /* ENDED */
    struct error error;                             /* FAILED; ENDED if the reason has one */
};

/* A message of one's own, empty but for this. */
#define CONTROL(what) ((struct control){ .version = CONTROL_VERSION, .kind = (what) })

/* As wire_send() and wire_receive() (init/wire.h).  What is received is terminated where it is text, and of our
 * version; nothing else was looked at. */
int control_send(int fd, const struct control *message, const int *fds, size_t count);
int control_receive(int fd, struct control *message, int *fds, size_t *count, struct error *err);

/* A socket in the sandbox's directory, listening; what was left of another one is replaced. */
int control_listen(int dir, struct error *err);

/* A connection to the keeper.  ERROR_MISSING: nobody keeps this sandbox. */
int control_connect(int dir, struct error *err);

/* Whether who is at the other end may ask: the same user, in the same user namespace. */
int control_check_peer(int fd, struct error *err);
