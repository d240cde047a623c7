#pragma once

/* Names to addresses, asked of the host's own name servers, and only for what a rule allows. */

#include "gateway/events.h"
#include "net/dns.h"

#include <netinet/in.h>

enum { RESOLVER_SERVERS = 3, RESOLVER_CACHE = 256, LOOKUP_ADDRESSES = 2 * DNS_ADDRESSES_MAX };

struct resolver {
    int loop;
    struct sockaddr_in6 servers[RESOLVER_SERVERS]; /* or sockaddr_in */
    size_t servers_len;
    struct resolver_host {
        char *name;
        struct address address;
    } * hosts; /* of /etc/hosts */
    size_t hosts_len, hosts_cap;
    struct resolver_cached {
        char *name;
        uint64_t until; /* in microseconds */
        struct address addresses[LOOKUP_ADDRESSES];
        size_t len;
    } cache[RESOLVER_CACHE];
};

/* Reads what the host says about names.  While files can be opened. */
void resolver_init(struct resolver *resolver, int loop);

struct lookup;

/* Called once for each lookup that was not ended.  No address: it has none, or nobody could tell. */
typedef void lookup_done(void *owner, const struct address *addresses, size_t len);

/* NULL: it was told at once, or will never be, because there is nothing to ask with: then with no address. */
struct lookup *lookup_begin(struct resolver *resolver, const char *name, lookup_done *done, void *owner);
void lookup_end(struct lookup *lookup);

/* Called now and then: asks again what was not answered in time.  True: it still waits. */
bool lookup_tend(struct lookup *lookup, uint64_t now);

/* Frees what ended in this turn. */
void lookups_bury(void);
