#pragma once

/* One connection from inside, from its first byte to its last.
 *
 *     READING -> NOTING -> LOOKING UP -> CONNECTING -> RELAYING
 *        |           \-> a reset
 *        \-> REQUEST -> NOTING -> LOOKING UP -> CONNECTING -> EXCHANGING -> REQUEST ...
 *                          \-> EXCHANGING, with an answer of our own            \-> CLOSING
 *
 * A request for a package file is FINDING out what that is, and FETCHING it from the cache, after NOTING.
 *
 * TLS that is looked into, or whose refusal is explained, is ACCEPTING before its first REQUEST, and its server
 * SECURING after CONNECTING.  By a proxy of the host's, CONNECTING is to that, and TUNNELLING next.
 *
 * A client that speaks HTTP/2 is MULTIPLEXED from then on: each of its streams is the client of a connection of
 * its own, which begins at REQUEST.
 *
 * A client that was silent and yet speaks before its server does is READING again; one whose CONNECT was taken
 * is, too.
 *
 *     door.c        who comes, and whom for           dial.c       names, addresses, connecting
 *     first.c       what the first bytes are          relay.c      bytes that pass unread
 *     note.c        verdicts, the keeper              exchange.c   requests and their answers
 *     refusal.c     answers of our own, the end       request.c    whom a request is for, and whether it may
 *     secure.c      TLS that we are an end of         frame.c      bodies, framed again
 *     service.c     services of the host              session.c    a client that speaks HTTP/2
 *     lane.c        one of its streams                upstream.c   the host's own proxy
 *     mock.c        answers in place of a server      recorder.c   what is written down of exchanges
 *     cached.c      package files that are kept       inquiry.c    what we ask registries about them
 *
 * Should: tell from the address who it is for, from the first bytes what it is, and let it through only if both
 * and the rules agree; wait for the keeper before anything has an effect; hold back whoever sends faster than
 * the other side takes. Must not: let an address be dialled that was not judged; pass on a byte of a request
 * that was not; keep more of a connection than its bounds. */

#include "gateway/cached.h"
#include "gateway/gate.h"
#include "gateway/side.h"
#include "net/body.h"
#include "net/head.h"
#include "net/hello.h"

enum {
    EARLY_MAX = HELLO_MAX + 1024, /* of what a client says before it is known what it is */
    SLOT_BITS = 16,               /* of a tag: where its connection is in the_gate.slots */
};

/* How long things may take, in microseconds. */
static const uint64_t refused_silent = 40000; /* a refused client says nothing: it waits for the other side */
static const uint64_t refused_hello =
    2000000; /* at the port of TLS, where clients read their certificates first */
static const uint64_t allowed_silent = 300000;   /* an allowed one */
static const uint64_t early_patience = 10000000; /* until its first message is whole */
static const uint64_t note_patience = 10000000;
static const uint64_t connect_patience = 5000000; /* to one address */
static const uint64_t answer_patience = 5000000;
static const uint64_t keep_patience = 120000000; /* between two requests */
static const uint64_t idle_patience = 3600000000;

enum state {
    READING,
    ASKING,
    ACCEPTING,
    REQUEST,
    NOTING,
    FINDING,
    FETCHING,
    LOOKING_UP,
    CONNECTING,
    TUNNELLING,
    SECURING,
    RELAYING,
    EXCHANGING,
    MULTIPLEXED,
    CLOSING
};

/* What it is for, as far as that is known; freed when bytes pass unread, and the server has said the first of
 * its own. */
struct purpose {
    struct verdict verdict;
    enum gateway_protocol protocol;
    char method[HEAD_METHOD_MAX];
    struct address addresses[LOOKUP_ADDRESSES];
    size_t addresses_len, at;
    bool by_proxy; /* the addresses are the proxy's */
    int error;     /* of the last address that was dialled, ETIMEDOUT if it has not answered; 0: none was */
    struct lookup *lookup;
};

/* A request of HTTP and its answer, one after the other on a connection. */
struct exchange {
    struct verdict dialled; /* on the connection as such */
    struct text request;    /* its head, as it goes on */
    struct body body, answer_body;
    struct hostname host; /* that the server was dialled for */
    uint16_t port;
    struct address pinned;
    unsigned interim;                        /* answers before the answer */
    bool old;                                /* HTTP/1.0 */
    bool last;                               /* the client's connection ends with it */
    bool to_head, expects, websocket, alone; /* as its head says */
    bool harmless;                           /* may be said twice: it asks, and changes nothing */
    bool sent;                               /* it was, in part at least */
    bool begun;                              /* the head of its answer was passed on */
    bool answered;                           /* its answer is over */
    bool chunked;                            /* its answer goes on in chunks */
    bool keep;                               /* the server may be used again */
    bool kept;                               /* and was */
    bool fresh;                              /* it was sent just now: there is no answer yet */
    bool deaf;                               /* nobody takes the rest of it */
    struct text path;                        /* with its query, if there is a record to look into */
    struct tap asked;                        /* its body, in that case */
    bool replays;                            /* an answer of that record comes when the request is whole */
    struct recording *recording;             /* NULL: it is not recorded */
    struct cached *cached;                   /* NULL: it is for no package file */
    struct head_part own;                    /* the rest of an answer that is our own, which outlives it */
};

