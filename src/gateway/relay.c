/* Bytes that pass unread, both ways. */

#include "gateway/connection.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/socket.h>

static struct side *other_side(struct side *side)
{
    struct connection *connection = side->connection;

    return side == &connection->client ? &connection->server : &connection->client;
}

/* False: the connection is over. */
static bool pass_on(struct side *side)
{
    struct side *to = other_side(side);

    for (int round = 0; (round < SIDE_ROUNDS || side_has_more(side)) && !side->ended && to->held_len == 0;
         round++) {
        ssize_t got = side_read(side, side_chunk, sizeof side_chunk);

        if (got < 0)
            return errno == EAGAIN;
        side->connection->until = clock_us() + idle_patience;
        side->ended = got == 0;
        if (got > 0 && !side_put(to, side_chunk, (size_t)got))
            return false;
        if (side_was_all(side, got))
            return true;
    }
    return true;
}

/* Whoever has heard everything is told that no more will come. */
static void pass_end(struct side *side)
{
    if (side->ended)
        side_finish(other_side(side));
}

static bool has_spoken(const struct side *side)
{
    char byte;

    return recv(side->source.fd, &byte, sizeof byte, MSG_PEEK) > 0;
}

/* What it says is judged as if it had said it at once, and its server is dialled anew. */
static void begin_again(struct connection *connection)
{
    side_close(&connection->server);
    connection->state = READING;
    side_watch(&connection->client, true);
    first_read(connection);
}

void relay(struct connection *connection)
{
    struct side *client = &connection->client, *server = &connection->server;

    if (connection->purpose && has_spoken(server)) {
        connection_drop_purpose(connection);
    } else if (connection->purpose && has_spoken(client)) {
        begin_again(connection);
        return;
    }
    if (!side_flush(client) || !side_flush(server) || !pass_on(client) || !pass_on(server)) {
        connection_reset(connection);
        return;
    }
    pass_end(client);
    pass_end(server);
    if (server->ended && client->ended && client->held_len == 0) {
        connection_close(connection);
        return;
    }
    side_watch(client, !client->ended && server->held_len == 0);
    side_watch(server, !server->ended && client->held_len == 0);
}

/* What was heard belongs to whatever the protocol is.  Of a client that has said nothing yet is kept what it is
 * for. */
void relay_begin(struct connection *connection)
{
    struct side *client = &connection->client, *server = &connection->server;
    size_t client_len = client->heard.len, server_len = server->heard.len;
    bool sent = side_put(server, text_string(&client->heard), client_len) &&
                side_put(client, text_string(&server->heard), server_len);

    if (client_len || server_len || connection->exchange)
        connection_drop_purpose(connection);
    side_forget(client, client_len);
    side_forget(server, server_len);
    exchange_free(connection->exchange);
    connection->exchange = NULL;
    connection_wait(connection, RELAYING, idle_patience);
    if (sent)
        relay(connection);
    else
        connection_reset(connection);
}
