#include "keeper/outlet.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/network.h"
#include "gateway/brief.h"
#include "gateway/registries.h"
#include "gateway/rules.h"
#include "init/wire.h"
#include "keeper/program.h"
#include "keeper/reel.h"
#include "keeper/trust.h"
#include "keeper/trust_layer.h"
#include "spec/node.h"
#include "sys/sys.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REQUESTS_MAX = 1024, /* that are told apart */
    EACH_RECORDED = 100, /* of those that are alike; then when there are twice as many */
    LINES_EACH = 20000,  /* of the trace, which only grows; then one in LINE_US */
    LINE_US = 1000000,
    REFUSED_BYTES = 1 << 18, /* of the file inside */
    RESTART_MS = 1000,       /* between two gateways, when the first did not live long */
    NOTES_AT_A_TIME = 64,
    FINISH_MS = 2000,
};

static const uint64_t lived_us = 5000000;

const char *gateway_protocol_name(enum gateway_protocol protocol)
{
    static const char *const names[GATEWAY_PROTOCOLS] = { "tcp", "tls", "http" };

    return names[protocol];
}

static void request_free(struct request *request)
{
    free(request->host);
    free(request->why);
    free(request->command);
    free(request->method);
    free(request->path);
}

void requests_free(struct requests *requests)
{
    for (size_t i = 0; i < requests->len; i++)
        request_free(&requests->items[i]);
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

/* Whoever asks for ever new things cannot keep others from being asked for: what was asked for least, and of
 * that what was not asked for the longest, is forgotten. */
static struct request *forget_one(struct requests *requests)
{
    struct request *least = &requests->items[0];

    for (size_t i = 1; i < requests->len; i++) {
        struct request *at = &requests->items[i];

        if (at->count < least->count || (at->count == least->count && at->last < least->last))
            least = at;
    }
    requests->others += least->failed ? 0 : least->count;
    request_free(least);
    return least;
}

static struct request *find_request(struct requests *requests, struct gateway_note *note)
{
    autofree char *host = inert(note->host, sizeof note->host), *why = inert(note->why, sizeof note->why);
    autofree char *path = inert(note->path, sizeof note->path);
    autofree char *method = *path ? inert(note->method, sizeof note->method) : text_copy("");
    bool failed = note->saying == GATEWAY_FAILED;

    for (size_t i = 0; i < requests->len; i++) {
        struct request *at = &requests->items[i];

        if (at->port == note->port && at->allowed == (bool)note->allowed && at->failed == failed &&
            at->protocol == note->protocol && strcmp(at->host, host) == 0 && strcmp(at->why, why) == 0 &&
            strcmp(at->method, method) == 0 && strcmp(at->path, path) == 0)
            return at;
    }
    struct request *added = requests->len == REQUESTS_MAX ? forget_one(requests) : array_add(requests);

    *added = (struct request){ .host = steal_ptr(&host),
                               .why = steal_ptr(&why),
                               .command = inert(note->command, sizeof note->command),
                               .method = steal_ptr(&method),
                               .path = steal_ptr(&path),
                               .port = note->port,
                               .protocol = (enum gateway_protocol)note->protocol,
                               .reason = (enum reason)note->reason,
                               .without = (enum reason)note->without,
                               .allowed = note->allowed,
                               .failed = failed };
    return added;
}

/* The first ones one by one; then when there are twice as many: whoever asks for ever cannot fill a disk. */
static bool is_to_be_recorded(uint64_t count)
{
    return count <= EACH_RECORDED || (count & (count - 1)) == 0;
}

/* The same for ever new things: the first lines one by one, then at most so many in a time. */
static bool has_room(struct outlet *outlet)
{
    uint64_t now = clock_us();

    if (outlet->lines >= LINES_EACH && now < outlet->line_at + LINE_US) {
        outlet->unsaid++;
        return false;
    }
    outlet->line_at = now;
    return true;
}

const char *request_verdict(const struct request *request)
{
    if (request->failed)
        return "fail";
    return request->allowed ? "allow" : "deny";
}

static int record(struct outlet *outlet, const struct request *request, struct gateway_note *note)
{
    autonode struct node data = { .kind = NODE_MAP };
    autofree char *port = text_format("%u", request->port);
    autofree char *count = text_format("%llu", (unsigned long long)request->count);
    autofree char *method = inert(note->method, sizeof note->method);
    struct error ignored;

    if (!outlet->way.trace || !is_to_be_recorded(request->count) || !has_room(outlet))
        return 0;
    node_add(&data, "host", NODE_STRING, request->host);
    node_add(&data, "port", NODE_NUMBER, port);
    node_add(&data, "protocol", NODE_STRING, gateway_protocol_name(request->protocol));
    node_add(&data, "verdict", NODE_STRING, request_verdict(request));
    node_add(&data, "reason", NODE_STRING, request->why);
    node_add(&data, "type", NODE_STRING, reason_name(request->reason));
    node_add(&data, "count", NODE_NUMBER, count);
    if (*method)
        node_add(&data, "method", NODE_STRING, method);
    if (request->reason == REASON_CACHE && checksum_is(note->checksum.text, NULL))
        node_add(&data, "package", NODE_STRING, note->checksum.text);
    if (outlet->unsaid) {
        autofree char *unsaid = text_format("%llu", (unsigned long long)outlet->unsaid);

        node_add(&data, "left_out", NODE_NUMBER, unsaid);
    }
    if (trace_add(outlet->way.trace, "request", &data, &ignored) < 0)
        return -1;
    outlet->lines++;
    outlet->unsaid = 0;
    return 0;
}

/* For whoever is inside and whose client did not show why. */
static void tell_inside(struct outlet *outlet, const struct request *request)
{
    autotext struct text line = TEXT_NONE;

    if ((request->allowed && !request->failed) || request->count > 1 || outlet->way.network->refused < 0)
        return;
    text_addf(&line, "%s port %u (%s): %s%s%s\n", request->host, request->port,
              gateway_protocol_name(request->protocol), request->why,
              *request->command ? "; to allow it: " : "", request->command);
    if (outlet->written + line.len > REFUSED_BYTES)
        return;
    outlet->written += line.len;
    (void)!write(outlet->way.network->refused, text_string(&line), line.len);
}

/* Who says more than there is has spent everything. */
static void add_up(uint64_t *sum, uint64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum))
        *sum = UINT64_MAX;
}

