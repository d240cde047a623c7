#include "keeper/destination.h"

#include "base/array.h"
#include "net/places.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PORT_NAMES = 53 };

/* Port 0 is no destination: libraries connect to it to learn which of several addresses is near.  Whoever asks
 * a name server is answered by the gateway. */
static enum destination_kind of_port(unsigned port, bool inside)
{
    return inside || port == 0 || port == PORT_NAMES ? DESTINATION_INSIDE : DESTINATION_NETWORK;
}

/* 0.0.0.0 is the own machine too.  Addresses that stand for names are the gateway's. */
static bool is_inside(uint32_t address)
{
    static const char *const prefixes[] = { NETWORK_POOL4, NETWORK_POOL4_REFUSED };

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (address >> 16 == ntohl(inet_addr(prefixes[i])) >> 16)
            return true;
    return address == INADDR_ANY || address >> 24 == IN_LOOPBACKNET ||
           htonl(address) == inet_addr(NETWORK_OWN4);
}

static bool is_inside6(const struct in6_addr *address)
{
    static const char *const prefixes[] = { NETWORK_POOL6, NETWORK_POOL6_REFUSED };
    struct in6_addr known;

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (inet_pton(AF_INET6, prefixes[i], &known) == 1 && memcmp(&known, address, sizeof known / 2) == 0)
            return true;
    return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_UNSPECIFIED(address) ||
           (inet_pton(AF_INET6, NETWORK_OWN6, &known) == 1 && IN6_ARE_ADDR_EQUAL(&known, address));
}

static enum destination_kind read_ipv4(uint32_t address, unsigned port, char *name)
{
    struct in_addr in = { htonl(address) };
    char text[INET_ADDRSTRLEN];

    snprintf(name, DESTINATION_MAX, "%s port %u", inet_ntop(AF_INET, &in, text, sizeof text), port);
    return of_port(port, is_inside(address));
}

static enum destination_kind read_inet(const void *bytes, size_t len, char *name)
{
    struct sockaddr_in address;

    if (len < sizeof address)
        return DESTINATION_INSIDE;
    memcpy(&address, bytes, sizeof address);
    return read_ipv4(ntohl(address.sin_addr.s_addr), ntohs(address.sin_port), name);
}

static enum destination_kind read_inet6(const void *bytes, size_t len, char *name)
{
    struct sockaddr_in6 address;
    char text[INET6_ADDRSTRLEN];

    /* The kernel takes it without the scope at its end. */
    if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
        return DESTINATION_INSIDE;
    memcpy(&address, bytes, offsetof(struct sockaddr_in6, sin6_scope_id));

    const struct in6_addr *in = &address.sin6_addr;
    unsigned port = ntohs(address.sin6_port);

    if (IN6_IS_ADDR_V4MAPPED(in))
        return read_ipv4(ntohl(in->s6_addr32[3]), port, name);
    snprintf(name, DESTINATION_MAX, "%s port %u", inet_ntop(AF_INET6, in, text, sizeof text), port);
    return of_port(port, is_inside6(in));
}

/* A name without a file begins with a zero byte and is the sandbox's own. */
static enum destination_kind read_unix(const void *bytes, size_t len, char *name)
{
    size_t start = offsetof(struct sockaddr_un, sun_path);

    if (len <= start || len > sizeof(struct sockaddr_un) || ((const char *)bytes)[start] == '\0')
        return DESTINATION_INSIDE;
    memcpy(name, (const char *)bytes + start, len - start);
    name[len - start] = '\0';
    return DESTINATION_SOCKET;
}

static const struct {
    sa_family_t family;
    enum destination_kind (*read)(const void *bytes, size_t len, char *name);
} families[] = {
    { AF_INET, read_inet },
    { AF_INET6, read_inet6 },
    { AF_UNIX, read_unix },
};

enum destination_kind destination_read(const void *bytes, size_t len, char name[DESTINATION_MAX])
{
    sa_family_t family;

    if (len < sizeof family)
        return DESTINATION_INSIDE;
    memcpy(&family, bytes, sizeof family);
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (families[i].family == family)
            return families[i].read(bytes, len, name);
    return DESTINATION_INSIDE;
}
