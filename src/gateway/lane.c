/* A stream of HTTP/2, as the client of an exchange.
 *
 * Nothing here calls whoever is behind it: both ends are told that they are ready, and come by themselves. */

#include "gateway/session.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct lane *lane_open(struct session *session)
{
    const struct connection *parent = session->connection;
    struct lane *lane = memory_zero(sizeof *lane);
    struct connection *connection = connection_open(-1);

    *lane = (struct lane){
        .next = session->lanes, .from = &session->lanes, .session = session, .connection = connection
    };
    if (lane->next)
        lane->next->from = &lane->next;
    session->lanes = lane;
    connection->client.lane = lane;
    connection->port = parent->port;
    connection->is_proxys = parent->is_proxys;
    connection->tunnelled = parent->tunnelled;
    connection->refused = parent->refused;
    connection->failed = parent->failed;
    connection->purpose->error = parent->purpose->error;
    connection->purpose->verdict = parent->purpose->verdict;
    connection_wait(connection, REQUEST, keep_patience);
    exchange_begin(connection);
    return lane;
}

static void lane_free(struct lane *lane)
{
    *lane->from = lane->next;
    if (lane->next)
        lane->next->from = lane->from;
    text_free(&lane->head);
    text_free(&lane->data);
    text_free(&lane->answer);
    text_free(&lane->out);
    free(lane);
}

bool lane_is_free(const struct lane *lane)
{
    return lane->stream == 0 && lane->connection && lane->connection->state == REQUEST &&
           lane->connection->client.heard.len == 0;
}

/* --- whether there is something to do --- */

static bool has_last_chunk(const struct lane *lane)
{
    return lane->framing == HEAD_CHUNKED && lane->heard_all && !lane->last_chunk;
}

/* Of the answer, for the client to take. */
static size_t waiting(const struct lane *lane)
{
    return lane->out.len - lane->taken;
}

static void wake(struct lane *lane)
{
    struct event_source *source = lane->connection ? &lane->connection->client.source : NULL;
    bool readable = lane->head.len || lane->data.len || has_last_chunk(lane) || lane->ended;
    bool writable = waiting(lane) < LANE_OUT_MAX;

    if (source && (((source->events & EPOLLIN) && readable) || ((source->events & EPOLLOUT) && writable)))
        events_soon(source);
}

void lane_watch(struct lane *lane, uint32_t events)
{
    lane->connection->client.source.events = events;
    wake(lane);
}

/* --- the request --- */

void lane_begin(struct lane *lane, int32_t stream, bool ended)
{
    const char *why;

    lane->stream = stream;
    lane->heard_all = ended;
    lane->last_chunk = lane->begun = lane->over = lane->sent = false;
    lane->framing = HEAD_NO_BODY;
    lane->left = 0;
    why = h2_head_write(&lane->session->head, ended, &lane->head, &lane->framing, &lane->left);
    lane->connection->until = clock_us() + early_patience;
    lane->deaf = why != NULL;
    if (why)
        request_refuse(lane->connection, why);
    else
        wake(lane);
}

bool lane_hear(struct lane *lane, const void *bytes, size_t len)
{
    if (lane->deaf || !lane->connection)
        return nghttp2_session_consume_stream(lane->session->h2, lane->stream, len) == 0;
    if (lane->framing != HEAD_CHUNKED && len > lane->left)
        return false;
    if (lane->framing != HEAD_CHUNKED)
        lane->left -= len;
    text_add_bytes(&lane->data, bytes, len);
    wake(lane);
    return true;
}

void lane_heard_all(struct lane *lane)
{
    lane->heard_all = true;
    wake(lane);
}

static size_t read_from(struct text *from, char *bytes, size_t size)
{
    size_t len = from->len < size ? from->len : size;

    memcpy(bytes, from->data, len);
    text_drop(from, len);
    return len;
}

/* The client may send as much again. */
static size_t read_data(struct lane *lane, char *bytes, size_t size)
{
    size_t len = lane->data.len ? read_from(&lane->data, bytes, size) : 0;

    if (len && lane->stream)
        (void)nghttp2_session_consume_stream(lane->session->h2, lane->stream, len);
    if (len)
        session_soon(lane->session);
    return len;
}

static size_t read_chunk(struct lane *lane, char *bytes, size_t size)
{
    const size_t room = FRAME_ROOM;

    if (size <= 2 * room)
        return 0;

    size_t len = read_data(lane, bytes + room, size - 2 * room);
    bool last = lane->data.len == 0 && has_last_chunk(lane);

    if (len == 0 && !last)
        return 0;
    lane->last_chunk |= last;

    struct head_part chunk = frame_chunk(bytes, len, last);

    memmove(bytes, chunk.at, chunk.len);
    return chunk.len;
}

ssize_t lane_read(struct lane *lane, void *bytes, size_t size)
{
    size_t len;

    if (lane->head.len)
        len = read_from(&lane->head, bytes, size);
    else if (lane->framing == HEAD_CHUNKED)
        len = read_chunk(lane, bytes, size);
    else
        len = read_data(lane, bytes, size);
    if (len || lane->ended)
        return (ssize_t)len;
    errno = EAGAIN;
    return -1;
}

/* --- the answer --- */

