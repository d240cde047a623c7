/* Requests of HTTP and their answers, one after the other.
 *
 * Neither is passed on as it came: heads are written anew from what was read, bodies taken apart and framed
 * again. The next request is looked at when the answer to the one before is over.  The server's connection is
 * used again for the same host, and for nobody else. */

#include "gateway/connection.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "net/answer.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TURNS = 32,            /* before others have theirs */
    INTERIM_MAX = 16,      /* answers before the answer */
    DRAINED_MAX = 1 << 20, /* of a body that nobody takes */
};

void exchange_free(struct exchange *exchange)
{
    if (!exchange)
        return;
    recording_end(exchange->recording, &the_gate.recorder, exchange->body.over, exchange->answered);
    cached_end(exchange->cached, exchange->answered);
    tap_free(&exchange->asked);
    text_free(&exchange->path);
    text_free(&exchange->request);
    free(exchange);
}

/* --- the request --- */

static void go_deaf(struct connection *connection)
{
    connection->exchange->deaf = true;
    connection->server.held_len = 0;
}

/* Whether the rest of a body was heard; false: the connection is over. */
static bool hear_body(struct connection *connection, bool *heard)
{
    int got = connection->client.heard.len ? 1 : side_hear(&connection->client, SIDE_CHUNK);

    *heard = got > 0;
    if (got > 0 || (got < 0 && errno == EAGAIN))
        return true;
    connection_reset(connection); /* half a request */
    return false;
}

/* Whether it may have said something that was not heard: if not, it is not asked. */
static bool has_spoken(const struct connection *connection)
{
    return connection->spoke || side_has_more(&connection->client);
}

/* So that it is noticed when it goes, and not more than a head ahead. */
static bool hear_ahead(struct connection *connection)
{
    struct side *client = &connection->client;

    if (!has_spoken(connection) || client->ended || client->heard.len >= EARLY_MAX)
        return true;
    connection->spoke = false;

    int got = side_hear(client, EARLY_MAX);

    client->ended = got == 0;
    if (got >= 0 || errno == EAGAIN)
        return true;
    connection_reset(connection);
    return false;
}

static struct tap *request_tap(struct exchange *exchange)
{
    if (exchange->recording)
        return &exchange->recording->request;
    return exchange->replays ? &exchange->asked : NULL;
}

static bool pass_request(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct side *client = &connection->client, *server = &connection->server;
    bool heard = true;

    for (int round = 0; heard && !exchange->body.over && (exchange->deaf || server->held_len == 0); round++) {
        if (round >= SIDE_ROUNDS && !side_has_more(client) && client->heard.len == 0)
            return true;
        if (!hear_body(connection, &heard))
            return false;
        if (!heard)
            return true;
        connection->until = clock_us() + idle_patience;

        int64_t took =
            frame_pass(&exchange->body, client->heard.data, client->heard.len, exchange->deaf ? NULL : server,
                       exchange->body.kind == HEAD_CHUNKED, request_tap(exchange));

        if (took == FRAME_BAD) {
            connection_reset(connection);
            return false;
        }
        if (took == FRAME_GONE) {
            go_deaf(connection);
            exchange->last = true;
            return true;
        }
        side_forget(client, (size_t)took);
    }
    return !exchange->body.over || hear_ahead(connection);
}

/* --- the answer --- */

static void bad_answer(struct connection *connection, const char *why)
{
    autotext struct text body = TEXT_NONE;

    note_failed(connection, why);
    text_addf(&body, "Cove does not pass on what %s answered: %s.\n", connection->purpose->verdict.host.text,
              why);
    refusal_answer(connection, "502 Bad answer", text_string(&body));
}

static struct tap *answer_tap(const struct exchange *exchange)
{
    if (exchange->recording)
        return &exchange->recording->response;
    return exchange->cached ? &exchange->cached->tap : NULL;
}

/* False: the connection is over. */
static bool take_answer(struct connection *connection, const char *bytes, size_t len)
{
    struct exchange *exchange = connection->exchange;
    int64_t took = frame_pass(&exchange->answer_body, bytes, len, &connection->client, exchange->chunked,
                              answer_tap(exchange));

    if (took < 0) {
        (void)side_let_go(&connection->client); /* what came before was right */
        connection_reset(connection);
        return false;
    }
    exchange->answered = exchange->answer_body.over;
    if ((size_t)took < len)
        exchange->keep = false; /* it says more than it was asked for */
    return true;
}

