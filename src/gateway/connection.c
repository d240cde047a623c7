/* One connection from inside, from its first byte to its last.
 *
 *     READING -> NOTING -> LOOKING UP -> CONNECTING -> RELAYING
 *                      \-> ANSWERING (a refusal), or a reset
 *
 * A client that was silent and yet speaks before its server does is READING again.
 *
 * Should: tell from the address who it is for, from the first bytes what it is, and let it through only if both
 * and the rules agree; wait for the keeper before anything has an effect; hold back whoever sends faster than
 * the other side takes. Must not: let an address be dialled that was not judged; pass on a byte of a request
 * that was not; keep more of a connection than its bounds. */

#include "gateway/gate.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/text.h"
#include "net/head.h"
#include "net/hello.h"

#include <errno.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EARLY_MAX = HELLO_MAX + 1024, /* of what a client says before it is known what it is */
    CHUNK = 65536,
    ROUNDS = 8, /* of one side, before others have their turn */
    ACCEPT_AT_A_TIME = 64,
    DNS_TCP_MAX = 4096,
};

/* How long things may take, in microseconds. */
static const uint64_t refused_silent = 40000;  /* a refused client says nothing: it waits for the other side */
static const uint64_t allowed_silent = 300000; /* an allowed one */
static const uint64_t early_patience = 10000000; /* until its first message is whole */
static const uint64_t note_patience = 10000000;
static const uint64_t connect_patience = 5000000; /* to one address */
static const uint64_t answer_patience = 5000000;
static const uint64_t idle_patience = 3600000000;

enum state { READING, ASKING, NOTING, LOOKING_UP, CONNECTING, RELAYING, ANSWERING };

/* One end, and what is still to be written to it. */
struct side {
    struct event_source source; /* the first member */
    struct connection *connection;
    char *held;
    size_t held_at, held_len;
    bool ended;     /* it will say nothing more */
    bool told;      /* that the other one will not */
    bool connected; /* of the server's side */
};

/* What is known before it is let through; freed then, or when the first byte comes if there was none. */
struct early {
    struct verdict verdict;
    enum gateway_protocol protocol;
    char method[HEAD_METHOD_MAX];
    struct text said;    /* by the client, so far */
    struct text request; /* of HTTP, as it goes on; its head is not what the client sent */
    size_t head_size;    /* of the client's, in `said` */
    struct address addresses[LOOKUP_ADDRESSES];
    size_t addresses_len, at;
    struct lookup *lookup;
};

struct connection {
    struct connection *next, **from;
    struct side client, server;
    struct early *early;
    struct body body;
    bool bounded; /* what the client may send is `body` */
    bool noted;   /* a verdict was sent to the keeper */
    enum state state;
    uint64_t tag, until; /* until: in microseconds */
    uint16_t port;
    bool closed;
};

static char chunk[CHUNK];

/* --- the end --- */

static void close_side(struct side *side)
{
    events_close(&side->source);
    free(side->held);
    side->held = NULL;
}

static void drop_early(struct connection *connection)
{
    struct early *early = connection->early;

    if (!early)
        return;
    lookup_end(early->lookup);
    text_free(&early->said);
    text_free(&early->request);
    free(early);
    connection->early = NULL;
}

static void watch_doors(bool open)
{
    for (size_t i = NETWORK_TCP; i < NETWORK_SOCKETS; i += 2)
        (void)events_change(the_gate.loop, &the_gate.sockets[i], open ? EPOLLIN : 0);
    the_gate.full = !open;
}

static void close_connection(struct connection *connection)
{
    struct gate *gate = &the_gate;

    if (connection->closed)
        return;
    connection->closed = true;
    close_side(&connection->client);
    close_side(&connection->server);
    drop_early(connection);
    *connection->from = connection->next;
    if (connection->next)
        connection->next->from = connection->from;
    connection->next = gate->buried;
    gate->buried = connection;
    gate->connections_len--;
    if (gate->full)
        watch_doors(true);
}

void connections_bury(struct gate *gate)
{
    while (gate->buried) {
        struct connection *dead = gate->buried;

        gate->buried = dead->next;
        free(dead);
    }
}

