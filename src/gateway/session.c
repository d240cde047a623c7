/* A client that speaks HTTP/2: frames in, frames out, and how many of them it may send. */

#include "gateway/session.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

enum {
    STREAMS_MAX = 100,
    SESSION_WINDOW = 1 << 20,
    CONTINUED_MAX = 4, /* frames of a head that goes on: it fits into two */
    QUEUE_MAX = 1000,  /* answers of our own that a client has not read */
    CREDIT_MAX = 10000,
    CREDIT_SECOND = 100, /* earned by waiting */
    CREDIT_SENT = 8,     /* by a frame that the client is sent */
    COST_FRAME = 1,
    COST_RESET =
        20, /* of a stream that was not answered yet, whoever ends it: its server was dialled for nothing */
    COST_CONTINUED = 200, /* a byte of it can stand for kilobytes */
};

void session_soon(struct session *session)
{
    events_soon(&session->connection->client.source);
}

static struct lane *lane_of(nghttp2_session *h2, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(h2, stream);
}

/* --- what a client may cost --- */

static void earn(struct session *session, int64_t more)
{
    session->credit = session->credit + more < CREDIT_MAX ? session->credit + more : CREDIT_MAX;
}

static void pay(struct session *session, int64_t cost)
{
    uint64_t now = clock_us(), earned = (now - session->credited) * CREDIT_SECOND / 1000000;

    if (earned) {
        earn(session, (int64_t)earned);
        session->credited = now;
    }
    session->credit -= cost;
    if (session->credit < 0 && !gate_leaves_out("floods"))
        (void)nghttp2_session_terminate_session(session->h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int frame_begins(nghttp2_session *h2, const nghttp2_frame_hd *frame, void *owner)
{
    struct session *session = owner;

    (void)h2;
    if (frame->type == NGHTTP2_CONTINUATION) {
        pay(session, COST_CONTINUED);
        return ++session->continued > CONTINUED_MAX ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    }
    session->continued = 0;
    if (frame->type != NGHTTP2_HEADERS && (frame->type != NGHTTP2_DATA || frame->length == 0))
        pay(session, COST_FRAME);
    return 0;
}

/* --- what it says --- */

static int head_begins(nghttp2_session *h2, const nghttp2_frame *frame, void *owner)
{
    struct session *session = owner;

    (void)h2;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        pay(session, COST_FRAME);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* fields behind a body: in no request (body.h) */
    }
    h2_head_clear(&session->head);
    return 0;
}

static struct head_part part_of(nghttp2_rcbuf *buffer)
{
    nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);

    return (struct head_part){ (const char *)bytes.base, bytes.len };
}

static int field_came(nghttp2_session *h2, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                      nghttp2_rcbuf *value, uint8_t flags, void *owner)
{
    struct session *session = owner;

    (void)h2;
    (void)frame;
    (void)flags;
    h2_head_add(&session->head, part_of(name), part_of(value));
    return 0;
}

static struct lane *free_lane(struct session *session)
{
    for (struct lane *lane = session->lanes; lane; lane = lane->next)
        if (lane_is_free(lane))
            return lane;
    return the_gate.connections_len < the_gate.connections_max ? lane_open(session) : NULL;
}

static int request_came(struct session *session, int32_t stream, bool ended)
{
    struct lane *lane = free_lane(session);

    if (!lane) {
        pay(session, COST_FRAME);
        return nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_REFUSED_STREAM);
    }
    session->streams++;
    (void)nghttp2_session_set_stream_user_data(session->h2, stream, lane);
    lane_begin(lane, stream, ended);
    /* Its server was not reached: the next connection is dialled again. */
    return session->connection->failed
               ? nghttp2_submit_goaway(session->h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_NO_ERROR, NULL, 0)
               : 0;
}

static int frame_came(nghttp2_session *h2, const nghttp2_frame *frame, void *owner)
{
    struct session *session = owner;
    struct lane *lane = lane_of(h2, frame->hd.stream_id);
    bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        return request_came(session, frame->hd.stream_id, ended);
    if (frame->hd.type == NGHTTP2_DATA && ended && lane)
        lane_heard_all(lane);
    return 0;
}

/* One stream that is not taken must not keep the others from being heard, so only its own window stays closed.
 */
static int data_came(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t len,
                     void *owner)
{
    struct lane *lane = lane_of(h2, stream);

    (void)flags;
    (void)owner;
    (void)nghttp2_session_consume_connection(h2, len);
    if (lane && !lane_hear(lane, bytes, len))
        return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_PROTOCOL_ERROR);
    return 0;
}

static int stream_closed(nghttp2_session *h2, int32_t stream, uint32_t why, void *owner)
{
    struct session *session = owner;
    struct lane *lane = lane_of(h2, stream);

    if (!lane)
        return 0;
    if (why != NGHTTP2_NO_ERROR && !lane->sent)
        pay(session, COST_RESET);
    lane_closed(lane);
    if (--session->streams == 0)
        session->connection->until = clock_us() + keep_patience;
    return 0;
}

