#pragma once

#include "keeper/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Moves bytes between a descriptor of the host (what `cove run` was started with) and one that
 * leads into the sandbox (a pipe or pty that we made).  Exact, in bounded memory, and without
 * ever waiting anywhere but in the loop. */

enum relay_way { RELAY_IN, RELAY_OUT }; /* into the sandbox, out of it */

enum {
    RELAY_READ_MAX = 128 << 10,
    RELAY_PIPE_SIZE = 1 << 20,
};

/* Rewrites `len` bytes and gives the new length, at most 3 * len + RELAY_CHANGE_MORE. */
typedef size_t relay_change(void *owner, const unsigned char *from, size_t len, unsigned char *to);
enum { RELAY_CHANGE_MORE = 8 << 10 };

struct relay_plan {
    enum relay_way way;
    int host;             /* borrowed; -1: there is none.  Its O_NONBLOCK is left alone, see relay.c */
    int inside;           /* O_NONBLOCK; closed when the stream ends, unless `keep` */
    bool keep;            /* a pty serves both ways and stays open */
    bool held;            /* nothing is moved before relay_wake() */
    uint64_t *budget;     /* how many bytes may still pass, of this relay and others; NULL: any number */
    relay_change *change; /* or NULL */
    void *change_owner;
};

struct relay {
    struct loop_source source, sink;
    struct relay_plan plan;
    int from, to, reopened;
    int from_kind, to_kind;
    size_t write_most;
    bool splices, ended, grown, resting;
    bool spent; /* there is more, and the budget is used up: nothing moves any more */
    int failed; /* errno of the write that ended an outward stream, else 0 */
    unsigned char *read_buffer, *buffer;
    size_t at, len; /* what is still to be written of `buffer` */
    uint64_t bytes;
};

#define RELAY_NONE                                                                                             \
    ((struct relay){ .source.fd = -1, .sink.fd = -1, .from = -1, .to = -1, .reopened = -1, .ended = true })

void relay_open(struct relay *relay, struct loop *loop, const struct relay_plan *plan);

/* Closes the inside end (unless kept).  Of a file that was read ahead, what the sandbox did not
 * take is given back, so that the next reader of the same descriptor finds it. */
void relay_close(struct relay *relay);

/* Moves what can be moved now. */
void relay_pump(struct relay *relay);

/* What was held may go; after SIGCONT a terminal that was not ours to read may be ours again. */
void relay_wake(struct relay *relay);

/* What comes out of the sandbox goes to another descriptor from now on, and what waits to be written with it.
 */
void relay_turn(struct relay *relay, int host);
