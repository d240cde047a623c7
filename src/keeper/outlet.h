#pragma once

/* The keeper's end of the way out: it waits for the first question or connection from inside, starts the
 * gateway then, and writes down every verdict before it has an effect.  If the gateway dies, nothing gets out
 * until the next one is there. */

#include "gateway/gateway.h"
#include "keeper/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct network;
struct rules;
struct trace;

/* What was asked for, once for all that are alike. */
struct request {
    char *host, *why, *command; /* inert; command: what would allow it, or empty */
    unsigned port;
    enum gateway_protocol protocol;
    bool allowed;
    uint64_t count;
};

struct requests {
    struct request *items;
    size_t len, cap;
    uint64_t others;   /* that found no room ... */
    uint64_t recorded; /* ... and are in the trace, one by one */
};

struct outlet {
    struct loop *loop;
    const struct network *network;
    const struct rules *rules;
    struct trace *trace; /* NULL: there is none */
    int dir;             /* of the sandbox: its authority is there (keeper/trust.h) */
    struct loop_source doors[NETWORK_SOCKETS], channel, timer;
    pid_t pid; /* of the gateway; 0: there is none */
    unsigned generation;
    uint64_t started; /* in microseconds: when the last one was */
    uint64_t written; /* bytes, to the file of refusals */
    struct requests requests;
};

#define OUTLET_NONE ((struct outlet){ .channel.fd = -1, .timer.fd = -1 })

const char *gateway_protocol_name(enum gateway_protocol protocol);

/* `network` of a box that was verified; `dir`, the sandbox's, stays open as long.  Where it has no sockets
 * there is nothing to do. */
int outlet_begin(struct outlet *outlet, struct loop *loop, const struct network *network,
                 const struct rules *rules, struct trace *trace, int dir, struct error *err);

/* Ends the gateway.  The requests remain. */
void outlet_end(struct outlet *outlet);
void requests_free(struct requests *requests);