static int frame_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *owner)
{
    struct lane *lane = lane_of(h2, frame->hd.stream_id);

    if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    earn(owner, CREDIT_SENT);
    if (lane && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        lane->sent = true;
    return 0;
}

static ssize_t longest_data(nghttp2_session *h2, uint8_t type, int32_t stream, int32_t window,
                            int32_t stream_window, uint32_t frame_max, void *owner)
{
    (void)h2;
    (void)type;
    (void)stream;
    (void)window;
    (void)stream_window;
    (void)frame_max;
    (void)owner;
    return FRAME_DATA;
}

static int send_data(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head, size_t len,
                     nghttp2_data_source *source, void *owner)
{
    struct session *session = owner;
    struct lane *lane = lane_of(h2, frame->hd.stream_id);

    (void)source;
    if (!lane)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (session->out.len >= SIDE_CHUNK)
        return NGHTTP2_ERR_WOULDBLOCK;
    text_add_bytes(&session->out, head, FRAME_HEAD);
    lane_take(lane, len, &session->out);
    return 0;
}

/* --- in and out --- */

/* Whoever has us answer and does not read is not listened to. */
static bool is_stuffed(const struct session *session)
{
    return session->connection->client.held_len &&
           nghttp2_session_get_outbound_queue_size(session->h2) > QUEUE_MAX;
}

static bool hear(struct session *session)
{
    struct side *client = &session->connection->client;

    for (int round = 0; (round < SIDE_ROUNDS || side_has_more(client)) && !is_stuffed(session); round++) {
        ssize_t got = side_read(client, side_chunk, sizeof side_chunk);

        if (got < 0 && errno == EAGAIN)
            return true;
        if (got <= 0 || nghttp2_session_mem_recv(session->h2, (const uint8_t *)side_chunk, (size_t)got) != got)
            return false;
    }
    return true;
}

/* Several frames at once, if there are some.  Those of data write themselves (send_data). */
static bool gather(struct session *session)
{
    const uint8_t *frame;
    ssize_t len = 0;

    while (session->out.len < SIDE_CHUNK && (len = nghttp2_session_mem_send(session->h2, &frame)) > 0)
        text_add_bytes(&session->out, frame, (size_t)len);
    return len >= 0;
}

static bool speak(struct session *session)
{
    struct side *client = &session->connection->client;
    bool good = true;

    while (good && client->held_len == 0) {
        good = gather(session);
        if (session->out.len == 0)
            break;
        good = side_put(client, session->out.data, session->out.len) && good;
        text_clear(&session->out);
    }
    text_free(&session->out);
    return good;
}

static void watch(struct session *session)
{
    struct connection *connection = session->connection;
    struct side *client = &connection->client;

    if (session->streams)
        connection->until = clock_us() + idle_patience;
    if (nghttp2_session_want_read(session->h2) || nghttp2_session_want_write(session->h2) || client->held_len) {
        side_watch(client, !is_stuffed(session));
        return;
    }
    connection->session = NULL;
    session_free(session);
    closing_begin(connection);
}

void session_run(struct session *session)
{
    if (side_flush(&session->connection->client) && hear(session) && speak(session))
        watch(session);
    else
        connection_reset(session->connection);
}

/* --- its life --- */

static nghttp2_session_callbacks *callbacks(void)
{
    nghttp2_session_callbacks *all;

    if (nghttp2_session_callbacks_new(&all) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(all, frame_begins);
    nghttp2_session_callbacks_set_on_begin_headers_callback(all, head_begins);
    nghttp2_session_callbacks_set_on_header_callback2(all, field_came);
    nghttp2_session_callbacks_set_on_invalid_header_callback2(
        all, field_came); /* refused by what is wrong with it */
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, frame_came);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, data_came);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, stream_closed);
    nghttp2_session_callbacks_set_on_frame_send_callback(all, frame_sent);
    nghttp2_session_callbacks_set_send_data_callback(all, send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(all, longest_data);
    return all;
}

static nghttp2_option *options(void)
{
    nghttp2_option *all;

    if (nghttp2_option_new(&all) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(all, 1);
    nghttp2_option_set_no_closed_streams(all, 1);
    if (gate_leaves_out("translation"))
        nghttp2_option_set_no_http_messaging(all, 1);
    return all;
}

static nghttp2_session *h2_new(struct session *session)
{
    nghttp2_session_callbacks *calls = callbacks();
    nghttp2_option *how = options();
    nghttp2_session *h2 = NULL;

    if (calls && how && nghttp2_session_server_new2(&h2, calls, session, how) != 0)
        h2 = NULL;
    nghttp2_session_callbacks_del(calls);
    nghttp2_option_del(how);
    return h2;
}

static bool greet(nghttp2_session *h2)
{
    static const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LANE_WINDOW },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MAX },
        { NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
    };

    return nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof settings[0]) ==
               0 &&
           nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0, SESSION_WINDOW) == 0;
}

void session_begin(struct connection *connection)
{
    struct session *session = memory_zero(sizeof *session);

    *session = (struct session){ .connection = connection,
                                 .credit = CREDIT_MAX,
                                 .credited = clock_us(),
                                 .head.careless = gate_leaves_out("translation") };
    connection->session = session;
    connection_wait(connection, MULTIPLEXED, early_patience);
    session->h2 = h2_new(session);
    if (session->h2 && greet(session->h2))
        session_run(session);
    else
        connection_reset(connection);
}

void session_late(struct session *session)
{
    if (session->connection->client.held_len) {
        connection_reset(session->connection); /* nor does it hear */
        return;
    }
    (void)nghttp2_session_terminate_session(session->h2, NGHTTP2_NO_ERROR);
    session_run(session);
}

void session_free(struct session *session)
{
    if (!session)
        return;
    while (session->lanes)
        lane_forget(session->lanes);
    nghttp2_session_del(session->h2);
    h2_head_free(&session->head);
    free(session);
}