/* It is remembered here, since a gateway may die. */
static void take_spent(struct outlet *outlet, const struct gateway_note *note)
{
    struct amounts *spent = &outlet->requests.spent;

    if (note->rule && note->rule <= outlet->way.rules->list.len)
        add_up(&outlet->bytes[note->rule - 1], note->spent.bytes);
    if (note->rule)
        return;
    add_up(&spent->bytes, note->spent.bytes);
    add_up(&spent->requests, note->spent.requests);
    add_up(&spent->connections, note->spent.connections);
}

static bool is_sound(struct gateway_note *note)
{
    note->checksum.text[sizeof note->checksum.text - 1] = '\0';
    return note->allowed <= 1 && note->protocol < GATEWAY_PROTOCOLS && note->port <= 65535 &&
           note->reason < REASON_COUNT && note->without < REASON_COUNT && note->saying < GATEWAY_SAYINGS &&
           (note->allowed || note->saying != GATEWAY_FAILED);
}

/* -1: it could not be written down, and must have no effect. */
static int write_down(struct outlet *outlet, struct gateway_note *note)
{
    struct request *request = find_request(&outlet->requests, note);

    request->count++;
    outlet->requests.all += !request->failed; /* that was said when it was asked for */
    request->last = outlet->requests.all;
    if (record(outlet, request, note) < 0)
        return -1;
    tell_inside(outlet, request);
    return 0;
}

/* A package file that is wanted: it is written down that it is given, before it is. */
static void take_want(struct outlet *outlet, struct gateway_note *note)
{
    autoclose int fd = -1;
    struct gateway_noted noted = { .tag = note->tag };

    noted.given = larder_want(&outlet->larder, &note->checksum, note->tag, &fd, &noted.size);
    if (noted.given == GATEWAY_FILE && write_down(outlet, note) < 0)
        noted.given = GATEWAY_NOTHING;
    outlet->requests.cached += noted.given == GATEWAY_FILE;
    (void)wire_put(outlet->channel.fd, &noted, sizeof noted, &fd, noted.given == GATEWAY_NOTHING ? 0 : 1);
}

/* What of one message is written down, which is told when all of it is. */
struct written {
    struct gateway_noted items[GATEWAY_NOTES];
    size_t len;
};

static void tell_written(const struct outlet *outlet, struct written *written)
{
    if (written->len)
        (void)send(outlet->channel.fd, written->items, written->len * sizeof *written->items,
                   MSG_NOSIGNAL | MSG_DONTWAIT);
    written->len = 0;
}

