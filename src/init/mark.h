#pragma once

/* What a program inside a sandbox that stays may say of itself, and what it hears.
 *
 * A SOCK_SEQPACKET socket, /run/cove/marks, that everybody inside may connect to; the keeper is at the other
 * end. One connection is one step: BEGIN, which is answered by STARTED or REFUSED; END, which is answered by
 * DONE when the keeper has tried to make a checkpoint.  Nothing else may be said, and no number can be: so
 * nobody ends what another connection has begun.  A message is one struct mark, whole, in the byte order of the
 * machine.
 *
 * Nobody vouches for what comes this way: it is recorded as said. */

#include <stdint.h>

#define MARK_DIRECTORY "/run/cove"
#define MARK_SOCKET MARK_DIRECTORY "/marks"
#define MARK_PROGRAM MARK_DIRECTORY "/step" /* src/inside/step.c */
#define MARK_ALIAS MARK_DIRECTORY "/cove"   /* the same, for `cove step` with this directory in PATH */

enum { MARK_VERSION = 1, MARK_TEXT = 4032 };

enum mark_kind {
    MARK_BEGIN = 1, /* `words` words, each ended by NUL: a directory, then a command */
    MARK_END,       /* `status`, as wait(2) gives it */
    MARK_STARTED,   /* `number`, and in `text` a line for whoever runs the command, or "" */
    MARK_DONE,
    MARK_REFUSED, /* it is not recorded: there were too many */
};

struct mark {
    uint32_t version, kind;
    uint32_t words, length; /* BEGIN: and how many bytes of `text` they are */
    uint64_t left_out;      /* BEGIN: bytes of words that there was no room for */
    uint64_t number;
    int32_t status;
    uint32_t nothing; /* no byte of the struct is without a name */
    char text[MARK_TEXT];
};
