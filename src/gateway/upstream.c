/* Through the proxy by which the host itself reaches the world.
 *
 * Only names go that way: an address, and a name whose address a rule gives, are dialled as ever.  Where the
 * name leads is for the proxy to find out, so what is known here is only that a rule allows it and that the
 * name means the same machine everywhere. */

#include "gateway/connection.h"

#include "base/own.h"
#include "base/text.h"
#include "net/answer.h"

#include <errno.h>

bool upstream_is_for(const struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;

    return !connection->is_service && !verdict->pinned.len && !hostname_is_address(&verdict->host) &&
           proxy_is_for(&the_gate.rules->proxy, &verdict->host);
}

/* The owner named the proxy: it may be wherever it is. */
static void looked_up(void *owner, const struct address *addresses, size_t len)
{
    struct connection *connection = owner;
    struct purpose *purpose = connection->purpose;

    purpose->lookup = NULL;
    purpose->at = 0;
    purpose->addresses_len = len < LOOKUP_ADDRESSES ? len : LOOKUP_ADDRESSES;
    memcpy(purpose->addresses, addresses, purpose->addresses_len * sizeof *addresses);
    dial_next(connection);
}

void upstream_dial(struct connection *connection)
{
    const struct hostname *proxy = &the_gate.rules->proxy.host;

    if (hostname_is_address(proxy)) {
        looked_up(connection, &proxy->address, 1);
        return;
    }
    struct lookup *lookup = lookup_begin(&the_gate.resolver, proxy->text, looked_up, connection);

    if (connection->purpose && lookup)
        connection->purpose->lookup = lookup;
}

void upstream_ask(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;
    autotext struct text request = TEXT_NONE;

    proxy_write(&the_gate.rules->proxy, &verdict->host, verdict->port, &request);
    connection_wait(connection, TUNNELLING, connect_patience);
    if (side_put(&connection->server, text_string(&request), request.len))
        side_watch(&connection->server, true);
    else
        dial_next(connection);
}

/* What comes behind its answer is the server's; but no server answers a request that it was not asked, nor
 * speaks before its client does in TLS.  What is said by then would be taken for its answer, and for that of a
 * server that was verified. */
static void take_answer(struct connection *connection, const struct answer *answer)
{
    autofree char *why = NULL;
    bool good = answer->status >= 200 && answer->status < 300;

    side_forget(&connection->server, answer->size);
    bool early = connection->exchange && connection->server.heard.len && !gate_leaves_out("early");

    if (good && !early) {
        dial_reached(connection);
        return;
    }
    why = good ? text_copy("the proxy of this machine says more than it was asked for")
               : text_format("the proxy of this machine answers with %u", answer->status);
    side_close(&connection->server);
    unreachable(connection, why);
}

void upstream_read(struct connection *connection)
{
    static struct answer answer; /* large, and used here only */
    struct side *server = &connection->server;
    int got = side_flush(server) ? side_hear(server, ANSWER_MAX) : 0;
    const char *why;
    enum head_read read;

    if (got < 0 && errno == EAGAIN)
        return;
    read = got > 0 ? answer_read(server->heard.data, server->heard.len, true, &answer, &why) : HEAD_BAD;
    if (read == HEAD_WHOLE)
        take_answer(connection, &answer);
    else if (read == HEAD_BAD) {
        side_close(server);
        unreachable(connection, "the proxy of this machine does not answer as proxies do");
    }
}
