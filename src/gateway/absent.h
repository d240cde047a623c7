#pragma once

/* What libcrypto could ask of libc, and never gets (meson.build puts these in the place of libc's): shared
 * objects, and names of hosts.  The gateway has no file to load, and asks for names itself (resolver.h).  So
 * libc's resolver is not in the program at all. */

#include <netdb.h>

void *absent_dlopen(const char *file, int mode);
int absent_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found);
void absent_freeaddrinfo(struct addrinfo *list);
int absent_getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_size,
                       char *service, socklen_t service_size, int flags);
struct hostent *absent_gethostbyname(const char *name);