static void take_note(struct outlet *outlet, struct gateway_note *note, struct written *written)
{
    if (!is_sound(note))
        return;
    take_spent(outlet, note);
    switch ((enum gateway_saying)note->saying) {
    case GATEWAY_VERDICT:
    case GATEWAY_FAILED:
        if (note->tag && write_down(outlet, note) == 0)
            written->items[written->len++] = (struct gateway_noted){ .tag = note->tag };
        break;
    case GATEWAY_WANT:
        take_want(outlet, note);
        break;
    case GATEWAY_KEEP:
        larder_keep(&outlet->larder, note->tag);
        break;
    case GATEWAY_DROP:
        larder_drop(&outlet->larder, note->tag);
        break;
    case GATEWAY_WRONG:
        (void)write_down(outlet, note);
        larder_check(&outlet->larder, &note->checksum);
        break;
    case GATEWAY_SAYINGS:
        break;
    }
}

/* --- the gateway --- */

static void watch_doors(struct outlet *outlet, bool open)
{
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        outlet->doors[i].fd = open ? outlet->way.network->sockets[i] : -1;
}

/* What it says at once. */
struct notes {
    struct gateway_note items[GATEWAY_NOTES];
    size_t len;
};

/* Without what came along. */
static int hear(const struct outlet *outlet, struct notes *notes)
{
    int fds[PROTOCOL_FDS_MAX];
    struct error error;
    size_t count;
    struct wire_room room = { notes->items, sizeof *notes->items, GATEWAY_NOTES, 0 };
    int got = wire_take_several(outlet->channel.fd, &room, fds, &count, &error);

    notes->len = room.len;
    for (size_t i = 0; got == WIRE_MESSAGE && i < count; i++)
        close(fds[i]);
    return got;
}

/* Of what it said before it died only this counts: nobody waits for the rest. */
static void take_rest(struct outlet *outlet)
{
    static struct notes notes;

    while (outlet->channel.fd >= 0 && hear(outlet, &notes) == WIRE_MESSAGE)
        for (size_t i = 0; i < notes.len; i++)
            if (is_sound(&notes.items[i]))
                take_spent(outlet, &notes.items[i]);
}

