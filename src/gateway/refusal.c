/* Answers of our own, and the end of a connection that nobody may take for a broken one. */

#include "gateway/connection.h"

#include "base/clock.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>

void refusal_answer(struct connection *connection, const char *status, const char *body)
{
    const struct exchange *exchange = connection->exchange;
    autotext struct text text = TEXT_NONE, retry = TEXT_NONE;

    exchange_answering(connection);
    if (connection->purpose->verdict.retry_s)
        text_addf(&retry, "Retry-After: %u\r\n", connection->purpose->verdict.retry_s);
    text_addf(&text,
              "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-store\r\nX-Cove: %s\r\n%s%s\r\n%s",
              status, strlen(body), status + strlen("403 "), text_string(&retry),
              exchange->last ? "Connection: close\r\n" : "", exchange->to_head ? "" : body);
    if (side_put(&connection->client, text_string(&text), text.len))
        exchange_answered(connection);
    else
        connection_reset(connection);
}

static void explain(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;
    autotext struct text status = TEXT_NONE, body = TEXT_NONE;

    text_addf(&status, "%s Refused by Cove: %s%s%s", verdict->reason == REASON_RATE ? "429" : "403",
              verdict->why, verdict->command[0] ? "; " : "", note_command(verdict));
    text_addf(&body, "Cove refused this request: %s.\n", verdict->why);
    if (verdict->command[0])
        text_addf(&body, "To allow it, on the host: %s\n", note_command(verdict));
    refusal_answer(connection, text_string(&status), text_string(&body));
}

static void explain_failed(struct connection *connection)
{
    const struct purpose *purpose = connection->purpose;
    autotext struct text status = TEXT_NONE, body = TEXT_NONE;

    connection->failed = connection->refused; /* or the next request may fare better */
    /* Of a connection that we answer ourselves the next one is dialled again. */
    connection->exchange->last |= connection->refused && !connection->client.lane;
    text_addf(&status, "%s by Cove: %s",
              purpose->error == ETIMEDOUT ? "504 Not reached in time" : "502 Not reached",
              purpose->verdict.why);
    text_addf(&body, "Cove could not reach %s: %s.\n", purpose->verdict.host.text, purpose->verdict.why);
    refusal_answer(connection, text_string(&status), text_string(&body));
}

static bool can_end_tls(const struct connection *connection)
{
    return connection->purpose->protocol == GATEWAY_TLS && secure_can_explain() && !connection->client.tls;
}

void refuse(struct connection *connection)
{
    if (connection->exchange && connection->failed)
        explain_failed(connection);
    else if (connection->exchange)
        explain(connection);
    else if (can_end_tls(connection))
        first_explain(connection);
    else
        connection_reset(connection);
}

/* To a client of TLS that would pass unread this is told as a refusal is: nothing of it has gone on. */
void unreachable(struct connection *connection, const char *why)
{
    struct verdict *verdict = &connection->purpose->verdict;

    (void)snprintf(verdict->why, sizeof verdict->why, "%s", why);
    connection->failed = true;
    note(connection);
}

/* --- the end --- */

void closing_begin(struct connection *connection)
{
    struct side *client = &connection->client;

    connection_wait(connection, CLOSING, client->held_len ? idle_patience : answer_patience);
    side_close(&connection->server);
    side_finish(client);
    side_watch(client, !client->ended);
    closing(connection);
}

/* What is said to us is read, a part at a time; false: it says no more. */
static bool read_away(struct side *client)
{
    for (int round = 0; round < SIDE_ROUNDS && !client->ended; round++) {
        ssize_t got = side_read(client, side_chunk, sizeof side_chunk);

        if (got < 0 && errno == EAGAIN)
            return true;
        if (got < 0)
            return false;
        client->ended = got == 0;
    }
    return !client->ended || client->held_len;
}

void closing(struct connection *connection)
{
    struct side *client = &connection->client;

    if (!side_flush(client)) {
        connection_reset(connection);
        return;
    }
    if (client->held_len == 0 && !client->told) {
        connection->until = clock_us() + answer_patience;
        side_finish(client);
    }
    if (read_away(client)) /* perhaps only to take what is held */
        side_watch(client, !client->ended);
    else
        connection_close(connection);
}
