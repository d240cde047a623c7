/* Whom a request is for, and whether it may go there. */

#include "gateway/connection.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <stdio.h>

static uint16_t usual_port(const struct connection *connection)
{
    return side_is_secure(&connection->client) ? 443 : 80;
}

/* Whether it came to us as to a proxy, and is for whom it names. */
static bool is_open_to_all(const struct connection *connection)
{
    return connection->is_proxys && !connection->tunnelled;
}

/* As RFC 9110 says, 9.2.1.  In any other spelling it may be anything. */
static bool is_harmless(struct head_part method)
{
    static const char *const names[] = { "GET", "HEAD", "OPTIONS" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (part_is_exactly(method, names[i]))
            return true;
    return false;
}

static void begin(struct exchange *exchange, const struct head *head)
{
    const struct fields *fields = &head->fields;

    text_clear(&exchange->request);
    exchange->old = head->old;
    exchange->last = head->old || fields->close;
    exchange->to_head = part_is(head->method, "HEAD");
    exchange->expects = head->expects;
    exchange->websocket = head->websocket;
    exchange->alone = head->alone;
    exchange->harmless = is_harmless(head->method);
    exchange->interim = 0;
    exchange->sent = exchange->begun = exchange->answered = exchange->deaf = false;
    body_begin(&exchange->body, fields->body, fields->length, false);
}

/* What the target or the field says, in its one form. */
static bool read_host(const struct head *head, struct hostname *host, uint16_t *port)
{
    struct head_part name;

    return head_authority(head->host, &name, port) && !hostname_read(name.at, name.len, host);
}

static bool is_for(const struct connection *connection, const struct head *head)
{
    const struct verdict *dialled = &connection->exchange->dialled;
    uint16_t port = usual_port(connection);
    struct hostname named;

    return read_host(head, &named, &port) && port == connection->port &&
           strcmp(named.text, dialled->host.text) == 0;
}

static void write_request(struct connection *connection, const struct head *head)
{
    const struct verdict *verdict = &connection->purpose->verdict;
    autotext struct text host = TEXT_NONE;

    text_addf(&host, verdict->host.address.len == 16 ? "[%s]" : "%s", verdict->host.text);
    if (verdict->port != usual_port(connection))
        text_addf(&host, ":%u", verdict->port);
    head_write(head, text_string(&host), &connection->exchange->request);
    connection->exchange->recording = recording_begin(&the_gate.recorder, head, verdict);
    cached_consider(connection, head);
}

/* Who asked for a record wants all of it. */
static void refuse_unrecorded(struct verdict *verdict)
{
    if (the_gate.recorder.fd < 0 || recorder_has_room(&the_gate.recorder))
        return;
    verdict->allowed = false;
    (void)snprintf(verdict->why, sizeof verdict->why,
                   "the record of exchanges (--record) %s, so %s is not asked",
                   the_gate.recorder.failed ? "cannot be written" : "is full", verdict->host.text);
}

static void judge(struct connection *connection, const struct head *head, const char *host, uint16_t port)
{
    struct purpose *purpose = connection->purpose;
    autotext struct text path = TEXT_NONE;

    text_add_bytes(&path, head->path.at, head->path.len);
    text_clear(&connection->exchange->path);
    if (the_gate.rules->tape)
        text_add(&connection->exchange->path, text_string(&path));
    rules_verdict(the_gate.rules,
                  &(struct question){ .host = host,
                                      .host_len = strlen(host),
                                      .port = port,
                                      .method = head->tunnel ? NULL : purpose->method,
                                      .path = head->tunnel ? NULL : text_string(&path),
                                      .overridden = head->overridden },
                  &purpose->verdict);
    if (gate_leaves_out("rules"))
        purpose->verdict.allowed = true;
    if (purpose->verdict.allowed)
        refuse_unrecorded(&purpose->verdict);
}

/* Whoever it names is as good as dialled.  What it says then is looked at as if it had been. */
static void open_tunnel(struct connection *connection, const struct head *head)
{
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct side *client = &connection->client;

    connection->port = connection->purpose->verdict.port;
    connection->tunnelled = true;
    side_close(&connection->server);
    side_forget(client, head->size);
    exchange_free(connection->exchange);
    connection->exchange = NULL;
    connection->purpose->method[0] = '\0';
    connection->purpose->protocol = GATEWAY_TCP;
    connection_wait(connection, READING, early_patience);
    if (!side_put(client, yes, strlen(yes))) {
        connection_reset(connection);
        return;
    }
    side_watch(client, true);
    first_take(connection);
}

static void take_proxied(struct connection *connection, const struct head *head, const struct hostname *host,
                         uint16_t port)
{
    judge(connection, head, host->text, port);
    if (head->tunnel && connection->purpose->verdict.allowed) {
        open_tunnel(connection, head);
        return;
    }
    write_request(connection, head);
    side_forget(&connection->client, head->size);
    note(connection);
}

static void take_direct(struct connection *connection, const struct head *head)
{
    const struct verdict *dialled = &connection->exchange->dialled;

    if (dialled->allowed && !is_for(connection, head) && !gate_leaves_out("agreement")) {
        side_forget(&connection->client, head->size);
        note_deny(connection, "a request to %s port %u says that it is for somebody else", dialled->host.text,
                  connection->port);
        return;
    }
    judge(connection, head, dialled->host.text, connection->port);
    write_request(connection, head);
    side_forget(&connection->client, head->size);
    note(connection);
}

/* There is nobody it could be for, so nothing to judge. */
static void take_nobodys(struct connection *connection, const char *why)
{
    autotext struct text body = TEXT_NONE;

    connection->exchange->last = true;
    text_addf(&body, "Cove takes requests here as a proxy does, and not this one: %s.\n", why);
    refusal_answer(connection, "400 Bad Request", text_string(&body));
}

static void take(struct connection *connection, const struct head *head)
{
    struct exchange *exchange = connection->exchange;
    struct purpose *purpose = connection->purpose;
    struct hostname host = HOSTNAME_NONE;
    uint16_t port = 80;
    bool read = read_host(head, &host, &port);
    bool inside = connection->tunnelled || side_is_secure(&connection->client);
    bool proxied =
        (head->tunnel || head->absolute) && !inside && read &&
        (head->tunnel || strcmp(host.text, exchange->dialled.host.text) != 0 || port != connection->port);

    if (connection->refused) {
        side_forget(&connection->client, head->size);
        refuse(connection);
        return;
    }
    (void)snprintf(purpose->method, sizeof purpose->method, "%.*s", (int)head->method.len, head->method.at);
    if (proxied)
        take_proxied(connection, head, &host, port);
    else if (is_open_to_all(connection))
        take_nobodys(connection, read ? "its target is not a whole URL" : "its host is not written as a name");
    else if (head->tunnel) {
        side_forget(&connection->client, head->size);
        note_deny(connection, "a request to %s is not taken: CONNECT goes nowhere from here",
                  exchange->dialled.host.text);
    } else
        take_direct(connection, head);
}

void request_refuse(struct connection *connection, const char *why)
{
    struct verdict *verdict = &connection->purpose->verdict;

    *verdict = connection->exchange->dialled;
    begin(connection->exchange, &(struct head){ .old = true });
    connection->purpose->method[0] = '\0';
    if (connection->refused)
        refuse(connection);
    else if (is_open_to_all(connection))
        take_nobodys(connection, why);
    else if (verdict->allowed)
        note_deny(connection, "a request to %s is not taken: %s", verdict->host.text, why);
    else
        note(connection);
}

/* What came of the body already is looked at before anything of the request goes out. */
static bool is_framed(const struct head *head, const char *rest, size_t len)
{
    struct head_part data;
    struct body body;
    int64_t took = 1;

    body_begin(&body, head->fields.body, head->fields.length, false);
    for (size_t at = 0; at < len && took > 0; at += (size_t)took)
        took = body_next(&body, rest + at, len - at, &data);
    return took >= 0;
}

bool request_take(struct connection *connection)
{
    static struct head head; /* large, and used here only */
    const struct text *heard = &connection->client.heard;
    const char *why = NULL;
    enum head_read read = heard->len ? head_read(heard->data, heard->len, &head, &why) : HEAD_MORE;

    if (read == HEAD_MORE)
        return false;
    connection->purpose->verdict = connection->exchange->dialled;
    if (read == HEAD_WHOLE && !is_framed(&head, heard->data + head.size, heard->len - head.size)) {
        read = HEAD_BAD;
        why = "its body is not framed as it must be";
    }
    if (read == HEAD_BAD) {
        request_refuse(connection, why);
        return true;
    }
    begin(connection->exchange, &head);
    take(connection, &head);
    return true;
}
