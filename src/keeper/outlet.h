#pragma once

/* The keeper's end of the way out: it waits for the first question or connection from inside, starts the
 * gateway then, and writes down every verdict before it has an effect.  If the gateway dies, nothing gets out
 * until the next one is there. */

#include "gateway/gateway.h"
#include "gateway/rules.h"
#include "keeper/larder.h"
#include "keeper/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct network;
struct registry_places;
struct reel;
struct trace;

/* What was asked for, once for all that are alike. */
struct request {
    char *host, *why, *command; /* inert; command: what would allow it, or empty */
    char *method, *path; /* of one that an audit has let through, if a rule would have to name them; or empty */
    unsigned port;
    enum gateway_protocol protocol;
    enum reason reason, without; /* without: of REASON_AUDIT, what it would be */
    bool allowed;
    bool failed; /* it was allowed, and not reached */
    uint64_t count;
    uint64_t last; /* when it was asked for, in requests */
};

struct requests {
    struct request *items;
    size_t len, cap;
    uint64_t all;    /* that there were */
    uint64_t others; /* of those, how many are not in the list any more */
    uint64_t cached; /* package files that were given from the cache */
    struct amounts budget;
    struct amounts spent; /* of it, since the start; not counted without one */
};

/* Whose it is, as long as the outlet. */
struct way_out {
    const struct network *network;
    const struct rules *rules;
    const struct reel *reel;
    struct trace *trace;                      /* NULL: there is none */
    const struct registry_places *registries; /* where it is said which hosts these are; NULL: nobody asks */
    int dir;                                  /* of the sandbox: its authority is there (keeper/trust.h) */
    const char *stays;                        /* its id; NULL: it does not */
};

struct outlet {
    struct loop *loop;
    struct way_out way;
    struct rules changed; /* what `way` has then in place of the first ones */
    struct loop_source doors[NETWORK_SOCKETS], channel, timer;
    pid_t pid; /* of the gateway; 0: there is none */
    unsigned generation;
    bool died;            /* the last one did, and was not ended */
    uint64_t started;     /* in microseconds: when the last one was */
    uint64_t written;     /* bytes, to the file of refusals */
    uint64_t lines;       /* of the trace */
    uint64_t line_at;     /* in microseconds: when there was the last one */
    uint64_t unsaid;      /* requests since then that have none */
    uint64_t *bytes;      /* of each rule that were spent */
    struct larder larder; /* package files that are kept */
    struct requests requests;
};

#define OUTLET_NONE ((struct outlet){ .channel.fd = -1, .timer.fd = -1, .larder = LARDER_NONE })

const char *gateway_protocol_name(enum gateway_protocol protocol);
const char *request_verdict(const struct request *request); /* "allow", "deny", "fail" */

/* `network` of a box that was verified; `dir`, the sandbox's, stays open as long.  Where it has no sockets
 * there is nothing to do. */
int outlet_begin(struct outlet *outlet, struct loop *loop, const struct way_out *way, struct error *err);

/* These from now on, which are taken from the caller.  Whoever is connected is cut off. */
void outlet_change(struct outlet *outlet, struct rules *rules);

/* Ends the gateway.  The requests remain. */
void outlet_end(struct outlet *outlet);
void requests_free(struct requests *requests);