static nghttp2_nv name_value(const char *name, const char *value)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                         .namelen = strlen(name),
                         .value = (uint8_t *)(uintptr_t)value,
                         .valuelen = strlen(value) };
}

/* How much the next frame has; the bytes are taken when it is written (session.c). */
static ssize_t offer_data(nghttp2_session *h2, int32_t stream, uint8_t *bytes, size_t size, uint32_t *flags,
                          nghttp2_data_source *source, void *nothing)
{
    struct lane *lane = nghttp2_session_get_stream_user_data(h2, stream);

    (void)bytes;
    (void)source;
    (void)nothing;
    if (!lane)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;

    size_t len = waiting(lane) < size ? waiting(lane) : size;

    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (lane->over && len == waiting(lane))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (len == 0)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)len;
}

/* What is said to us alone is left out, and names are made small by the library. */
static bool submit(struct lane *lane, const struct answer *answer)
{
    nghttp2_nv fields[HEAD_FIELDS_MAX + 2];
    nghttp2_data_provider data = { .read_callback = offer_data };
    nghttp2_session *h2 = lane->session->h2;
    char status[8], length[24];
    size_t count = 0;

    (void)snprintf(status, sizeof status, "%u", answer->status);
    (void)snprintf(length, sizeof length, "%llu", (unsigned long long)answer->length);
    fields[count++] = name_value(":status", status);
    for (size_t i = 0; i < answer->fields.count; i++) {
        const struct head_field *field = &answer->fields.items[i];

        if (!field_is_ours(field))
            fields[count++] = (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)field->name.at,
                                            .namelen = field->name.len,
                                            .value = (uint8_t *)(uintptr_t)field->value.at,
                                            .valuelen = field->value.len };
    }
    if (answer->fields.body == HEAD_LENGTH)
        fields[count++] = name_value("content-length", length);
    if (answer->status < 200)
        return nghttp2_submit_headers(h2, NGHTTP2_FLAG_NONE, lane->stream, NULL, fields, count, NULL) == 0;
    return nghttp2_submit_response(h2, lane->stream, fields, count, lane->body.over ? NULL : &data) == 0;
}

static ssize_t gone(void)
{
    errno = EPIPE;
    return -1;
}

static bool take_head(void *whose, const struct answer *answer)
{
    struct lane *lane = whose;

    if (answer->status >= 200) {
        body_begin(&lane->body, answer->body, answer->length, true);
        lane->begun = true;
        lane->over = lane->body.over;
    }
    return submit(lane, answer);
}

/* How many of the bytes there is room for. */
static ssize_t write_body(struct lane *lane, const char *bytes, size_t len)
{
    size_t at = 0;

    text_drop(&lane->out, lane->taken);
    lane->taken = 0;
    while (at < len && lane->out.len < LANE_OUT_MAX && !lane->body.over) {
        size_t room = LANE_OUT_MAX - lane->out.len, rest = len - at;
        struct head_part data;
        int64_t took = body_next(&lane->body, bytes + at, rest < room ? rest : room, &data);

        if (took < 0)
            return gone();
        text_add_bytes(&lane->out, data.at, data.len);
        at += (size_t)took;
    }
    lane->over = lane->body.over;
    if (lane->out.len || lane->over)
        (void)nghttp2_session_resume_data(lane->session->h2, lane->stream);
    return (ssize_t)at;
}

ssize_t lane_write(struct lane *lane, const void *bytes, size_t len)
{
    ssize_t head = 0, body = 0;

    if (lane->stream == 0 || lane->over)
        return gone();
    session_soon(lane->session);
    if (!lane->begun)
        head = answer_heads(&lane->answer, bytes, len, lane->connection->exchange->to_head, take_head, lane);
    if (head >= 0 && lane->begun && (size_t)head < len)
        body = write_body(lane, (const char *)bytes + head, len - (size_t)head);
    if (head < 0 || body < 0)
        return gone();
    if (head + body > 0)
        return head + body;
    errno = EAGAIN;
    return -1;
}

void lane_take(struct lane *lane, size_t len, struct text *out)
{
    text_add_bytes(out, lane->out.data + lane->taken, len);
    lane->taken += len;
    if (waiting(lane) == 0) {
        text_free(&lane->out);
        lane->taken = 0;
    }
    wake(lane);
}

void lane_end(struct lane *lane)
{
    lane->ended = true;
}

/* --- the end --- */

/* The rest of what a client says after its answer is heard and forgotten: some that are told to stop
 * (RST_STREAM with NO_ERROR) take it for a broken connection, and never show the answer. */
void lane_close(struct lane *lane)
{
    nghttp2_session *h2 = lane->session->h2;

    lane->connection = NULL;
    if (lane->stream == 0) {
        lane_free(lane);
        return;
    }
    if (lane->over)
        (void)nghttp2_session_consume_stream(h2, lane->stream, lane->data.len);
    else
        (void)nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, lane->stream, NGHTTP2_INTERNAL_ERROR);
    text_free(&lane->head);
    text_free(&lane->data);
    session_soon(lane->session);
}

void lane_forget(struct lane *lane)
{
    lane->stream = 0;
    if (lane->connection)
        connection_reset(lane->connection);
    else
        lane_free(lane);
}

void lane_closed(struct lane *lane)
{
    if (lane->connection && lane->sent && lane->heard_all)
        lane->stream = 0;
    else
        lane_forget(lane);
}
