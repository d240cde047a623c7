/* A resolver of one's own, to be preloaded: every name is at the same address.  It brings no libc, so that it
 * fits to any. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>

enum { OTHER = 0x0b010102 }; /* 11.1.1.2 */

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    static struct sockaddr_in at = { .sin_family = AF_INET };
    static struct addrinfo found = { .ai_family = AF_INET,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_protocol = IPPROTO_TCP,
                                     .ai_addrlen = sizeof at,
                                     .ai_addr = (struct sockaddr *)&at };
    uint32_t port = 0;

    (void)name, (void)hints;
    for (; service && *service >= '0' && *service <= '9'; service++)
        port = port * 10 + (uint32_t)(*service - '0');
    at.sin_port = __builtin_bswap16((uint16_t)port);
    at.sin_addr.s_addr = __builtin_bswap32(OTHER);
    *out = &found;
    return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
    (void)found;
}
