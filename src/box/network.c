#include "box/network.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "box/nettable.h"
#include "sys/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first device of every network namespace. */
enum { LOOPBACK = 1, BACKLOG = 4096 };

static void put_link_up(struct netlink *all, int flags)
{
    const struct ifinfomsg link = { .ifi_index = LOOPBACK, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };

    netlink_begin(all, RTM_NEWLINK, (uint16_t)flags, &link, sizeof link);
}

static void put_address(struct netlink *all, int family, const void *bytes, size_t size)
{
    const struct ifaddrmsg address = { .ifa_family = (uint8_t)family,
                                       .ifa_prefixlen = (uint8_t)(size * 8),
                                       .ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
                                       .ifa_index = LOOPBACK };

    netlink_begin(all, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &address, sizeof address);
    netlink_put(all, IFA_LOCAL, bytes, size);
    netlink_put(all, IFA_ADDRESS, bytes, size);
}

/* "local default dev lo src ..." */
static void put_route(struct netlink *all, int family, const void *source, size_t size, int flags)
{
    const struct rtmsg route = { .rtm_family = (uint8_t)family,
                                 .rtm_table = RT_TABLE_LOCAL,
                                 .rtm_protocol = RTPROT_BOOT,
                                 .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                                 .rtm_type = RTN_LOCAL };
    const int device = LOOPBACK;

    netlink_begin(all, RTM_NEWROUTE, (uint16_t)(NLM_F_CREATE | NLM_F_EXCL | flags), &route, sizeof route);
    netlink_put(all, RTA_OIF, &device, sizeof device);
    netlink_put(all, RTA_PREFSRC, source, size);
}

static int exchange_routes(struct netlink *all)
{
    autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? -1 : netlink_exchange(fd, all);
}

static int bring_up_loopback(void)
{
    struct netlink all = { 0 };

    put_link_up(&all, NLM_F_ACK);
    return exchange_routes(&all);
}

/* The loopback, and every address to it, in one message.  *six: that of the second family too. */
static int route_everything(bool *six)
{
    struct netlink all = { 0 };
    struct in_addr own4;
    struct in6_addr own6;

    if (inet_pton(AF_INET, NETWORK_OWN4, &own4) != 1 || inet_pton(AF_INET6, NETWORK_OWN6, &own6) != 1)
        return -1;
    put_link_up(&all, 0);
    put_address(&all, AF_INET, &own4, sizeof own4);
    put_route(&all, AF_INET, &own4, sizeof own4, 0);

    unsigned needed = all.sequence;

    put_address(&all, AF_INET6, &own6, sizeof own6);
    put_route(&all, AF_INET6, &own6, sizeof own6, NLM_F_ACK);
    *six = exchange_routes(&all) == 0;
    return *six || all.failed > needed ? 0 : -1;
}

/* Bound to loopback, so that an answer has the address that was asked as its source. */
static int open_socket(int family, int type)
{
    autoclose int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in four = { AF_INET, htons(NETWORK_PORT), { htonl(INADDR_LOOPBACK) }, { 0 } };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                .sin6_port = htons(NETWORK_PORT),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;

    if (fd < 0 || bind(fd, at, family == AF_INET ? sizeof four : sizeof six) < 0 ||
        (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
        return -1;
    return steal_fd(&fd);
}

static int open_sockets(bool six, struct network *out)
{
    static const struct {
        int family, type;
    } kinds[NETWORK_SOCKETS] = { [NETWORK_UDP] = { AF_INET, SOCK_DGRAM },
                                 [NETWORK_TCP] = { AF_INET, SOCK_STREAM },
                                 [NETWORK_UDP6] = { AF_INET6, SOCK_DGRAM },
                                 [NETWORK_TCP6] = { AF_INET6, SOCK_STREAM } };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].family == AF_INET6 && !six)
            continue;
        out->sockets[i] = open_socket(kinds[i].family, kinds[i].type);
        if (out->sockets[i] < 0)
            return -1;
    }
    return 0;
}

