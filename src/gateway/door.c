/* Who comes, and whom for. */

#include "gateway/connection.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { ACCEPT_AT_A_TIME = 64 };

void doors_watch(bool open)
{
    for (size_t i = NETWORK_TCP; i < NETWORK_SOCKETS; i += 2)
        (void)events_change(the_gate.loop, &the_gate.sockets[i], open ? EPOLLIN : 0);
    the_gate.full = !open;
}

/* Who it was for before it was turned to us. */
static bool find_target(int fd, int family, struct address *address, uint16_t *port)
{
    struct sockaddr_in6 six = { 0 };
    struct sockaddr_in four = { 0 };
    socklen_t size = family == AF_INET ? sizeof four : sizeof six;

    if (family == AF_INET) {
        if (getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, &four, &size) < 0)
            return false;
        *address = address_from(&four.sin_addr, sizeof four.sin_addr);
        *port = ntohs(four.sin_port);
        return true;
    }
    if (getsockopt(fd, IPPROTO_IPV6, SO_ORIGINAL_DST, &six, &size) < 0)
        return false;
    *address = address_from(&six.sin6_addr, sizeof six.sin6_addr);
    *port = ntohs(six.sin6_port);
    return true;
}

static bool is_own(const struct address *address)
{
    char text[ADDRESS_SIZE];

    address_show(address, text);
    return address_class(address) == ADDRESS_LOOPBACK || strcmp(text, NETWORK_OWN4) == 0 ||
           strcmp(text, NETWORK_OWN6) == 0;
}

/* False: there is nobody it could be for, and nothing to explain. */
static bool identify(struct connection *connection, const struct address *address)
{
    struct purpose *purpose = connection->purpose;
    char text[ADDRESS_SIZE];
    const char *name = text;
    enum pool_kind kind;

    if (is_own(address)) { /* at another port, only services of the host are turned to us */
        connection->is_proxys = connection->port == NETWORK_PORT;
        connection->is_service = !connection->is_proxys;
        return true;
    }
    if (pool_find(&the_gate.pool, address, &kind, &name) == POOL_UNKNOWN)
        return false;
    if (name == text)
        address_show(address, text);
    rules_verdict(the_gate.rules,
                  &(struct question){ .host = name, .host_len = strlen(name), .port = connection->port },
                  &purpose->verdict);
    if (gate_leaves_out("rules"))
        purpose->verdict.allowed = true;
    return true;
}

static uint64_t patience_with(const struct connection *connection)
{
    bool web = connection->port == 80 || connection->port == 443;

    if (connection->is_proxys)
        return early_patience;
    if (!connection->purpose->verdict.allowed)
        return connection->port == 443 && secure_can_explain() ? refused_hello : refused_silent;
    return web ? early_patience : allowed_silent;
}

static void admit(int fd, int family)
{
    struct connection *connection = connection_open(fd);
    struct address address;

    side_prompt(fd);
    if (!find_target(fd, family, &address, &connection->port) ||
        events_add(the_gate.loop, &connection->client.source, EPOLLIN) < 0) {
        connection_reset(connection);
        return;
    }
    if (connection->port == 53) {
        connection_wait(connection, ASKING, early_patience);
        return;
    }
    if (!identify(connection, &address)) {
        connection_reset(connection);
        return;
    }
    if (connection->is_service) {
        service_begin(connection);
        return;
    }
    connection_wait(connection, READING, patience_with(connection));
    first_read(connection);
}

void connections_ready(struct event_source *source, uint32_t events)
{
    int family = source == &the_gate.sockets[NETWORK_TCP] ? AF_INET : AF_INET6;

    (void)events;
    for (int i = 0; i < ACCEPT_AT_A_TIME && !the_gate.full; i++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        int fd = accept4(source->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            admit(fd, family);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            doors_watch(false); /* until somebody leaves */
        if (fd < 0)
            return;
    }
}
