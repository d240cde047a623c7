#include "gateway/gateway.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "gateway/gate.h"
#include "net/tls.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 8192,
    FDS_SPARE = 64,
    FDS_EACH = 4, /* two ends, and two questions while it is looked up */
    BEAT_MS = 20,
    NOTES_AT_A_TIME = 256,
};

struct gate the_gate;

/* What the keeper has written down. */
static void channel_ready(struct event_source *source, uint32_t events)
{
    struct gateway_noted noted;

    (void)events;
    for (int i = 0; i < NOTES_AT_A_TIME; i++) {
        ssize_t got = recv(source->fd, &noted, sizeof noted, MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got != (ssize_t)sizeof noted)
            _exit(0); /* the keeper is gone */
        connections_noted(&the_gate, noted.tag);
    }
}

/* This machine's own addresses are as closed as private ones. */
static void add_own_addresses(struct rules *rules)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0)
        _exit(1);
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct address address = ADDRESS_NONE;

        if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET)
            address = address_from(&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, 4);
        else if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET6)
            address = address_from(&((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr, 16);
        if (address.len)
            rules_add_own(rules, &address);
    }
    freeifaddrs(all);
}

static size_t connections_max(size_t descriptors)
{
    size_t most = descriptors > FDS_SPARE + FDS_EACH ? (descriptors - FDS_SPARE) / FDS_EACH : 1;

    return most < CONNECTIONS_MAX ? most : CONNECTIONS_MAX;
}

static int add_source(struct event_source *source, int fd, void (*ready)(struct event_source *, uint32_t))
{
    *source = (struct event_source){ .fd = fd, .ready = ready };
    return fd < 0 ? 0 : events_add(the_gate.loop, source, EPOLLIN);
}

/* Without an authority a gateway refuses in other words; without roots it believes no server.  Neither is a
 * reason to let anything through. */
static void take_certificates(const struct gateway *gateway, struct gate *gate)
{
    struct error ignored;

    if (gateway->authority && tls_warm() == 0)
        gate->authority = tls_authority_load(gateway->authority, gateway->authority, &ignored);
    if (gate->authority && gateway->roots)
        gate->trust = tls_trust_new(gateway->roots, strlen(gateway->roots), &ignored);
}

static int begin(const struct gateway *gateway, struct rules *rules)
{
    struct gate *gate = &the_gate;
    size_t descriptors;

    rules_init(rules, gateway->rules->mode, &gateway->rules->list);
    add_own_addresses(rules);
    gate->rules = rules;
#ifdef COVE_UNSAFE
    gate->without = gateway->without;
#endif
    gate->loop = events_open();
    pool_init(&gate->pool, gateway->generation);
    resolver_init(&gate->resolver, gate->loop);
    take_certificates(gateway, gate);
    if (gate->loop < 0 || add_source(&gate->channel, gateway->channel, channel_ready) < 0)
        return -1;
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        if (add_source(&gate->sockets[i], gateway->sockets[i],
                       i == NETWORK_UDP || i == NETWORK_UDP6 ? questions_ready : connections_ready) < 0)
            return -1;
    if (gateway_confine(&descriptors) < 0)
        return -1;
    gate->connections_max = connections_max(descriptors);
    return 0;
}

void gateway_main(const struct gateway *gateway)
{
    static struct rules rules;
    struct gate *gate = &the_gate;
    uint64_t tended = 0;

    if (begin(gateway, &rules) < 0)
        _exit(1);
    for (;;) {
        if (events_turn(gate->loop, gate->connections ? BEAT_MS : -1) < 0)
            _exit(1);
        uint64_t now = clock_us();

        if (now - tended >= BEAT_MS * 1000ULL) {
            tended = now;
            connections_tend(gate, now);
        }
        connections_bury(gate);
        lookups_bury();
    }
}