/* So that the other side hears of it at once, and does not take it for the end of an answer. */
static void reset(struct connection *connection)
{
    const struct linger at_once = { 1, 0 };

    if (connection->client.source.fd >= 0)
        (void)setsockopt(connection->client.source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (connection->server.source.fd >= 0)
        (void)setsockopt(connection->server.source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close_connection(connection);
}

/* --- writing --- */

/* What is not taken now is held.  False: the other side is gone. */
static bool put(struct side *side, const char *bytes, size_t len)
{
    size_t done = 0;

    while (side->held_len == 0 && done < len) {
        ssize_t sent = send(side->source.fd, bytes + done, len - done, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        done += (size_t)sent;
    }
    if (done == len)
        return true;
    side->held = memory_resize(side->held, side->held_at + side->held_len + len - done);
    memcpy(side->held + side->held_at + side->held_len, bytes + done, len - done);
    side->held_len += len - done;
    return true;
}

static bool put_held(struct side *side)
{
    while (side->held_len) {
        ssize_t sent = send(side->source.fd, side->held + side->held_at, side->held_len, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN;
        side->held_at += (size_t)sent;
        side->held_len -= (size_t)sent;
    }
    free(side->held);
    side->held = NULL;
    side->held_at = 0;
    return true;
}

/* --- relaying --- */

static struct side *other_side(struct side *side)
{
    struct connection *connection = side->connection;

    return side == &connection->client ? &connection->server : &connection->client;
}

/* How much of it may go on; -1: it is not what was allowed. */
static int64_t judged(const struct side *side, const char *bytes, size_t len)
{
    struct connection *connection = side->connection;

    if (side != &connection->client || !connection->bounded)
        return (int64_t)len;
    return body_take(&connection->body, bytes, len);
}

static bool may_say_more(const struct side *side)
{
    const struct connection *connection = side->connection;

    return !side->ended && !(side == &connection->client && connection->bounded && connection->body.over);
}

/* False: the connection is over. */
static bool pass_on(struct side *side)
{
    struct side *to = other_side(side);

    for (int round = 0; round < ROUNDS && may_say_more(side) && to->held_len == 0; round++) {
        ssize_t got = recv(side->source.fd, chunk, sizeof chunk, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN;
        side->connection->until = clock_us() + idle_patience;
        if (got == 0) {
            side->ended = true;
            return true;
        }
        int64_t good = judged(side, chunk, (size_t)got);

        if (good < 0 || !put(to, chunk, (size_t)good))
            return false;
        if (got < (ssize_t)sizeof chunk / 4)
            return true;
    }
    return true;
}

/* Whoever has heard everything is told that no more will come.  A client whose one request is through keeps its
 * connection for the answer. */
static void pass_end(struct side *side)
{
    struct side *to = other_side(side);

    if (!side->ended || to->held_len || to->told)
        return;
    to->told = true;
    (void)shutdown(to->source.fd, SHUT_WR);
}

static void watch_side(struct side *side)
{
    uint32_t events = 0;

    if (may_say_more(side) && other_side(side)->held_len == 0)
        events |= EPOLLIN;
    if (side->held_len)
        events |= EPOLLOUT;
    (void)events_change(the_gate.loop, &side->source, events);
}

/* What is still said to us is read and forgotten: closing before would make a reset of it, and what we have
 * written would be lost on its way. */
static void linger(struct connection *connection)
{
    struct side *client = &connection->client;

    connection->state = ANSWERING;
    connection->until = clock_us() + (client->held_len ? idle_patience : answer_patience);
    events_close(&connection->server.source);
    if (client->held_len == 0 && !client->told) {
        client->told = true;
        (void)shutdown(client->source.fd, SHUT_WR);
    }
    (void)events_change(the_gate.loop, &client->source, EPOLLIN | (client->held_len ? EPOLLOUT : 0U));
}

static bool has_spoken(const struct side *side)
{
    char byte;

    return recv(side->source.fd, &byte, sizeof byte, MSG_PEEK) > 0;
}

static void read_early(struct connection *connection);

/* What it says is judged as if it had said it at once, and its server is dialled anew. */
static void begin_again(struct connection *connection)
{
    events_close(&connection->server.source);
    connection->early->addresses_len = connection->early->at = 0;
    connection->state = READING;
    (void)events_change(the_gate.loop, &connection->client.source, EPOLLIN);
    read_early(connection);
}

static void relay(struct connection *connection)
{
    struct side *client = &connection->client, *server = &connection->server;

    if (connection->early && has_spoken(server)) {
        drop_early(connection);
    } else if (connection->early && has_spoken(client)) {
        begin_again(connection);
        return;
    }
    if (!put_held(client) || !put_held(server) || !pass_on(client) || !pass_on(server)) {
        reset(connection);
        return;
    }
    pass_end(client);
    pass_end(server);
    if (server->ended && client->ended && client->held_len == 0)
        close_connection(connection);
    else if (server->ended && connection->bounded) /* everything to the one request there was is said */
        linger(connection);
    if (connection->closed || connection->state != RELAYING)
        return;
    watch_side(client);
    watch_side(server);
}

/* --- answers of our own --- */

static void answer(struct connection *connection, const char *status, const char *body)
{
    autotext struct text text = TEXT_NONE;

    text_addf(&text,
              "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
              "Cache-Control: no-store\r\nX-Cove: refused\r\nConnection: close\r\n\r\n%s",
              status, strlen(body), body);
    if (put(&connection->client, text_string(&text), text.len))
        linger(connection);
    else
        reset(connection);
}

static void answering(struct connection *connection)
{
    struct side *client = &connection->client;

    if (!put_held(client)) {
        reset(connection);
        return;
    }
    if (client->held_len == 0 && !client->told) {
        client->told = true;
        connection->until = clock_us() + answer_patience;
        (void)shutdown(client->source.fd, SHUT_WR);
        (void)events_change(the_gate.loop, &client->source, EPOLLIN);
    }
    for (int round = 0; round < ROUNDS; round++) {
        ssize_t got = recv(client->source.fd, chunk, sizeof chunk, 0);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got == 0 && client->held_len) { /* it says no more, but still listens */
            (void)events_change(the_gate.loop, &client->source, EPOLLOUT);
            return;
        }
        if (got <= 0) {
            close_connection(connection);
            return;
        }
    }
}

static void explain(struct connection *connection)
{
    const struct verdict *verdict = &connection->early->verdict;
    autotext struct text status = TEXT_NONE, body = TEXT_NONE;

    text_addf(&status, "403 Refused by Cove: %s%s%s", verdict->why, verdict->command[0] ? "; " : "",
              verdict->command);
    text_addf(&body, "Cove refused this request: %s.\n", verdict->why);
    if (verdict->command[0])
        text_addf(&body, "To allow it, on the host: %s\n", verdict->command);
    answer(connection, text_string(&status), text_string(&body));
}

/* As its client understands it best. */
static void refuse(struct connection *connection)
{
    if (connection->early->protocol == GATEWAY_HTTP)
        explain(connection);
    else
        reset(connection);
}

/* --- the keeper --- */

static bool send_note(struct connection *connection)
{
    const struct early *early = connection->early;
    const struct verdict *verdict = &early->verdict;
    struct gateway_note note = { .tag = connection->tag,
                                 .allowed = verdict->allowed,
                                 .protocol = early->protocol,
                                 .port = connection->port };

    (void)snprintf(note.host, sizeof note.host, "%s", verdict->host.text);
    (void)snprintf(note.method, sizeof note.method, "%s", early->method);
    (void)snprintf(note.why, sizeof note.why, "%s", verdict->why);
    (void)snprintf(note.command, sizeof note.command, "%s", verdict->command);
    return send(the_gate.channel.fd, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof note;
}

/* What it is, is known by now; nothing is done before the keeper knows it too.  A keeper that is slow is asked
 * again (connections_tend). */
static void note(struct connection *connection)
{
    connection->state = NOTING;
    connection->tag = ++the_gate.tags;
    connection->until = clock_us() + note_patience;
    connection->noted = send_note(connection);
    (void)events_change(the_gate.loop, &connection->client.source, 0);
}

static void __attribute__((format(printf, 2, 3))) deny(struct connection *connection, const char *format, ...)
{
    struct verdict *verdict = &connection->early->verdict;
    va_list list;

    va_start(list, format);
    (void)vsnprintf(verdict->why, sizeof verdict->why, format, list);
    va_end(list);
    verdict->allowed = false;
    verdict->command[0] = '\0';
    note(connection);
}

/* --- to the outside --- */

static void unreachable(struct connection *connection, const char *why)
{
    autotext struct text body = TEXT_NONE;

    if (connection->early->protocol != GATEWAY_HTTP) {
        reset(connection);
        return;
    }
    text_addf(&body, "Cove could not reach %s: %s.\n", connection->early->verdict.host.text, why);
    answer(connection, "502 Not reached", text_string(&body));
}

/* The rest of what was read early belongs to the body, or to whatever the protocol is. */
static void begin_relay(struct connection *connection)
{
    struct early *early = connection->early;
    struct side *server = &connection->server;
    const char *rest = early->said.data + early->head_size;
    size_t len = early->said.len - early->head_size;
    int64_t good = connection->bounded ? body_take(&connection->body, rest, len) : (int64_t)len;
    bool sent = good >= 0 && put(server, text_string(&early->request), early->request.len) &&
                put(server, rest, (size_t)good);

    if (early->said.len)
        drop_early(connection);
    connection->state = RELAYING;
    connection->until = clock_us() + idle_patience;
    if (sent)
        relay(connection);
    else
        reset(connection);
}

static socklen_t fill_address(const struct address *address, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){ 0 };
    if (address->len == 4) {
        *four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&four->sin_addr, address->bytes, sizeof four->sin_addr);
        return sizeof *four;
    }
    *six = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memcpy(&six->sin6_addr, address->bytes, sizeof six->sin6_addr);
    return sizeof *six;
}

static void set_prompt(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void side_ready(struct event_source *source, uint32_t events);

static bool dial(struct connection *connection, const struct address *address)
{
    struct sockaddr_storage to;
    socklen_t size = fill_address(address, connection->port, &to);
    struct side *server = &connection->server;

    events_close(&server->source);
    server->source =
        (struct event_source){ .fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                               .ready = side_ready };
    if (server->source.fd < 0)
        return false;
    set_prompt(server->source.fd);
    connection->until = clock_us() + connect_patience;
    if (connect(server->source.fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
        return false;
    return events_add(the_gate.loop, &server->source, EPOLLOUT) == 0;
}

/* The first that takes us, of those that may be dialled. */
static void connect_next(struct connection *connection)
{
    struct early *early = connection->early;

    connection->state = CONNECTING;
    while (early->at < early->addresses_len)
        if (dial(connection, &early->addresses[early->at++]))
            return;
    unreachable(connection, "no address of it answers");
}

/* Asked of the kernel, and nothing is sent: whoever goes to an address of this machine has that one as its own.
 */
static bool is_of_this_machine(const struct address *address)
{
    struct sockaddr_storage to, from = { 0 };
    socklen_t size = fill_address(address, 9, &to), from_size = sizeof from;
    autoclose int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return true;
    if (connect(fd, (struct sockaddr *)&to, size) < 0)
        return false; /* nor would it be reached */
    if (getsockname(fd, (struct sockaddr *)&from, &from_size) < 0)
        return true;
    struct address own = from.ss_family == AF_INET
                             ? address_from(&((struct sockaddr_in *)&from)->sin_addr, 4)
                             : address_from(&((struct sockaddr_in6 *)&from)->sin6_addr, 16);

    return address_same(&own, address);
}

/* Also where this machine got the address only after we had looked for its addresses. */
static bool may_be_dialled(const struct verdict *allowed, const struct address *address,
                           struct verdict *refused)
{
    struct verdict by_class = *allowed;

    if (!rules_upstream(the_gate.rules, allowed, address, refused))
        return false;
    if ((allowed->rule && allowed->pinned.len) || !is_of_this_machine(address))
        return true;
    rules_add_own(the_gate.rules, address);
    by_class.pinned = ADDRESS_NONE;
    return rules_upstream(the_gate.rules, &by_class, address, refused);
}

/* Only what passes is kept.  If nothing does, that is a refusal, and noted as one. */
static void judge_addresses(struct connection *connection, const struct address *addresses, size_t len)
{
    struct early *early = connection->early;
    struct verdict allowed = early->verdict, refused;
    bool any = false;

    for (size_t i = 0; i < len; i++) {
        if (may_be_dialled(&allowed, &addresses[i], &refused) || gate_leaves_out("upstream")) {
            early->addresses[early->addresses_len++] = addresses[i];
            continue;
        }
        early->verdict = refused;
        any = true;
    }
    if (early->addresses_len) {
        early->verdict = allowed;
        connect_next(connection);
    } else if (any) {
        early->verdict.allowed = false;
        note(connection);
    } else {
        unreachable(connection, "its name has no address");
    }
}

static void looked_up(void *owner, const struct address *addresses, size_t len)
{
    struct connection *connection = owner;

    connection->early->lookup = NULL;
    judge_addresses(connection, addresses, len);
}

static void go_out(struct connection *connection)
{
    struct early *early = connection->early;
    const struct verdict *verdict = &early->verdict;

    connection->state = LOOKING_UP;
    connection->until = UINT64_MAX; /* a lookup comes to its own end */
    if (verdict->pinned.len)
        judge_addresses(connection, &verdict->pinned, 1);
    else if (hostname_is_address(&verdict->host))
        judge_addresses(connection, &verdict->host.address, 1);
    else {
        struct lookup *lookup = lookup_begin(&the_gate.resolver, verdict->host.text, looked_up, connection);

        if (connection->early && lookup)
            connection->early->lookup = lookup;
    }
}

void connections_noted(struct gate *gate, uint64_t tag)
{
    for (struct connection *at = gate->connections; at; at = at->next)
        if (at->state == NOTING && at->noted && at->tag == tag) {
            if (at->early->verdict.allowed)
                go_out(at);
            else
                refuse(at);
            return;
        }
}

/* --- the first bytes --- */

static bool is_web_port(uint16_t port)
{
    return port == 80 || port == 443;
}

/* -1: cannot be told yet. */
static int looks_like_http(const struct early *early)
{
    size_t at = 0;

    if (early->said.data[0] == '\r' || early->said.data[0] == '\n')
        return 1; /* servers pass over empty lines before a request; we do not take it */
    while (at < early->said.len && at <= 16 && early->said.data[at] >= 'A' && early->said.data[at] <= 'Z')
        at++;
    if (at == early->said.len && at <= 16)
        return -1;
    return at >= 3 && early->said.data[at] == ' ';
}

static void take_hello(struct connection *connection)
{
    static unsigned char scratch[HELLO_MAX];
    struct early *early = connection->early;
    struct verdict *verdict = &early->verdict;
    struct hostname named;
    const char *name;
    size_t len;
    enum hello hello = hello_read((unsigned char *)early->said.data, early->said.len, scratch, &name, &len);

    if (hello == HELLO_MORE && early->said.len < EARLY_MAX)
        return;
    if (hello != HELLO_WHOLE)
        deny(connection, "the first TLS message to %s cannot be read", verdict->host.text);
    else if (verdict->inspect)
        deny(connection, "the rule for %s names methods or paths, and TLS is not looked into",
             verdict->host.text);
    else if (len == 0 && !hostname_is_address(&verdict->host))
        deny(connection, "a TLS connection to %s does not say whom it is for", verdict->host.text);
    else if (len && (hostname_read(name, len, &named) || strcmp(named.text, verdict->host.text) != 0) &&
             !gate_leaves_out("agreement"))
        deny(connection, "a TLS connection to %s says that it is for somebody else", verdict->host.text);
    else
        note(connection);
}

static bool is_for(const struct head *head, const struct verdict *verdict, uint16_t port)
{
    struct head_part host;
    struct hostname named;
    uint16_t its_port = 80;

    return head_authority(head->host, &host, &its_port) && its_port == port &&
           !hostname_read(host.at, host.len, &named) && strcmp(named.text, verdict->host.text) == 0;
}

/* Once more with what it wants, and then as it goes on. */
static void judge_request(struct connection *connection, const struct head *head)
{
    struct early *early = connection->early;
    struct verdict *verdict = &early->verdict;
    autotext struct text path = TEXT_NONE, host = TEXT_NONE;

    (void)snprintf(early->method, sizeof early->method, "%.*s", (int)head->method.len, head->method.at);
    text_add_bytes(&path, head->path.at, head->path.len);
    if (verdict->allowed && !is_for(head, verdict, connection->port) && !gate_leaves_out("agreement")) {
        deny(connection, "a request to %s port %u says that it is for somebody else", verdict->host.text,
             connection->port);
        return;
    }
    autofree char *asked = text_copy(verdict->host.text);

    rules_verdict(the_gate.rules,
                  &(struct question){ .host = asked,
                                      .host_len = strlen(asked),
                                      .port = connection->port,
                                      .method = early->method,
                                      .path = text_string(&path) },
                  verdict);
    if (gate_leaves_out("rules"))
        verdict->allowed = true;
    bool six = verdict->host.address.len == 16;

    text_addf(&host, six ? "[%s]" : "%s", asked);
    if (connection->port != 80)
        text_addf(&host, ":%u", connection->port);
    head_write(head, text_string(&host), &early->request);
    early->head_size = head->size;
    body_begin(&connection->body, head);
    connection->bounded = true;
    note(connection);
}

static void take_head(struct connection *connection)
{
    struct early *early = connection->early;
    static struct head head; /* large, and used here only */
    const char *why;
    enum head_read read = head_read(early->said.data, early->said.len, &head, &why);

    early->protocol = GATEWAY_HTTP;
    if (read == HEAD_WHOLE)
        judge_request(connection, &head);
    else if (read == HEAD_BAD && early->verdict.allowed)
        deny(connection, "a request to %s is not taken: %s", early->verdict.host.text, why);
    else if (read == HEAD_BAD)
        note(connection);
}

/* Something else than TLS or HTTP: passed on to ports that a rule names. */
static void take_other(struct connection *connection)
{
    const struct verdict *verdict = &connection->early->verdict;

    if (verdict->allowed && is_web_port(connection->port))
        deny(connection, "what was sent to %s port %u is neither TLS nor HTTP", verdict->host.text,
             connection->port);
    else if (verdict->allowed && verdict->inspect)
        deny(connection, "the rule for %s names methods or paths, and this is not HTTP", verdict->host.text);
    else
        note(connection);
}

static void take_early(struct connection *connection)
{
    struct early *early = connection->early;
    int http;

    if (early->said.len == 0)
        return;
    if (early->said.data[0] == 22) {
        early->protocol = GATEWAY_TLS;
        if (early->verdict.allowed)
            take_hello(connection);
        else
            note(connection);
        return;
    }
    http = looks_like_http(early);
    if (http > 0)
        take_head(connection);
    else if (http == 0)
        take_other(connection);
}

/* False: there is nothing new. */
static bool hear_more(struct connection *connection, size_t most)
{
    struct early *early = connection->early;
    ssize_t got = recv(connection->client.source.fd, chunk, most - early->said.len, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) { /* it went away, or has said everything and that was not enough */
        close_connection(connection);
        return false;
    }
    text_add_bytes(&early->said, chunk, (size_t)got);
    return true;
}

static void read_early(struct connection *connection)
{
    bool first = connection->early->said.len == 0;

    if (!hear_more(connection, EARLY_MAX))
        return;
    if (first)
        connection->until = clock_us() + early_patience;
    take_early(connection);
}

/* --- questions by TCP --- */

/* One whole message that was said; false: there is none. */
static bool answer_question(struct connection *connection)
{
    struct text *said = &connection->early->said;
    const unsigned char *bytes = (unsigned char *)said->data;
    unsigned char out[2 + DNS_UDP_MAX];
    size_t len = said->len < 2 ? 0 : (size_t)bytes[0] << 8 | bytes[1];

    if (said->len < 2 || said->len < len + 2)
        return false;
    size_t size = question_answer(&the_gate, bytes + 2, len, out + 2);

    out[0] = (unsigned char)(size >> 8);
    out[1] = (unsigned char)size;
    said->len -= len + 2;
    memmove(said->data, said->data + len + 2, said->len);
    if (size && put(&connection->client, (char *)out, size + 2) && put_held(&connection->client) &&
        connection->client.held_len < DNS_TCP_MAX)
        return true;
    reset(connection);
    return false;
}

static void read_questions(struct connection *connection)
{
    if (!hear_more(connection, DNS_TCP_MAX))
        return;
    connection->until = clock_us() + early_patience;
    while (answer_question(connection))
        continue;
    if (!connection->closed && connection->early->said.len == DNS_TCP_MAX)
        reset(connection); /* longer than any question is */
}

/* --- all of them --- */

static void dialled(struct connection *connection)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(connection->server.source.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error) {
        connect_next(connection);
        return;
    }
    begin_relay(connection);
}

static void side_ready(struct event_source *source, uint32_t events)
{
    struct side *side = (struct side *)source;
    struct connection *connection = side->connection;

    (void)events;
    if (connection->closed)
        return;
    if (connection->state == READING)
        read_early(connection);
    else if (connection->state == ASKING)
        read_questions(connection);
    else if (connection->state == ANSWERING)
        answering(connection);
    else if (connection->state == RELAYING)
        relay(connection);
    else if (connection->state == CONNECTING && side == &connection->server)
        dialled(connection);
}

static void silent(struct connection *connection)
{
    struct early *early = connection->early;

    if (early->said.len && early->verdict.allowed)
        deny(connection, "what was sent to %s did not become a request in time", early->verdict.host.text);
    else
        take_other(connection);
}

static void time_is_up(struct connection *connection)
{
    if (connection->state == READING)
        silent(connection);
    else if (connection->state == CONNECTING)
        connect_next(connection);
    else if (connection->state == ANSWERING && connection->client.held_len == 0)
        close_connection(connection); /* what it has not read yet, the kernel keeps for it */
    else
        reset(connection);
}

void connections_tend(struct gate *gate, uint64_t now)
{
    if (gate->full && gate->connections_len < gate->connections_max)
        watch_doors(true);
    for (struct connection *at = gate->connections, *next; at; at = next) {
        next = at->next;
        if (at->state == NOTING && !at->noted)
            at->noted = send_note(at);
        else if (at->state == LOOKING_UP && at->early->lookup)
            (void)lookup_tend(at->early->lookup, now);
        else if (now >= at->until)
            time_is_up(at);
    }
}

/* Who it was for before it was turned to us. */
static bool find_target(int fd, int family, struct address *address, uint16_t *port)
{
    struct sockaddr_in6 six = { 0 };
    struct sockaddr_in four = { 0 };
    socklen_t size = family == AF_INET ? sizeof four : sizeof six;

    if (family == AF_INET) {
        if (getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, &four, &size) < 0)
            return false;
        *address = address_from(&four.sin_addr, sizeof four.sin_addr);
        *port = ntohs(four.sin_port);
        return true;
    }
    if (getsockopt(fd, IPPROTO_IPV6, SO_ORIGINAL_DST, &six, &size) < 0)
        return false;
    *address = address_from(&six.sin6_addr, sizeof six.sin6_addr);
    *port = ntohs(six.sin6_port);
    return true;
}

/* False: there is nobody it could be for, and nothing to explain. */
static bool identify(struct connection *connection, const struct address *address)
{
    struct early *early = connection->early;
    char text[ADDRESS_SIZE];
    const char *name = text;
    enum pool_kind kind;

    if (address_class(address) == ADDRESS_LOOPBACK)
        return false;
    if (pool_find(&the_gate.pool, address, &kind, &name) == POOL_UNKNOWN)
        return false;
    if (name == text)
        address_show(address, text);
    rules_verdict(the_gate.rules,
                  &(struct question){ .host = name, .host_len = strlen(name), .port = connection->port },
                  &early->verdict);
    if (gate_leaves_out("rules"))
        early->verdict.allowed = true;
    return true;
}

static void admit(int fd, int family)
{
    struct gate *gate = &the_gate;
    struct connection *connection = memory_zero(sizeof *connection);
    struct address address;

    *connection = (struct connection){ .next = gate->connections,
                                       .from = &gate->connections,
                                       .client = { { fd, 0, side_ready }, .connection = connection },
                                       .server = { { -1, 0, side_ready }, .connection = connection },
                                       .early = memory_zero(sizeof *connection->early) };
    if (connection->next)
        connection->next->from = &connection->next;
    gate->connections = connection;
    if (++gate->connections_len >= gate->connections_max)
        watch_doors(false);
    set_prompt(fd);
    if (!find_target(fd, family, &address, &connection->port) ||
        events_add(gate->loop, &connection->client.source, EPOLLIN) < 0) {
        reset(connection);
        return;
    }
    connection->until = clock_us() + early_patience;
    if (connection->port == 53) {
        connection->state = ASKING;
        return;
    }
    if (!identify(connection, &address)) {
        reset(connection);
        return;
    }
    connection->until = clock_us() + (connection->early->verdict.allowed ? allowed_silent : refused_silent);
    if (connection->early->verdict.allowed && is_web_port(connection->port))
        connection->until = clock_us() + early_patience;
    read_early(connection);
}

void connections_ready(struct event_source *source, uint32_t events)
{
    int family = source == &the_gate.sockets[NETWORK_TCP] ? AF_INET : AF_INET6;

    (void)events;
    for (int i = 0; i < ACCEPT_AT_A_TIME && !the_gate.full; i++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        int fd = accept4(source->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            admit(fd, family);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            watch_doors(false); /* until somebody leaves */
        if (fd < 0)
            return;
    }
}