struct connection {
    struct connection *next, **from, *buried;
    struct side client, server;
    struct purpose *purpose;
    struct exchange *exchange; /* NULL: not HTTP */
    struct session *session;   /* NULL: not HTTP/2 */
    enum state state;
    bool noted;      /* a verdict was sent to the keeper */
    bool is_proxys;  /* it came to the gateway itself, and is for whom its requests name */
    bool is_service; /* it is for a service of the host, and none of our business what is said */
    bool tunnelled;  /* its CONNECT was taken */
    bool refused;    /* all that is said in it: that is noted, and only answered */
    bool failed;     /* its server was not reached; the verdict says why */
    bool silent;     /* nobody has said anything, though its server was reached */
    bool running;    /* exchange_run() is at work */
    bool spoke;      /* the client, since it was last listened to */
    bool stirred;    /* the server, likewise */
    bool closed;
    uint32_t slot;        /* in the_gate.slots */
    uint64_t tag, until;  /* until: in microseconds */
    struct bounds bounds; /* of what it was last allowed for */
    uint16_t port;
};

/* connection.c: the life of all of them */

struct connection *connection_open(int fd);
void connection_close(struct connection *connection);

/* So that the other side hears of it at once, and does not take it for the end of an answer. */
void connection_reset(struct connection *connection);
void connection_drop_purpose(struct connection *connection);
void connection_wait(struct connection *connection, enum state state, uint64_t patience);

/* door.c */

void doors_watch(bool open);

/* service.c: services of the host, at loopback inside. */

void service_begin(struct connection *connection);
void service_dial(struct connection *connection);

/* first.c: what is it? */

void first_read(struct connection *connection);
void first_take(struct connection *connection); /* what was heard so far */
void first_silent(struct connection *connection);
void first_explain(struct connection *connection); /* a refusal of TLS */

/* secure.c: TLS that we are an end of. */

bool secure_can_explain(void);                                       /* refusals */
bool secure_can_judge(const struct verdict *verdict);                /* requests that then go on */
void secure_client(struct connection *connection, const char *name); /* as the server `name` */
void secure_accepting(struct connection *connection);
void secure_server(struct connection *connection); /* which is verified to be whom the request is for */
void secure_connecting(struct connection *connection);

/* tcp_questions.c: names that are asked for by TCP. */

void tcp_questions_read(struct connection *connection);

/* note.c: what it is, is known by now; nothing is done before the keeper knows it too. */

void note(struct connection *connection);
bool note_send(struct connection *connection);
bool note_put(struct gateway_note *note); /* with what was spent; false: the keeper takes none now */
void notes_tell_spent(bool wait);         /* what has passed, and the keeper does not know yet */
void note_deny(struct connection *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of what was allowed and has begun, "could not reach example.com at port 443: it ended the connection".
 * Nothing waits for it. */
void note_failed(const struct connection *connection, const char *why);

/* refusal.c */

void refuse(struct connection *connection); /* what was noted as refused, as its client understands it best */
void unreachable(struct connection *connection, const char *why); /* is noted, and then refuse() */

/* An answer of our own, with a body that ends with a line end. */
void refusal_answer(struct connection *connection, const char *status, const char *body);

/* Ends it once everything is written.  What is still said to us is read and forgotten: closing before would
 * make a reset of it, and what we have written would be lost on its way. */
void closing_begin(struct connection *connection);
void closing(struct connection *connection);

/* dial.c */

void dial_begin(struct connection *connection);
void dial_next(struct connection *connection);
void dial_late(struct connection *connection); /* the one before has not answered in time */
void dialled(struct connection *connection);

void dial_reached(struct connection *connection); /* whom it is for */

/* upstream.c: through the host's own proxy. */

bool upstream_is_for(const struct connection *connection);
void upstream_dial(struct connection *connection);
void upstream_ask(struct connection *connection);
void upstream_read(struct connection *connection);

/* relay.c */

void relay_begin(struct connection *connection);
void relay(struct connection *connection);

/* request.c: judges the next one; false: it is not whole yet. */

bool request_take(struct connection *connection);
void request_refuse(struct connection *connection, const char *why); /* one that cannot be read */

/* frame.c: passes on a part of a body.  How many of the bytes belonged to it; their data goes to `to`, unless
 * that is NULL, as it is or in a chunk, and to `tap` unless that is. */

enum { FRAME_BAD = -1, FRAME_GONE = -2 }; /* the body is framed wrongly; `to` takes no more */
enum { FRAME_ROOM = 20 };                 /* on either side of the data of a chunk */

int64_t frame_pass(struct body *body, const char *bytes, size_t len, struct side *to, bool chunked,
                   struct tap *tap);

/* mock.c: in place of the server, as a rule says or as it was recorded; nothing leaves. */

void mock_answer(struct connection *connection, const struct mock *mock);
void replay_begin(struct connection *connection);
void replay_answer(struct connection *connection); /* its request is whole */

/* One chunk of the data that lies behind FRAME_ROOM bytes at `room`, with as many behind it. */
struct head_part frame_chunk(char *room, size_t len, bool last);

/* exchange.c */

void exchange_begin(struct connection *connection); /* HTTP was heard */
void exchange_run(struct connection *connection);
void exchange_go(struct connection *connection); /* the keeper knows that it is allowed */
void exchange_connected(struct connection *connection);
void exchange_ask(struct connection *connection); /* the server */

/* A body of our own behind the head that was put, as fast as the client takes it. */
void exchange_own(struct connection *connection, struct head_part body);

/* An answer of our own comes: is it the last one?  And then: it was put. What is left of the request is read
 * and forgotten. */
void exchange_answering(struct connection *connection);
void exchange_answered(struct connection *connection);
void exchange_free(struct exchange *exchange);