static bool pass_head(struct connection *connection, const struct answer *answer)
{
    const struct exchange *exchange = connection->exchange;
    autotext struct text out = TEXT_NONE;
    size_t size = answer->size;

    if (answer->status >= 200 || answer->status == 101)
        recording_answer(exchange->recording, &the_gate.recorder, answer);
    answer_write(answer, exchange->old, exchange->last, &out);
    side_forget(&connection->server, size);
    if (side_put(&connection->client, text_string(&out), out.len))
        return true;
    connection_reset(connection);
    return false;
}

/* The answer itself, and what came of its body. */
static bool begin_answer(struct connection *connection, const struct answer *answer)
{
    struct exchange *exchange = connection->exchange;
    struct side *server = &connection->server;

    exchange->begun = true;
    exchange->chunked = answer_in_chunks(answer, exchange->old);
    exchange->keep =
        !answer->old && !answer->fields.close && answer->body != HEAD_UNTIL_CLOSE && !exchange->alone;
    exchange->last |= !exchange->body.over; /* the client may not send the rest */
    body_begin(&exchange->answer_body, answer->body, answer->length, true);
    cached_answer(exchange->cached, answer);
    side_gather(&connection->client);
    if (!pass_head(connection, answer) || !take_answer(connection, server->heard.data, server->heard.len))
        return false;
    side_forget(server, server->heard.len);
    if (side_let_go(&connection->client))
        return true;
    connection_reset(connection);
    return false;
}

/* From now on nobody looks at what passes. */
static bool switch_protocol(struct connection *connection, const struct answer *answer)
{
    if (!connection->exchange->websocket || !answer->fields.upgrading ||
        !part_is(answer->fields.upgrade, "websocket"))
        bad_answer(connection, "it is another protocol than was asked for");
    else if (pass_head(connection, answer))
        relay_begin(connection);
    return false;
}

static bool pass_interim(struct connection *connection, const struct answer *answer)
{
    struct exchange *exchange = connection->exchange;

    if (answer->status == 101)
        return switch_protocol(connection, answer);
    if (++exchange->interim > INTERIM_MAX) {
        bad_answer(connection, "it begins again and again");
        return false;
    }
    if (!exchange->old && (answer->status != 100 || exchange->expects))
        return pass_head(connection, answer);
    side_forget(&connection->server, answer->size);
    return true;
}

/* All heads that were heard.  False: nothing more is to be read. */
static bool take_heads(struct connection *connection)
{
    static struct answer answer; /* large, and used here only */
    struct exchange *exchange = connection->exchange;
    const struct text *heard = &connection->server.heard;

    while (!exchange->begun) {
        const char *why;
        enum head_read read =
            heard->len ? answer_read(heard->data, heard->len, exchange->to_head, &answer, &why) : HEAD_MORE;

        if (read == HEAD_MORE)
            return true;
        if (read == HEAD_BAD) {
            bad_answer(connection, why);
            return false;
        }
        if (!(answer.status < 200 ? pass_interim(connection, &answer) : begin_answer(connection, &answer)))
            return false;
    }
    return true;
}

/* It may have closed the connection before it heard of this request.  It may also have done what was asked: so
 * only who asks to be told something is asked for again, and only if nothing was told yet. */
static bool may_be_said_again(const struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;

    return exchange->kept && exchange->harmless && exchange->body.kind == HEAD_NO_BODY &&
           exchange->interim == 0 && connection->server.heard.len == 0;
}

/* It says no more, or has gone. */
static void server_ended(struct connection *connection, bool whole)
{
    struct exchange *exchange = connection->exchange;
    struct side *server = &connection->server;

    exchange->keep = false;
    if (!exchange->begun && !budget_has_bytes(&the_gate.budget, &connection->purpose->verdict)) {
        side_close(server);
        note(connection);
    } else if (exchange->begun && exchange->answer_body.kind == HEAD_UNTIL_CLOSE && whole) {
        exchange->answered = exchange->answer_body.over = true;
        if (exchange->chunked && !side_put(&connection->client, "0\r\n\r\n", 5))
            connection_reset(connection);
    } else if (exchange->begun) {
        if (budget_has_bytes(&the_gate.budget, &connection->purpose->verdict))
            note_failed(connection, "it ended the connection within its answer");
        connection_reset(connection);
    } else if (may_be_said_again(connection)) {
        side_close(server);
        dial_begin(connection);
    } else {
        bad_answer(connection, "it ended the connection before");
    }
}

