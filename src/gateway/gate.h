#pragma once

/* What all parts of a gateway share. */

#include "gateway/budget.h"
#include "gateway/events.h"
#include "gateway/gateway.h"
#include "gateway/pool.h"
#include "gateway/recorder.h"
#include "gateway/resolver.h"
#include "gateway/rules.h"

#include <string.h>

struct connection;
struct tls_authority;
struct tls_trust;

struct gate {
    int loop;
    struct rules *rules;
    struct budget budget;
    struct event_source channel;
    struct event_source sockets[NETWORK_SOCKETS];
    struct pool pool;
    struct resolver resolver;
    struct recorder recorder;
    struct tls_authority *authority;         /* by which it answers in the name of hosts; NULL: it cannot */
    struct tls_trust *trust;                 /* by which it believes servers outside; NULL: none of them */
    struct connection *connections, *buried; /* open ones; and those of this turn that are not */
    size_t connections_len, connections_max;
    struct connection **slots; /* by the lowest bits of a tag */
    uint32_t slot;             /* where to look for the next free one */
    uint64_t tags;
    bool packages;    /* there is a cache of package files */
    char sandbox[16]; /* by which the owner names one that stays, or empty */
    bool full;        /* nobody more is let in */
#ifdef COVE_UNSAFE
    const char *without;
#endif
};

/* questions.c: what name servers are asked. */
void questions_ready(struct event_source *source, uint32_t events);

/* The answer to one message; 0: none.  `out` has room for DNS_UDP_MAX. */
size_t question_answer(struct gate *gate, const unsigned char *bytes, size_t len, unsigned char *out);

/* connection.c, door.c */
void connections_ready(struct event_source *source, uint32_t events);
void connections_noted(struct gate *gate, const struct gateway_noted *noted, int fd); /* fd: taken; or -1 */
void connections_tend(struct gate *gate, uint64_t now);
void connections_bury(struct gate *gate);
void connections_end(struct gate *gate); /* all of them, as if their clients had gone */

/* note.c: sends what was noted in this turn. */
void notes_flush(void);

/* secure.c: reads the ca of rules, before no right is left. */
void secure_trust_rules(void);

/* note.c: what would allow it, as its owner types it; empty: nothing simple would.  Until the next call. */
const char *note_command(const struct verdict *verdict);

/* There is one gate in a process. */
extern struct gate the_gate;

/* Whether a guard is to be left out: never, but in test builds. */
static inline bool gate_leaves_out(const char *guard)
{
#ifdef COVE_UNSAFE
    return the_gate.without && strstr(the_gate.without, guard);
#else
    (void)guard;
    return false;
#endif
}

/* confine.c: no right is left, no file can be opened; only so many descriptors.  -1 and errno on failure. */
int gateway_confine(size_t *descriptors);