static void end_gateway(struct outlet *outlet)
{
    if (outlet->pid > 0) {
        kill(outlet->pid, SIGKILL);
        while (waitpid(outlet->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    outlet->pid = 0;
    take_rest(outlet);
    own_close(&outlet->channel.fd);
    outlet->channel.fd = -1;
    larder_drop_all(&outlet->larder);
}

/* The next one is started by whoever comes next; but not at once, if this one did not live long. */
static void mourn(struct outlet *outlet)
{
    const struct itimerspec after = { .it_value = { RESTART_MS / 1000, RESTART_MS % 1000 * 1000000L } };

    end_gateway(outlet);
    outlet->died = true;
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

    static struct notes notes;
    struct written written = { .len = 0 };

    (void)revents;
    for (size_t taken = 0; taken < NOTES_AT_A_TIME; taken += notes.len) {
        int got = hear(outlet, &notes);

        if (got == WIRE_NOTHING)
            return;
        if (got != WIRE_MESSAGE) {
            mourn(outlet);
            return;
        }
        for (size_t at = 0; at < notes.len; at++)
            take_note(outlet, &notes.items[at], &written);
        tell_written(outlet, &written);
    }
}

/* In a file that has no name. */
static int write_brief(const struct outlet *outlet)
{
    autotext struct text text = TEXT_NONE;
    struct rule_list hints = RULE_LIST_NONE;
    struct brief brief = { .generation = outlet->generation,
                           .died = outlet->died,
                           .record_secrets = outlet->way.reel->secrets,
                           .spent = outlet->requests.spent,
                           .bytes = outlet->bytes,
                           .hints = &hints };
    struct rules rules = *outlet->way.rules;

    if (outlet->larder.dir < 0)
        rules.packages = 0;
    if (outlet->way.stays)
        (void)snprintf(brief.sandbox, sizeof brief.sandbox, "%.12s", outlet->way.stays);
    if (outlet->way.registries)
        registries_hints(outlet->way.registries, &hints);
    brief_write(&brief, &rules, &text);
    rule_list_free(&hints);
    int fd = sys_sealed_memfd("cove-brief", text.data, text.len);

    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Of a sanitizer somebody wants to hear. */
#ifdef COVE_SANITIZED
#define LAST_WORDS(nothing) STDERR_FILENO
#else
#define LAST_WORDS(nothing) (nothing)
#endif

static pid_t start_program(const struct outlet *outlet, int channel)
{
    static const char *const argv[] = { "cove-gateway", NULL };
    autoclose int brief = write_brief(outlet), authority = trust_authority(outlet->way.dir),
                  roots = trust_roots();
    autoclose int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int fds[GATEWAY_FDS] = { nothing,
                             nothing,
                             LAST_WORDS(nothing),
                             [GATEWAY_CHANNEL] = channel,
                             [GATEWAY_BRIEF] = brief,
                             [GATEWAY_AUTHORITY] = authority,
                             [GATEWAY_ROOTS] = roots,
                             [GATEWAY_RECORD] = outlet->way.reel->record,
                             [GATEWAY_TAPE] = outlet->way.reel->tape };

    memcpy(&fds[GATEWAY_SOCKETS], outlet->way.network->sockets, sizeof outlet->way.network->sockets);
    return brief < 0 || nothing < 0 ? -1 : program_start(argv, fds, GATEWAY_FDS);
}

/* Only where a registry is allowed that says what its files are. */
static void open_larder(struct outlet *outlet)
{
    const struct rules *rules = outlet->way.rules;
    bool any = false;

    for (size_t i = 0; i < rules->list.len; i++)
        any |= rules->list.items[i].index != NULL;
    if (outlet->larder.dir < 0 && any)
        larder_open(&outlet->larder, outlet->way.dir, rules->packages);
}

/* Of the channel only our end never waits. */
static void start(struct outlet *outlet)
{
    int ends[2];

    outlet->started = clock_us();
    watch_doors(outlet, false);
    open_larder(outlet);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        mourn(outlet);
        return;
    }
    outlet->channel.fd = ends[0];
    outlet->pid = fcntl(ends[0], F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -1 : start_program(outlet, ends[1]);
    close(ends[1]);
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

/* Without it there is a loopback only, which is an error for whoever wants more. */
static int has_sockets(const struct way_out *way, struct error *err)
{
    const struct network *network = way->network;
    const struct rules *rules = way->rules;
    bool wanted = network_is_public(rules->mode) || (rules->mode == NETWORK_RULES && rules->list.len) ||
                  way->reel->tape >= 0;

    if (network->sockets[NETWORK_UDP] >= 0)
        return 1;
    if (!wanted || network->lacking.kind == ERROR_NONE)
        return 0;
    *err = network->lacking;
    err->kind = ERROR_UNSUPPORTED;
    error_while(err, "make a network that rules hold for");
    return error_hint(err, "without rules (--network none) the sandbox needs none");
}

int outlet_begin(struct outlet *outlet, struct loop *loop, const struct way_out *way, struct error *err)
{
    const struct network *network = way->network;
    const struct rules *rules = way->rules;
    int has = has_sockets(way, err);

    if (has <= 0)
        return has;
    *outlet = (struct outlet){ .loop = loop, .way = *way, .larder = LARDER_NONE };
    outlet->bytes = memory_zero(sizeof *outlet->bytes * (rules->list.len + 1));
    outlet->requests.budget = rules->budget;
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

/* It writes the rest of the record, says what became of package files, and goes by itself; not if it takes
 * long. */
static void let_finish(const struct outlet *outlet)
{
    struct pollfd gone = { outlet->channel.fd, 0, 0 };

    if (shutdown(outlet->channel.fd, SHUT_WR) < 0)
        return;
    while (poll(&gone, 1, FINISH_MS) < 0 && errno == EINTR)
        continue;
}

/* What rules had counted begins anew: they are others. */
void outlet_change(struct outlet *outlet, struct rules *rules)
{
    if (outlet->channel.fd >= 0)
        channel_ready(outlet, POLLIN); /* what it had said */
    end_gateway(outlet);
    outlet->died = false;
    larder_close(&outlet->larder);
    rules_free(&outlet->changed);
    outlet->changed = *rules;
    *rules = RULES_NONE;
    outlet->way.rules = &outlet->changed;
    free(outlet->bytes);
    outlet->bytes = memory_zero(sizeof *outlet->bytes * (outlet->changed.list.len + 1));
    outlet->requests.budget = outlet->changed.budget;
    watch_doors(outlet, true);
}

void outlet_end(struct outlet *outlet)
{
    if (!outlet->loop)
        return;
    if (outlet->channel.fd >= 0)
        channel_ready(outlet, POLLIN); /* what it had said */
    if (outlet->pid && (outlet->way.reel->record >= 0 || larder_waits(&outlet->larder)))
        let_finish(outlet);
    if (outlet->channel.fd >= 0)
        channel_ready(outlet, POLLIN); /* its last words */
    if (outlet->pid)
        mourn(outlet);
    larder_close(&outlet->larder);
    watch_doors(outlet, false);
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        loop_remove(outlet->loop, &outlet->doors[i]);
    loop_remove(outlet->loop, &outlet->channel);
    loop_remove(outlet->loop, &outlet->timer);
    own_close(&outlet->timer.fd);
    outlet->timer.fd = -1;
    free(outlet->bytes);
    outlet->bytes = NULL;
    rules_free(&outlet->changed);
    outlet->loop = NULL;
}