/* One reading.  False: there is nothing more to be read now. */
static bool pass_some(struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;
    struct side *server = &connection->server;
    size_t room = exchange->begun ? sizeof side_chunk : ANSWER_MAX - server->heard.len;
    ssize_t got = side_read(server, side_chunk, room);

    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        server_ended(connection, got == 0);
        return false;
    }
    connection->until = clock_us() + idle_patience;
    if (exchange->begun)
        return take_answer(connection, side_chunk, (size_t)got) && !side_was_all(server, got);
    text_add_bytes(&server->heard, side_chunk, (size_t)got);
    return take_heads(connection) && !side_was_all(server, got);
}

static void pass_own(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct side *client = &connection->client;

    while (exchange->own.len && client->held_len == 0) {
        size_t len = exchange->own.len < SIDE_CHUNK ? exchange->own.len : SIDE_CHUNK;

        connection->until = clock_us() + idle_patience;
        if (!side_put(client, exchange->own.at, len)) {
            connection_reset(connection);
            return;
        }
        exchange->own.at += len;
        exchange->own.len -= len;
    }
    exchange->answered = exchange->own.len == 0;
}

static void pass_answer(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct side *client = &connection->client, *server = &connection->server;
    bool fresh = exchange->fresh;
    int round = 0;

    exchange->fresh = false;
    if (fresh && !side_has_more(server))
        return;
    while (!exchange->answered && client->held_len == 0 && (round++ < SIDE_ROUNDS || side_has_more(server)))
        if (!pass_some(connection))
            return;
}

/* --- one after the other --- */

/* True: the next request may be looked at. */
static bool finish(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct side *client = &connection->client;

    connection->stirred = false; /* that was the answer */
    recording_end(steal_ptr(&exchange->recording), &the_gate.recorder, exchange->body.over, true);
    cached_end(steal_ptr(&exchange->cached), true);
    if (exchange->sent && (!exchange->keep || !exchange->body.over))
        side_close(&connection->server);
    if (exchange->last || (client->ended && client->heard.len == 0)) {
        closing_begin(connection);
        return false;
    }
    if (!exchange->body.over || client->held_len)
        return false;
    connection_wait(connection, REQUEST, client->heard.len ? early_patience : keep_patience);
    return true;
}

/* True: there is more to do at once. */
static bool pass(struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;

    if (!side_flush(&connection->client)) {
        connection_reset(connection);
        return false;
    }
    if (side_is_open(&connection->server) && !side_flush(&connection->server))
        go_deaf(connection);
    if (!pass_request(connection))
        return false;
    if (exchange->replays && exchange->body.over)
        replay_answer(connection);
    if (!connection->closed && cached_is_read(exchange->cached))
        cached_pass(connection);
    else if (!connection->closed && exchange->own.len)
        pass_own(connection);
    else if (!connection->closed && !exchange->answered && !exchange->replays)
        pass_answer(connection);
    if (connection->closed || connection->state != EXCHANGING)
        return false;
    return exchange->answered && finish(connection);
}

/* A server that speaks without being asked, or goes, is not used again. */
static void look_after_server(struct connection *connection)
{
    struct side *server = &connection->server;

    if (side_is_open(server) && !side_is_quiet(server))
        side_close(server);
    connection->stirred = false;
}

static bool next_request(struct connection *connection)
{
    struct side *client = &connection->client;
    bool first = client->heard.len == 0;

    if (connection->stirred)
        look_after_server(connection);
    if (request_take(connection))
        return true;
    if (!client->ended && !has_spoken(connection))
        return false;
    connection->spoke = false;

    int heard = client->ended ? 0 : side_hear(client, EARLY_MAX);

    if (heard < 0 && errno == EAGAIN)
        return false;
    if (heard <= 0) {
        closing_begin(connection);
        return false;
    }
    if (first)
        connection->until = clock_us() + early_patience;
    return true;
}

