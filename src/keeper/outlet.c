#include "keeper/outlet.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/network.h"
#include "gateway/rules.h"
#include "init/wire.h"
#include "keeper/apart.h"
#include "keeper/trust.h"
#include "spec/node.h"
#include "trace/trace.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REQUESTS_MAX = 1024,     /* that are told apart; half of them may be refusals */
    OTHERS_RECORDED = 65536, /* of those that are not; half of them may be refusals */
    EACH_RECORDED = 100,     /* of those that are alike; then when there are twice as many */
    REFUSED_BYTES = 1 << 18, /* of the file inside */
    RESTART_MS = 1000,       /* between two gateways, when the first did not live long */
    NOTES_AT_A_TIME = 64,
};

static const uint64_t lived_us = 5000000;

const char *gateway_protocol_name(enum gateway_protocol protocol)
{
    static const char *const names[GATEWAY_PROTOCOLS] = { "tcp", "tls", "http" };

    return names[protocol];
}

void requests_free(struct requests *requests)
{
    for (size_t i = 0; i < requests->len; i++) {
        free(requests->items[i].host);
        free(requests->items[i].why);
        free(requests->items[i].command);
    }
    free(requests->items);
    *requests = (struct requests){ 0 };
}

/* --- what the gateway says, of which nothing is believed --- */

static char *inert(char *bytes, size_t size)
{
    struct text text = TEXT_NONE;

    bytes[size - 1] = '\0';
    text_add_inert(&text, bytes);
    return text_steal(&text);
}

/* NULL: there are too many already.  Refusals leave room: whoever is refused a thousand hosts must not thereby
 * close the ones that are allowed. */
static struct request *find_request(struct requests *requests, struct gateway_note *note)
{
    autofree char *host = inert(note->host, sizeof note->host), *why = inert(note->why, sizeof note->why);
    size_t refused = 0;

    for (size_t i = 0; i < requests->len; i++) {
        struct request *at = &requests->items[i];

        if (at->port == note->port && at->allowed == (bool)note->allowed && at->protocol == note->protocol &&
            strcmp(at->host, host) == 0 && strcmp(at->why, why) == 0)
            return at;
        refused += !at->allowed;
    }
    if (requests->len == REQUESTS_MAX || (!note->allowed && refused >= REQUESTS_MAX / 2))
        return NULL;

    struct request *added = array_add(requests);

    *added = (struct request){ .host = steal_ptr(&host),
                               .why = steal_ptr(&why),
                               .command = inert(note->command, sizeof note->command),
                               .port = note->port,
                               .protocol = (enum gateway_protocol)note->protocol,
                               .allowed = note->allowed };
    return added;
}

/* The first ones one by one; then when there are twice as many: whoever asks for ever cannot fill a disk. */
static bool is_to_be_recorded(uint64_t count)
{
    return count <= EACH_RECORDED || (count & (count - 1)) == 0;
}

static int record(const struct outlet *outlet, const struct request *request, struct gateway_note *note)
{
    autonode struct node data = { .kind = NODE_MAP };
    autofree char *port = text_format("%u", request->port);
    autofree char *count = text_format("%llu", (unsigned long long)request->count);
    autofree char *method = inert(note->method, sizeof note->method);
    struct error ignored;

    if (!outlet->trace || !is_to_be_recorded(request->count))
        return 0;
    node_add(&data, "host", NODE_STRING, request->host);
    node_add(&data, "port", NODE_NUMBER, port);
    node_add(&data, "protocol", NODE_STRING, gateway_protocol_name(request->protocol));
    node_add(&data, "verdict", NODE_STRING, request->allowed ? "allow" : "deny");
    node_add(&data, "reason", NODE_STRING, request->why);
    node_add(&data, "count", NODE_NUMBER, count);
    if (*method)
        node_add(&data, "method", NODE_STRING, method);
    return trace_add(outlet->trace, "request", &data, &ignored);
}

