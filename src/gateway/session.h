#pragma once

/* A client that speaks HTTP/2, and its streams.
 *
 * The engine knows HTTP/1.1 and one request after the other.  So a stream is put into a lane: that is the
 * client side of a connection of its own, from which a request of HTTP/1.1 is read, and to which its answer is
 * written. The rules, the notes, the servers and the refusals are those of every other connection, and so is
 * the time that things may take.  A lane that is done takes the next stream, and its server with it.
 *
 * Should: hold back a client that sends more than its lane has taken, stream by stream.  Must not: let a stream
 * say anything that is not one request; keep more of it than its window. */

#include "gateway/connection.h"
#include "net/h2.h"

#include <nghttp2/nghttp2.h>

enum {
    LANE_WINDOW = 65535,                      /* of what a stream says and nobody has taken */
    FRAME_HEAD = 9,                           /* bytes of HTTP/2 before those of a frame */
    FRAME_DATA = TLS_RECORD_MAX - FRAME_HEAD, /* so that it fills a record */
    LANE_OUT_MAX = 4 * FRAME_DATA             /* of an answer that its client has not taken */
};

struct session {
    struct connection *connection; /* the client's own */
    nghttp2_session *h2;
    struct lane *lanes;
    struct h2_head head; /* that is being read */
    size_t streams;      /* under way */
    unsigned continued;  /* frames of that head */
    struct text out;     /* frames to be sent */
    int64_t credit;      /* for frames that cost us work and bring the client nothing */
    uint64_t credited;   /* when, in microseconds */
};

struct lane {
    struct lane *next, **from;
    struct session *session;
    struct connection *connection; /* whose client it is; NULL: it is gone, and what it said is still sent */
    int32_t stream;                /* 0: none now */
    bool ended;                    /* the connection has said all; it hears nothing more */

    struct text head, data; /* of the request, not read yet */
    enum head_body framing;
    uint64_t left;   /* HEAD_LENGTH: of the body, to come */
    bool deaf;       /* it was refused before: nobody takes its body */
    bool heard_all;  /* no data will come */
    bool last_chunk; /* was read */

    struct text answer; /* its head, not whole */
    struct body body;   /* of the answer, as it is written to us */
    struct text out;    /* its data, to be sent */
    size_t taken;       /* of these */
    bool begun;         /* its head was handed on */
    bool over;          /* all of it was written */
    bool sent;          /* and sent */
};

/* session.c */

void session_begin(struct connection *connection);
void session_run(struct session *session);
void session_late(struct session *session); /* it has nothing to say any more */
void session_free(struct session *session); /* or NULL; its lanes go along, as if reset */
void session_soon(struct session *session); /* there is something to be sent */

/* lane.c, for the session */

struct lane *lane_open(struct session *session);
bool lane_is_free(const struct lane *lane);
void lane_begin(struct lane *lane, int32_t stream, bool ended);   /* with the head of the session */
bool lane_hear(struct lane *lane, const void *bytes, size_t len); /* false: it is more than was said */
void lane_heard_all(struct lane *lane);
void lane_take(struct lane *lane, size_t len, struct text *out); /* of the answer's data */
void lane_closed(struct lane *lane);                             /* its stream is; the lane may be gone then */
void lane_forget(struct lane *lane);                             /* as lane_closed(), and its connection ends */

/* lane.c, for the side it is (side.c): as recv(), send(), shutdown(), epoll_ctl() and close(). */

ssize_t lane_read(struct lane *lane, void *bytes, size_t size);
ssize_t lane_write(struct lane *lane, const void *bytes, size_t len);
void lane_end(struct lane *lane);
void lane_watch(struct lane *lane, uint32_t events);
void lane_close(struct lane *lane);
