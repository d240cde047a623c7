/* To the outside: names, addresses, connecting. */

#include "gateway/connection.h"

#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static socklen_t fill_address(const struct address *address, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){ 0 };
    if (address->len == 4) {
        *four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&four->sin_addr, address->bytes, sizeof four->sin_addr);
        return sizeof *four;
    }
    *six = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memcpy(&six->sin6_addr, address->bytes, sizeof six->sin6_addr);
    return sizeof *six;
}

static bool dial(struct connection *connection, const struct address *address)
{
    struct sockaddr_storage to;
    const struct purpose *purpose = connection->purpose;
    uint16_t port = purpose->by_proxy ? the_gate.rules->proxy.port : purpose->verdict.port;
    socklen_t size = fill_address(address, port, &to);
    struct side *server = &connection->server;

    side_close(server);
    connection->purpose->error = 0;
    server->source.fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server->source.fd < 0)
        return false;
    side_prompt(server->source.fd);
    connection_wait(connection, CONNECTING, connect_patience);
    if (connect(server->source.fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
        return false;
    return events_add(the_gate.loop, &server->source, EPOLLOUT) == 0;
}

/* The first that takes us, of those that may be dialled. */
void dial_next(struct connection *connection)
{
    struct purpose *purpose = connection->purpose;
    autofree char *why = NULL;

    connection->state = CONNECTING;
    while (purpose->at < purpose->addresses_len) {
        if (dial(connection, &purpose->addresses[purpose->at++]))
            return;
        purpose->error = errno;
    }
    side_close(&connection->server);
    why = text_format(
        "%s%s%s%s",
        purpose->by_proxy ? "the proxy of this machine does not answer" : "no address of it answers",
        purpose->error ? " (" : "", purpose->error ? strerror(purpose->error) : "", purpose->error ? ")" : "");
    unreachable(connection, why);
}

void dial_late(struct connection *connection)
{
    connection->purpose->error = ETIMEDOUT;
    dial_next(connection);
}

void dialled(struct connection *connection)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(connection->server.source.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    connection->purpose->error = error;
    if (error)
        dial_next(connection);
    else if (connection->purpose->by_proxy)
        upstream_ask(connection);
    else
        dial_reached(connection);
}

void dial_reached(struct connection *connection)
{
    if (side_is_secure(&connection->client))
        secure_server(connection);
    else if (connection->exchange)
        exchange_connected(connection);
    else
        relay_begin(connection);
}

/* Asked of the kernel, and nothing is sent: whoever goes to an address of this machine has that one as its own.
 */
static bool is_of_this_machine(const struct address *address)
{
    struct sockaddr_storage to, from = { 0 };
    socklen_t size = fill_address(address, 9, &to), from_size = sizeof from;
    autoclose int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return true;
    if (connect(fd, (struct sockaddr *)&to, size) < 0)
        return false; /* nor would it be reached */
    if (getsockname(fd, (struct sockaddr *)&from, &from_size) < 0)
        return true;
    struct address own = from.ss_family == AF_INET
                             ? address_from(&((struct sockaddr_in *)&from)->sin_addr, 4)
                             : address_from(&((struct sockaddr_in6 *)&from)->sin6_addr, 16);

    return address_same(&own, address);
}

/* Also where this machine got the address only after we had looked for its addresses. */
static bool may_be_dialled(const struct verdict *allowed, const struct address *address,
                           struct verdict *refused)
{
    struct verdict by_class = *allowed;

    if (!rules_upstream(the_gate.rules, allowed, address, refused))
        return false;
    if ((allowed->rule && allowed->pinned.len) || !is_of_this_machine(address))
        return true;
    rules_add_own(the_gate.rules, address);
    by_class.pinned = ADDRESS_NONE;
    return rules_upstream(the_gate.rules, &by_class, address, refused);
}

/* Only what passes is kept.  If nothing does, that is a refusal, and noted as one. */
static void judge_addresses(struct connection *connection, const struct address *addresses, size_t len)
{
    struct purpose *purpose = connection->purpose;
    struct verdict allowed = purpose->verdict, refused;
    bool any = false;

    purpose->addresses_len = purpose->at = 0;
    for (size_t i = 0; i < len; i++) {
        if (may_be_dialled(&allowed, &addresses[i], &refused) || gate_leaves_out("upstream")) {
            purpose->addresses[purpose->addresses_len++] = addresses[i];
            continue;
        }
        purpose->verdict = refused;
        any = true;
    }
    if (purpose->addresses_len) {
        purpose->verdict = allowed;
        dial_next(connection);
    } else if (any) {
        purpose->verdict.allowed = false;
        note(connection);
    } else {
        unreachable(connection, "its name has no address");
    }
}

static void looked_up(void *owner, const struct address *addresses, size_t len)
{
    struct connection *connection = owner;

    connection->purpose->lookup = NULL;
    judge_addresses(connection, addresses, len);
}

void dial_begin(struct connection *connection)
{
    struct verdict *verdict = &connection->purpose->verdict;

    connection->bounds = verdict->bounds;
    if (!budget_connection(&the_gate.budget, verdict)) {
        note(connection);
        return;
    }
    notes_tell_spent(false);
    connection->state = LOOKING_UP;
    connection->until = UINT64_MAX; /* a lookup comes to its own end */
    connection->purpose->error = 0;
    connection->purpose->by_proxy = upstream_is_for(connection);
    if (connection->is_service)
        service_dial(connection);
    else if (connection->purpose->by_proxy)
        upstream_dial(connection);
    else if (verdict->pinned.len)
        judge_addresses(connection, &verdict->pinned, 1);
    else if (hostname_is_address(&verdict->host))
        judge_addresses(connection, &verdict->host.address, 1);
    else {
        struct lookup *lookup = lookup_begin(&the_gate.resolver, verdict->host.text, looked_up, connection);

        if (connection->purpose && lookup)
            connection->purpose->lookup = lookup;
    }
}