/* For whoever is inside and whose client did not show why. */
static void tell_inside(struct outlet *outlet, const struct request *request)
{
    autotext struct text line = TEXT_NONE;

    if (request->allowed || request->count > 1 || outlet->network->refused < 0)
        return;
    text_addf(&line, "%s port %u (%s): %s%s%s\n", request->host, request->port,
              gateway_protocol_name(request->protocol), request->why,
              *request->command ? "; to allow it: " : "", request->command);
    if (outlet->written + line.len > REFUSED_BYTES)
        return;
    outlet->written += line.len;
    (void)!write(outlet->network->refused, text_string(&line), line.len);
}

/* One that there is no room for is written down by itself, so often that no disk is filled.  After that nothing
 * more is let through; a refusal has no effect, and is only counted. */
static int take_other(struct outlet *outlet, struct gateway_note *note)
{
    struct requests *requests = &outlet->requests;
    autofree char *host = inert(note->host, sizeof note->host), *why = inert(note->why, sizeof note->why);
    const struct request other = { .host = host,
                                   .why = why,
                                   .port = note->port,
                                   .protocol = (enum gateway_protocol)note->protocol,
                                   .allowed = note->allowed,
                                   .count = 1 };

    requests->others++;
    if (requests->recorded >= (note->allowed ? OTHERS_RECORDED : OTHERS_RECORDED / 2))
        return note->allowed && outlet->trace ? -1 : 0;
    requests->recorded++;
    return record(outlet, &other, note);
}

/* -1: it could not be written down, and must have no effect. */
static int take_note(struct outlet *outlet, struct gateway_note *note)
{
    if (note->allowed > 1 || note->protocol >= GATEWAY_PROTOCOLS || note->port > 65535)
        return -1;

    struct request *request = find_request(&outlet->requests, note);

    if (!request)
        return take_other(outlet, note);
    request->count++;
    if (record(outlet, request, note) < 0)
        return -1;
    tell_inside(outlet, request);
    return 0;
}

/* --- the gateway --- */

static void watch_doors(struct outlet *outlet, bool open)
{
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        outlet->doors[i].fd = open ? outlet->network->sockets[i] : -1;
}