static bool is_at_it(const struct connection *connection)
{
    return !connection->closed && connection->exchange &&
           (connection->state == REQUEST || connection->state == EXCHANGING);
}

static void watch(struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;
    struct side *client = &connection->client, *server = &connection->server;
    bool waits = connection->state == REQUEST;
    bool listens =
        exchange->body.over ? client->heard.len < EARLY_MAX : exchange->deaf || server->held_len == 0;

    side_watch(client, !client->ended && (waits || listens));
    if (side_is_open(server))
        side_watch(server, waits || (exchange->sent && !exchange->answered && client->held_len == 0));
}

void exchange_run(struct connection *connection)
{
    bool more = true;
    int turn = 0;

    if (connection->running)
        return; /* it goes on where it was called from */
    connection->running = true;
    while (more && is_at_it(connection) && turn++ < TURNS)
        more = connection->state == REQUEST ? next_request(connection) : pass(connection);
    connection->running = false;
    if (!is_at_it(connection))
        return;
    watch(connection);
    if (more) /* though nothing new may come */
        events_soon(&connection->client.source);
}

void exchange_begin(struct connection *connection)
{
    connection->exchange = memory_zero(sizeof *connection->exchange);
    connection->exchange->dialled = connection->purpose->verdict;
    connection->exchange->body.over = true;
    connection->purpose->protocol = GATEWAY_HTTP;
    connection->state = REQUEST;
    exchange_run(connection);
}

static void send_request(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    connection_wait(connection, EXCHANGING, idle_patience);
    exchange->sent = exchange->fresh = true;
    if (exchange->recording)
        exchange->recording->sent = true;
    exchange->deaf = connection->stirred = false;
    if (!side_put(&connection->server, text_string(&exchange->request), exchange->request.len)) {
        go_deaf(connection);
        exchange->fresh = false; /* it may have said why before */
    }
    exchange_run(connection);
}

void exchange_connected(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct verdict *verdict = &connection->purpose->verdict;

    exchange->host = verdict->host;
    exchange->port = verdict->port;
    exchange->pinned = verdict->pinned;
    exchange->kept = false;
    send_request(connection);
}

/* What package files are, only their registry says: a mock may be the repository's, which is believed in
 * nothing. */
static bool is_answered_for_registry(const struct connection *connection)
{
    enum reason reason = connection->purpose->verdict.reason;

    return connection->client.inquiry && (reason == REASON_MOCK || reason == REASON_REPLAY) &&
           !gate_leaves_out("package-mock");
}

void exchange_go(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;

    if (is_answered_for_registry(connection)) {
        connection_close(connection);
        return;
    }
    if (verdict->reason == REASON_MOCK) {
        mock_answer(connection, verdict->rule->mock);
        return;
    }
    if (verdict->reason == REASON_REPLAY) {
        replay_begin(connection);
        return;
    }
    if (!cached_begin(connection))
        exchange_ask(connection);
}

void exchange_ask(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct verdict *verdict = &connection->purpose->verdict;

    look_after_server(connection); /* as late as can be: what is there now is no answer to this */
    exchange->kept = side_is_open(&connection->server) && verdict->port == exchange->port &&
                     strcmp(verdict->host.text, exchange->host.text) == 0 &&
                     address_same(&verdict->pinned, &exchange->pinned);
    if (exchange->kept) {
        connection->bounds = verdict->bounds;
        send_request(connection);
        return;
    }
    side_close(&connection->server);
    dial_begin(connection);
}

void exchange_answering(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct body *body = &exchange->body;

    if (!body->over && (exchange->expects || body->kind != HEAD_LENGTH || body->left > DRAINED_MAX))
        exchange->last = true;
}

void exchange_own(struct connection *connection, struct head_part body)
{
    connection->exchange->own = body;
    exchange_answered(connection);
}

void exchange_answered(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;

    exchange->begun = exchange->deaf = true;
    exchange->answered = exchange->own.len == 0 && !cached_is_read(exchange->cached);
    exchange->keep = false;
    connection_wait(connection, EXCHANGING, early_patience);
    exchange_run(connection);
}