/* Where an address of the world would go, asked of the kernel: to us, by loopback. */
static int read_back_route(int family, const char *address, struct error *err)
{
    struct sockaddr_storage to = { 0 }, from = { 0 };
    socklen_t size = sizeof from;
    autoclose int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char own[INET6_ADDRSTRLEN] = "";
    bool four = family == AF_INET;
    struct sockaddr_in *in = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&to;

    to.ss_family = (sa_family_t)family;
    in->sin_port = htons(9); /* also sin6_port */
    if (inet_pton(family, address, four ? (void *)&in->sin_addr : &in6->sin6_addr) != 1 || fd < 0 ||
        connect(fd, (struct sockaddr *)&to, four ? sizeof *in : sizeof *in6) < 0 ||
        getsockname(fd, (struct sockaddr *)&from, &size) < 0)
        return error_sys(err, "read back: ask for the route to %s", address);
    in = (struct sockaddr_in *)&from;
    in6 = (struct sockaddr_in6 *)&from;
    (void)inet_ntop(family, four ? (void *)&in->sin_addr : &in6->sin6_addr, own, sizeof own);
    if (strcmp(own, four ? NETWORK_OWN4 : NETWORK_OWN6) != 0)
        return error_set(err, ERROR_REFUSED, "read back: %s is reached from %s", address, own);
    /* It goes no further than the table, which refuses it. */
    if (send(fd, "", 1, 0) >= 0 || errno != EPERM)
        return error_set(err, ERROR_REFUSED, "read back: a datagram to %s was not refused", address);
    return 0;
}

static bool is_lacking(const struct error *err)
{
    return err->kind == ERROR_SYSTEM;
}

/* The rules are there before anything can be sent. */
static int lead_to_gateway(struct network *out, struct error *err)
{
    bool six;

    out->rules = nettable_load(err);
    if (out->rules < 0)
        return -1;
    if (route_everything(&six) < 0)
        return error_sys(err, "route every address to loopback");
    if (open_sockets(six, out) < 0)
        return error_sys(err, "open the gateway's sockets");
    if (read_back_route(AF_INET, "203.0.113.9", err) < 0)
        return -1;
    return six ? read_back_route(AF_INET6, "2001:db8::9", err) : 0;
}

int network_grant(const struct network *network, const struct strings *granted, struct error *err)
{
    if (granted->len == 0)
        return 0;
    if (network->rules < 0) {
        *err = network->lacking;
        return error_while(err, "lead connections to the gateway");
    }
    return nettable_grant(network->rules, granted, err);
}

int network_open_refused(struct network *network, struct error *err)
{
    if (mkdir(NETWORK_REFUSED_DIR, 0755) < 0)
        return error_sys(err, "make " NETWORK_REFUSED_DIR);
    network->refused =
        open(NETWORK_REFUSED, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    return network->refused < 0 ? error_sys(err, "make " NETWORK_REFUSED) : 0;
}

void network_close(struct network *network)
{
    struct error error = network->error, lacking = network->lacking;

    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        own_close(&network->sockets[i]);
    own_close(&network->refused);
    own_close(&network->rules);
    *network = NETWORK_CLOSED;
    network->error = error;
    network->lacking = lacking;
}

/* --- from the clone to the keeper --- */

size_t network_pack(const struct network *network, int *fds)
{
    size_t count = 0;

    if (network->refused >= 0)
        fds[count++] = network->refused;
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        if (network->sockets[i] >= 0)
            fds[count++] = network->sockets[i];
    return count;
}

static bool is_socket(int fd, size_t which)
{
    bool stream = which == NETWORK_TCP || which == NETWORK_TCP6;
    int type = 0, family = 0;
    socklen_t size = sizeof type;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
           type == (stream ? SOCK_STREAM : SOCK_DGRAM) &&
           family == (which == NETWORK_UDP || which == NETWORK_TCP ? AF_INET : AF_INET6);
}

int network_unpack(struct network *out, int *fds, size_t count, struct error *err)
{
    struct stat status;

    *out = NETWORK_CLOSED;
    if (count == 0)
        return 0;
    if ((count != 1 + NETWORK_SOCKETS && count != 1 + NETWORK_SOCKETS / 2) || fstat(fds[0], &status) < 0 ||
        !S_ISREG(status.st_mode))
        return error_set(err, ERROR_REFUSED, "the sandbox did not send the sockets of its network");
    for (size_t i = 1; i < count; i++)
        if (!is_socket(fds[i], i - 1))
            return error_set(err, ERROR_REFUSED, "the sandbox did not send the sockets of its network");
    out->refused = steal_fd(&fds[0]);
    for (size_t i = 1; i < count; i++)
        out->sockets[i - 1] = steal_fd(&fds[i]);
    return 0;
}

/* Nothing but a loopback is less, and therefore no reason not to start. */
static int be_alone(struct network *out, struct error *err)
{
    network_close(out);
    if (unshare(CLONE_NEWNET) < 0 || bring_up_loopback() < 0)
        return error_sys(err, "make a network namespace");
    return 0;
}

void network_make(struct network *out)
{
    *out = NETWORK_CLOSED;
    if (unshare(CLONE_NEWNET) < 0) {
        error_sys(&out->error, "make a network namespace");
        return;
    }
    if (lead_to_gateway(out, &out->lacking) == 0)
        return;
    if (!is_lacking(&out->lacking) || be_alone(out, &out->error) < 0)
        out->error = out->lacking;
}