/* The next one is started by whoever comes next; but not at once, if this one did not live long. */
static void mourn(struct outlet *outlet)
{
    const struct itimerspec after = { .it_value = { RESTART_MS / 1000, RESTART_MS % 1000 * 1000000L } };

    own_close(&outlet->channel.fd);
    outlet->channel.fd = -1;
    if (outlet->pid > 0) {
        kill(outlet->pid, SIGKILL);
        while (waitpid(outlet->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    outlet->pid = 0;
    if (clock_us() - outlet->started >= lived_us)
        watch_doors(outlet, true);
    else
        (void)timerfd_settime(outlet->timer.fd, 0, &after, NULL);
}

static void timer_ready(void *owner, short revents)
{
    struct outlet *outlet = owner;
    uint64_t times;

    (void)revents;
    (void)!read(outlet->timer.fd, &times, sizeof times);
    if (!outlet->pid)
        watch_doors(outlet, true);
}

static void channel_ready(void *owner, short revents)
{
    struct outlet *outlet = owner;

    (void)revents;
    for (int i = 0; i < NOTES_AT_A_TIME; i++) {
        int fds[PROTOCOL_FDS_MAX];
        struct gateway_note note;
        struct error error;
        size_t count;
        int got = wire_take(outlet->channel.fd, &note, sizeof note, fds, &count, &error);

        for (size_t f = 0; got == WIRE_MESSAGE && f < count; f++)
            close(fds[f]);
        if (got == WIRE_NOTHING)
            return;
        if (got != WIRE_MESSAGE) {
            mourn(outlet);
            return;
        }
        const struct gateway_noted noted = { note.tag };

        if (take_note(outlet, &note) == 0)
            (void)send(outlet->channel.fd, &noted, sizeof noted, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* What the owner's environment holds is nothing to lie about in the memory of a process that reads hostile
 * bytes.
 */
static void forget_environment(void)
{
    for (char **at = environ; at && *at; at++)
        explicit_bzero(*at, strlen(*at));
    environ = NULL;
}

static _Noreturn void be_gateway(const struct outlet *outlet, int channel)
{
    struct gateway gateway = { .rules = outlet->rules,
                               .channel = channel,
                               .sockets = { -1, -1, -1, -1 },
                               .authority = trust_authority(outlet->dir),
                               .roots = trust_roots(),
                               .generation = outlet->generation };
    int *fds[1 + NETWORK_SOCKETS] = { &gateway.channel };
    int count = 1;
    sigset_t none;

#ifdef COVE_UNSAFE
    gateway.without = getenv("COVE_UNSAFE_WITHOUT") ? text_copy(getenv("COVE_UNSAFE_WITHOUT")) : NULL;
#endif
    for (size_t i = 0; i < NETWORK_SOCKETS; i++) {
        gateway.sockets[i] = outlet->network->sockets[i];
        if (gateway.sockets[i] >= 0)
            fds[count++] = &gateway.sockets[i];
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    apart("cove-gateway", fds, count);
    forget_environment();
    gateway_main(&gateway);
}

static void start(struct outlet *outlet)
{
    int ends[2];

    outlet->started = clock_us();
    watch_doors(outlet, false);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        mourn(outlet);
        return;
    }
    outlet->pid = fork();
    if (outlet->pid == 0)
        be_gateway(outlet, ends[1]);
    close(ends[1]);
    outlet->channel.fd = ends[0];
    outlet->generation++;
    if (outlet->pid < 0)
        mourn(outlet);
}

static void door_ready(void *owner, short revents)
{
    struct outlet *outlet = owner;

    (void)revents;
    if (!outlet->pid)
        start(outlet);
}

int outlet_begin(struct outlet *outlet, struct loop *loop, const struct network *network,
                 const struct rules *rules, struct trace *trace, int dir, struct error *err)
{
    bool wanted = rules->mode == NETWORK_OPEN || (rules->mode == NETWORK_RULES && rules->list.len);

    if (network->sockets[NETWORK_UDP] < 0 && wanted && network->lacking.kind != ERROR_NONE) {
        *err = network->lacking;
        err->kind = ERROR_UNSUPPORTED;
        error_while(err, "make a network that rules hold for");
        return error_hint(err, "without rules (--network none) the sandbox needs none");
    }
    if (network->sockets[NETWORK_UDP] < 0)
        return 0;
    *outlet = (struct outlet){ .loop = loop, .network = network, .rules = rules, .trace = trace, .dir = dir };
    outlet->channel = (struct loop_source){ -1, POLLIN, channel_ready, outlet };
    outlet->timer = (struct loop_source){ timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), POLLIN,
                                          timer_ready, outlet };
    for (size_t i = 0; i < NETWORK_SOCKETS; i++) {
        outlet->doors[i] = (struct loop_source){ network->sockets[i], POLLIN, door_ready, outlet };
        loop_add(loop, &outlet->doors[i]);
    }
    loop_add(loop, &outlet->channel);
    loop_add(loop, &outlet->timer);
    return outlet->timer.fd < 0 ? error_sys(err, "make a timer for the gateway") : 0;
}

void outlet_end(struct outlet *outlet)
{
    if (!outlet->loop)
        return;
    if (outlet->channel.fd >= 0)
        channel_ready(outlet, POLLIN); /* what it had said */
    if (outlet->pid)
        mourn(outlet);
    watch_doors(outlet, false);
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        loop_remove(outlet->loop, &outlet->doors[i]);
    loop_remove(outlet->loop, &outlet->channel);
    loop_remove(outlet->loop, &outlet->timer);
    own_close(&outlet->timer.fd);
    outlet->timer.fd = -1;
    outlet->loop = NULL;
}
