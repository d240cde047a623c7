#include "gateway/absent.h"

#include <stddef.h>

void *absent_dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    return NULL;
}

int absent_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found)
{
    (void)name, (void)service, (void)wanted, (void)found;
    return EAI_FAIL;
}

void absent_freeaddrinfo(struct addrinfo *list)
{
    (void)list;
}

int absent_getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_size,
                       char *service, socklen_t service_size, int flags)
{
    (void)address, (void)len, (void)host, (void)host_size, (void)service, (void)service_size, (void)flags;
    return EAI_FAIL;
}

struct hostent *absent_gethostbyname(const char *name)
{
    (void)name;
    return NULL;
}
