#pragma once

/* The proxy by which this machine itself reaches the world (network.upstream-proxy).  The gateway asks it for a
 * host by name, so it is the proxy that resolves the name. */

#include "base/array.h"
#include "base/hostname.h"

struct proxy {
    struct hostname host; /* empty: there is none */
    uint16_t port;
    char *authorization; /* for it, as its field has it; or NULL */
    struct strings
        except; /* hosts that are reached without it: names, with all below them, and addresses; "*" */
};

#define PROXY_NONE ((struct proxy){ 0 })

/* `said` is none, environment or a URL; of the environment HTTPS_PROXY, HTTP_PROXY and NO_PROXY count, those in
 * lower case first.  NULL, or why it cannot be used, as the end of a sentence; then there is none. */
const char *proxy_read(const char *said, char **variables, struct proxy *out);
struct proxy proxy_copy(const struct proxy *proxy);
void proxy_free(struct proxy *proxy);

bool proxy_is_for(const struct proxy *proxy, const struct hostname *host);

/* What it is asked: CONNECT. */
struct text;
void proxy_write(const struct proxy *proxy, const struct hostname *host, uint16_t port, struct text *out);
