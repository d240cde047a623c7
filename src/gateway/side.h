#pragma once

/* One end of a connection: what was heard from it and is not dealt with yet, and what is still to be written to
 * it. Nobody but side.c knows whether the bytes are as they are on the wire. */

#include "base/text.h"
#include "gateway/events.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bounds;
struct connection;
struct inquiry;
struct lane;

enum {
    SIDE_CHUNK = 65536, /* of one reading */
    SIDE_ROUNDS = 8,    /* before others have their turn */
};

struct side {
    struct event_source source; /* the first member */
    struct connection *connection;
    struct lane *lane;                /* NULL: it is a socket; else a stream of HTTP/2 (session.h) */
    struct inquiry *inquiry;          /* NULL: it is somebody inside; else we ask ourselves (inquiry.h) */
    struct tls *tls;                  /* NULL: the bytes are plain */
    uint32_t read_wants, write_wants; /* events, if it is not plain */
    const struct bounds *counted;     /* for whom, besides the sandbox, what passes counts; NULL: it does not */
    struct text heard;                /* by us, and not dealt with */
    char *held;
    size_t held_at, held_len;
    bool ended; /* it will say nothing more */
    bool told;  /* that we will not */
};

/* Where everybody reads to; what is in it is dealt with before the next one does. */
extern char side_chunk[SIDE_CHUNK];

static inline bool side_is_open(const struct side *side)
{
    return side->source.fd >= 0;
}

/* Whether nobody between can have read or changed what it says. */
static inline bool side_is_secure(const struct side *side)
{
    return side->tls || side->lane || side->inquiry;
}

void side_close(struct side *side);

/* Closing is heard as a reset. */
void side_abort(struct side *side);

/* As recv(): 0 is the end of what it says, -1 with EAGAIN that there is nothing now, with EDQUOT that nothing
 * more may pass. */
ssize_t side_read(struct side *side, void *bytes, size_t size);

/* Whether bytes that came are waiting where no descriptor tells of them. */
bool side_has_more(const struct side *side);

/* Whether so little means that there is nothing more to read now. */
static inline bool side_was_all(const struct side *side, ssize_t got)
{
    return !side->tls && got < SIDE_CHUNK / 4;
}

/* Reads to `heard`, which has at most `most` bytes then.  1: there is more; 0: it has ended; -1 and errno. */
int side_hear(struct side *side, size_t most);

/* Forgets the first bytes that were heard. */
void side_forget(struct side *side, size_t len);

/* What is not taken now is held.  False: it is gone. */
bool side_put(struct side *side, const char *bytes, size_t len);
bool side_flush(struct side *side);

/* What is put from now on goes out together, in one packet and one record of TLS if there is not too much of
 * it; then that it does.  One side at a time, and only for as long as nobody else has a turn.  False: it is
 * gone. */
void side_gather(struct side *side);
bool side_let_go(struct side *side);

/* Whether it was quiet: it has said nothing that is not read, nor gone. */
bool side_is_quiet(struct side *side);

/* Tells it that no more comes, once everything is written. */
void side_finish(struct side *side);

/* What is waited for, besides that it takes what is held. */
void side_watch(struct side *side, bool reading);

/* Its bytes are those of TLS from now on; and the first messages of that, as far as they go now (net/tls.h).
 * While they want something, that is waited for. */
void side_secure(struct side *side, struct tls *tls);
enum tls_step side_handshake(struct side *side);

/* What is written goes out at once, and little of it waits. */
void side_prompt(int fd);
