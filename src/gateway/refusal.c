/* Answers of our own, and the end of a connection that nobody may take for a broken one. */

#include "gateway/connection.h"

#include "base/clock.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>

void refusal_answer(struct connection *connection, const char *status, const char *body)
{
    const struct exchange *exchange = connection->exchange;
    autotext struct text text = TEXT_NONE;

    exchange_answering(connection);
    text_addf(&text,
              "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-store\r\nX-Cove: refused\r\n%s\r\n%s",
              status, strlen(body), exchange->last ? "Connection: close\r\n" : "",
              exchange->to_head ? "" : body);
    if (side_put(&connection->client, text_string(&text), text.len))
        exchange_answered(connection);
    else
        connection_reset(connection);
}

static void explain(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;
    autotext struct text status = TEXT_NONE, body = TEXT_NONE;

    text_addf(&status, "403 Refused by Cove: %s%s%s", verdict->why, verdict->command[0] ? "; " : "",
              verdict->command);
    text_addf(&body, "Cove refused this request: %s.\n", verdict->why);
    if (verdict->command[0])
        text_addf(&body, "To allow it, on the host: %s\n", verdict->command);
    refusal_answer(connection, text_string(&status), text_string(&body));
}

void refuse(struct connection *connection)
{
    if (connection->exchange)
        explain(connection);
    else if (connection->purpose->protocol == GATEWAY_TLS && secure_can_explain() && !connection->client.tls)
        first_explain(connection);
    else
        connection_reset(connection);
}

void unreachable(struct connection *connection, const char *why)
{
    autotext struct text body = TEXT_NONE;

    if (!connection->exchange) {
        connection_reset(connection);
        return;
    }
    text_addf(&body, "Cove could not reach %s: %s.\n", connection->purpose->verdict.host.text, why);
    refusal_answer(connection, "502 Not reached", text_string(&body));
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
