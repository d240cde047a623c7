/* What the first bytes are: TLS, HTTP, or something else. */

#include "gateway/connection.h"

#include "base/clock.h"

#include <errno.h>

static bool is_web_port(uint16_t port)
{
    return port == 80 || port == 443;
}

/* -1: cannot be told yet. */
static int looks_like_http(const struct text *heard)
{
    size_t at = 0;

    if (heard->data[0] == '\r' || heard->data[0] == '\n')
        return 1; /* servers pass over empty lines before a request; we do not take it */
    while (at < heard->len && at <= 16 && heard->data[at] >= 'A' && heard->data[at] <= 'Z')
        at++;
    if (at == heard->len && at <= 16)
        return -1;
    return at >= 3 && heard->data[at] == ' ';
}

static void take_hello(struct connection *connection)
{
    static unsigned char scratch[HELLO_MAX];
    const struct text *heard = &connection->client.heard;
    struct verdict *verdict = &connection->purpose->verdict;
    bool looks = verdict->inspect || the_gate.recorder.fd >= 0 || cached_wants(verdict);
    struct hostname named;
    const char *name;
    size_t len;
    enum hello hello = hello_read((unsigned char *)heard->data, heard->len, scratch, &name, &len);

    if (hello == HELLO_MORE && heard->len < EARLY_MAX)
        return;
    if (hello != HELLO_WHOLE)
        note_deny(connection, "the first TLS message to %s cannot be read", verdict->host.text);
    else if (looks && !secure_can_judge(verdict))
        note_deny(connection, "requests to %s are judged or recorded one by one, and TLS is not looked into",
                  verdict->host.text);
    else if (len == 0 && !hostname_is_address(&verdict->host))
        note_deny(connection, "a TLS connection to %s does not say whom it is for", verdict->host.text);
    else if (len && (hostname_read(name, len, &named) || strcmp(named.text, verdict->host.text) != 0) &&
             !gate_leaves_out("agreement"))
        note_deny(connection, "a TLS connection to %s says that it is for somebody else", verdict->host.text);
    else if (looks && !gate_leaves_out("inspection"))
        secure_client(connection, verdict->host.text); /* each request is noted by itself */
    else
        note(connection);
}

/* In whose name a refusal is told: the client's own word, if it can be read. */
void first_explain(struct connection *connection)
{
    static unsigned char scratch[HELLO_MAX];
    const struct text *heard = &connection->client.heard;
    struct hostname named = connection->purpose->verdict.host;
    const char *name;
    size_t len = 0;
    enum hello hello = hello_read((unsigned char *)heard->data, heard->len, scratch, &name, &len);

    if (hello == HELLO_WHOLE && len && hostname_read(name, len, &named))
        named = connection->purpose->verdict.host;
    connection->refused = true;
    secure_client(connection, named.text);
    if (connection->state == ACCEPTING && hello != HELLO_WHOLE)
        connection->until = clock_us() + refused_silent; /* who has something to say has said it */
}

/* Something else than TLS or HTTP: passed on to ports that a rule names. */
static void take_other(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;

    if (connection->is_proxys && !connection->tunnelled)
        connection_reset(connection); /* nobody it could be for */
    else if (verdict->allowed && is_web_port(connection->port))
        note_deny(connection, "what was sent to %s port %u is neither TLS nor HTTP", verdict->host.text,
                  connection->port);
    else if (verdict->allowed && verdict->inspect)
        note_deny(connection, "requests to %s are judged one by one, and this is not HTTP", verdict->host.text);
    else
        note(connection);
}

void first_take(struct connection *connection)
{
    const struct text *heard = &connection->client.heard;
    struct purpose *purpose = connection->purpose;
    bool nobody = connection->is_proxys && !connection->tunnelled;
    int http;

    if (heard->len == 0)
        return;
    if (heard->data[0] == 22 && !nobody) {
        purpose->protocol = GATEWAY_TLS;
        if (purpose->verdict.allowed)
            take_hello(connection);
        else
            note(connection);
        return;
    }
    http = looks_like_http(heard);
    if (http > 0)
        exchange_begin(connection);
    else if (http == 0)
        take_other(connection);
}

void first_read(struct connection *connection)
{
    bool first = connection->client.heard.len == 0;
    int heard = side_hear(&connection->client, EARLY_MAX);

    if (heard < 0 && errno == EAGAIN)
        return;
    if (heard <= 0) { /* it went away, or has said everything and that was not enough */
        connection_close(connection);
        return;
    }
    if (first)
        connection->until = clock_us() + early_patience;
    first_take(connection);
}

void first_silent(struct connection *connection)
{
    const struct verdict *verdict = &connection->purpose->verdict;

    if (connection->client.heard.len && verdict->allowed)
        note_deny(connection, "what was sent to %s did not become a request in time", verdict->host.text);
    else
        take_other(connection);
}
