/* TLS that we are an end of: of a client whose requests are judged one by one, or are to be told why none of
 * them is let through; and then of its server. */

#include "gateway/connection.h"

#include "base/clock.h"
#include "base/own.h"
#include "base/text.h"

bool secure_can_explain(void)
{
    return the_gate.authority != NULL;
}

bool secure_can_judge(void)
{
    return the_gate.authority && the_gate.trust;
}

/* --- the client --- */

/* Most likely it does not believe us.  Then it hears of a refusal where the others are. */
static void not_accepted(struct connection *connection)
{
    if (connection->refused)
        connection_reset(connection);
    else
        note_deny(connection,
                  "the rule for %s names methods or paths, and this client does not take the certificate "
                  "of the sandbox",
                  connection->purpose->verdict.host.text);
}

void secure_accepting(struct connection *connection)
{
    switch (side_handshake(&connection->client)) {
    case TLS_DONE:
        exchange_begin(connection);
        break;
    case TLS_FAILED:
        not_accepted(connection);
        break;
    case TLS_WANT_READ:
    case TLS_WANT_WRITE:
        connection->until = clock_us() + early_patience;
        break;
    }
}

void secure_client(struct connection *connection, const char *name)
{
    struct side *client = &connection->client;
    struct tls *tls =
        tls_accept(the_gate.authority, name, client->source.fd, text_string(&client->heard), client->heard.len);

    side_secure(client, tls);
    side_forget(client, client->heard.len);
    connection_wait(connection, ACCEPTING, early_patience);
    secure_accepting(connection);
}

/* --- the server --- */

void secure_connecting(struct connection *connection)
{
    struct side *server = &connection->server;
    autofree char *why = NULL;

    switch (side_handshake(server)) {
    case TLS_DONE:
        exchange_connected(connection);
        break;
    case TLS_FAILED:
        why = text_format("its server is not believed: %s", tls_why(server->tls));
        side_close(server);
        unreachable(connection, why);
        break;
    case TLS_WANT_READ:
    case TLS_WANT_WRITE:
        break;
    }
}

void secure_server(struct connection *connection)
{
    struct side *server = &connection->server;

    side_secure(server, tls_connect(the_gate.trust, connection->purpose->verdict.host.text, server->source.fd));
    connection_wait(connection, SECURING, connect_patience);
    secure_connecting(connection);
}
