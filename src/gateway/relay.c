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

static bool is_server(const struct side *side)
{
    return side == &side->connection->server;
}

/* Both have spoken, or it is over: nothing is judged or told any more. */
static void reached(struct connection *connection)
{
    connection->silent = false;
    connection_drop_purpose(connection);
}

/* A server that goes before it has said a byte of its own was not really reached.  Always false. */
static bool lost(const struct side *side, const char *how)
{
    struct connection *connection = side->connection;

    if (is_server(side) && connection->purpose && errno != EDQUOT) {
        note_failed(connection, how);
        reached(connection);
    }
    return false;
}

static bool broken(const struct side *side)
{
    return lost(side, "it broke the connection off before it said anything");
}

static bool flush(struct side *side)
{
    return side_flush(side) || broken(side);
}

/* False: the connection is over. */
static bool pass_on(struct side *side)
{
    struct side *to = other_side(side);

    for (int round = 0; (round < SIDE_ROUNDS || side_has_more(side)) && !side->ended && to->held_len == 0;
         round++) {
        ssize_t got = side_read(side, side_chunk, sizeof side_chunk);

        if (got < 0)
            return errno == EAGAIN || broken(side);
        if (got > 0 && is_server(side))
            reached(side->connection);
        side->connection->until = clock_us() + idle_patience;
        side->ended = got == 0;
        if (got > 0 && !side_put(to, side_chunk, (size_t)got))
            return broken(to);
        if (side_was_all(side, got))
            return true;
    }
    return true;
}

/* Whoever has heard everything is told that no more will come. */
static void pass_end(struct side *side)
{
    const struct connection *connection = side->connection;

    if (!side->ended)
        return;
    errno = 0;
    if (connection->purpose && connection->purpose->protocol == GATEWAY_TLS && !connection->client.ended)
        (void)lost(side, "it ended the connection before it said anything");
    side_finish(other_side(side));
}

/* As recv(), but what it gives stays there. */
static ssize_t look_ahead(const struct side *side)
{
    char byte;

    return recv(side->source.fd, &byte, sizeof byte, MSG_PEEK);
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

    ssize_t said = connection->silent ? look_ahead(client) : -1;
    bool nothing = said < 0 && errno == EAGAIN;

    if (connection->silent && look_ahead(server) > 0) {
        connection->silent = false;
    } else if (connection->silent && said > 0) {
        begin_again(connection);
        return;
    }
    /* What comes from now on is looked at first, the next time. */
    bool heard = (connection->spoke || side_has_more(client)) && !(connection->silent && nothing);
    bool answered = connection->stirred || side_has_more(server);

    connection->spoke = connection->stirred = false;
    if (!flush(client) || !flush(server) || (heard && !pass_on(client)) || (answered && !pass_on(server))) {
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

/* What was heard belongs to whatever the protocol is.  What it is for is kept until the server has said
 * something. */
void relay_begin(struct connection *connection)
{
    struct side *client = &connection->client, *server = &connection->server;
    size_t client_len = client->heard.len, server_len = server->heard.len;
    bool sent = side_put(server, text_string(&client->heard), client_len) &&
                side_put(client, text_string(&server->heard), server_len);

    connection->silent = !client_len && !server_len && !connection->exchange && !connection->is_service;
    if (server_len || connection->exchange)
        connection_drop_purpose(connection);
    side_forget(client, client_len);
    side_forget(server, server_len);
    exchange_free(connection->exchange);
    connection->exchange = NULL;
    connection_wait(connection, RELAYING, idle_patience);
    connection->spoke = connection->stirred = true;
    if (sent)
        relay(connection);
    else
        connection_reset(connection);
}
