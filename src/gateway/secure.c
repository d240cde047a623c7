/* TLS that we are an end of: of a client whose requests are judged one by one, or are to be told why none of
 * them is let through; and then of its server. */

#include "gateway/connection.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/session.h"

bool secure_can_explain(void)
{
    return the_gate.authority != NULL;
}

static struct {
    struct tls_trust *trust; /* NULL: it has no ca, or one that cannot be read */
} * of_rules;                /* as many as there are */

void secure_trust_rules(void)
{
    const struct rule_list *list = &the_gate.rules->list;
    struct error ignored;

    of_rules = memory_zero(sizeof *of_rules * (list->len + 1));
    for (size_t i = 0; i < list->len && the_gate.authority; i++)
        if (list->items[i].ca)
            of_rules[i].trust = tls_trust_new(list->items[i].ca, strlen(list->items[i].ca), &ignored);
}

static struct tls_trust *trust_for(const struct verdict *verdict)
{
    return verdict->ca ? of_rules[verdict->ca - the_gate.rules->list.items].trust : the_gate.trust;
}

bool secure_can_judge(const struct verdict *verdict)
{
    return the_gate.authority && trust_for(verdict);
}

/* --- the client --- */

/* Most likely it does not believe us.  Then it hears of a refusal where the others are. */
static void not_accepted(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;

    if (connection->refused)
        connection_reset(connection);
    else if (!verdict->inspect && cached_wants(verdict)) {
        cached_avoid(verdict);
        note_deny(
            connection,
            "package files of %s are looked for in the cache, and this client does not take the certificate "
            "of the sandbox; from now on connections there pass unread",
            verdict->host.text);
    } else
        note_deny(
            connection,
            "requests to %s are judged or recorded one by one, and this client does not take the certificate "
            "of the sandbox",
            verdict->host.text);
}

void secure_accepting(struct connection *connection)
{
    switch (side_handshake(&connection->client)) {
    case TLS_DONE:
        connection->until = clock_us() + early_patience; /* for its first request */
        if (tls_speaks_h2(connection->client.tls))
            session_begin(connection);
        else
            exchange_begin(connection);
        break;
    case TLS_FAILED:
        not_accepted(connection);
        break;
    case TLS_WANT_READ:
    case TLS_WANT_WRITE:
        break; /* until all of it has taken too long, however often it speaks */
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

static long number_of(const struct rule *rule)
{
    return rule ? rule - the_gate.rules->list.items : -1;
}

/* What is the same if a session is resumed, besides the name and whom we believe. */
static char *place_of(const struct connection *connection)
{
    const struct purpose *purpose = connection->purpose;
    const struct verdict *verdict = &purpose->verdict;
    char address[ADDRESS_SIZE];

    address_show(&purpose->addresses[purpose->at - 1], address);
    return text_format("%ld %ld %u %s %d", number_of(verdict->rule), number_of(verdict->ca), verdict->port,
                       address, purpose->by_proxy);
}

void secure_server(struct connection *connection)
{
    struct side *server = &connection->server;
    const struct verdict *verdict = &connection->purpose->verdict;
    autofree char *place = place_of(connection);
    struct tls *tls = tls_connect(trust_for(verdict), verdict->host.text, server->source.fd);

    tls_resume(tls, place);
    side_secure(server, tls);
    connection_wait(connection, SECURING, connect_patience);
    secure_connecting(connection);
}
