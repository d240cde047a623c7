#include "net/head.h"

#include "base/array.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

static bool names_a_host(struct head_part host)
{
    return host.len && !memchr(host.at, '@', host.len) && !memchr(host.at, '?', host.len);
}

static const char *read_url(struct head_part rest, struct head *head)
{
    const char *slash = memchr(rest.at, '/', rest.len);

    head->absolute = true;
    head->host = (struct head_part){ rest.at, slash ? (size_t)(slash - rest.at) : rest.len };
    head->path = slash ? (struct head_part){ slash, rest.len - head->host.len } : (struct head_part){ "/", 1 };
    return names_a_host(head->host) ? NULL : "the host of its target cannot be told";
}

/* "/path", "*" for OPTIONS, or what is said to proxies: a whole URL, whose host then counts, or for CONNECT
 * HOST:PORT. */
static const char *read_target(struct head *head)
{
    static const char scheme[] = "http://";
    struct head_part rest = head->target;

    head->path = rest;
    if (part_is(head->method, "CONNECT")) {
        head->tunnel = true;
        head->host = rest;
        head->path.len = 0;
        return names_a_host(rest) && !memchr(rest.at, '/', rest.len) && memchr(rest.at, ':', rest.len)
                   ? NULL
                   : "its target is not HOST:PORT";
    }
    if (rest.at[0] == '/' || (part_is(rest, "*") && part_is(head->method, "OPTIONS")))
        return NULL;
    if (rest.len <= strlen(scheme) || strncasecmp(rest.at, scheme, strlen(scheme)) != 0)
        return "its target is neither a path nor an http URL";
    return read_url((struct head_part){ rest.at + strlen(scheme), rest.len - strlen(scheme) }, head);
}

static const char *read_first_line(struct head_part line, struct head *head)
{
    head->method = part_until(&line, ' ');
    head->target = part_until(&line, ' ');
    if (!part_is_token(head->method) || head->method.len >= HEAD_METHOD_MAX || !part_is_visible(head->target) ||
        memchr(head->target.at, '#', head->target.len))
        return "its first line is not METHOD TARGET VERSION";
    if (line.len != strlen("HTTP/1.1") ||
        (memcmp(line.at, "HTTP/1.1", line.len) != 0 && memcmp(line.at, "HTTP/1.0", line.len) != 0))
        return "its version is neither HTTP/1.1 nor HTTP/1.0";
    head->old = line.at[line.len - 1] == '0';
    return read_target(head);
}

/* Without its port if that is the scheme's own: clients leave it out in one place and not in the other. */
static struct head_part without_80(struct head_part host)
{
    if (host.len > 3 && memcmp(host.at + host.len - 3, ":80", 3) == 0)
        host.len -= 3;
    return host;
}

static bool same_host(const struct head *head, struct head_part named)
{
    struct head_part host = head->host;

    if (head->absolute) {
        host = without_80(host);
        named = without_80(named);
    }
    return host.len == named.len && strncasecmp(host.at, named.at, host.len) == 0;
}

/* The name alone is enough for CONNECT, whose target has the port. */
static bool is_tunnel_s(const struct head *head, struct head_part named)
{
    return head->tunnel && named.len < head->host.len && head->host.at[named.len] == ':' &&
           strncasecmp(head->host.at, named.at, named.len) == 0 &&
           !memchr(head->host.at + named.len + 1, ':', head->host.len - named.len - 1);
}

static bool is_override(const struct head_field *field)
{
    static const char *const names[] = { "x-http-method-override", "x-http-method",  "x-method-override",
                                         "x-original-method",      "x-original-url", "x-original-uri",
                                         "x-rewrite-url",          "x-rewrite-uri" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (part_reads_as(field->name, names[i]))
            return true;
    return false;
}

static const char *note(const struct head_field *field, struct head *head, bool *hosted)
{
    head->overridden |= is_override(field);
    if (part_is(field->name, "expect"))
        head->expects = true;
    if (!part_is(field->name, "host"))
        return NULL;
    if (*hosted || (head->host.len && !same_host(head, field->value) && !is_tunnel_s(head, field->value)))
        return "it names more than one host";
    *hosted = true;
    if (head->host.len == 0)
        head->host = field->value;
    return NULL;
}

/* What can be said only when everything was read. */
static const char *finish(struct head *head)
{
    const struct fields *fields = &head->fields;

    if (head->host.len == 0)
        return "it names no host";
    if (head->old && fields->coded)
        return "its Transfer-Encoding is not just chunked";
    if (head->tunnel && fields->body != HEAD_NO_BODY)
        return "a CONNECT has no body";
    head->alone = (fields->body == HEAD_CHUNKED || fields->length) && !part_is_exactly(head->method, "POST") &&
                  !part_is_exactly(head->method, "PUT") && !part_is_exactly(head->method, "PATCH");
    head->websocket = fields->upgrading && part_is(fields->upgrade, "websocket") &&
                      part_is(head->method, "GET") && fields->body == HEAD_NO_BODY && !head->old;
    return NULL;
}

static const char *read_line(struct head_part line, struct head *head, bool first, bool *hosted)
{
    const char *why;

    if (first)
        return read_first_line(line, head);
    if (line.len == 0)
        return finish(head);
    why = field_read(line, &head->fields);
    return why ? why : note(&head->fields.items[head->fields.count - 1], head, hosted);
}

enum head_read head_read(const char *bytes, size_t len, struct head *out, const char **why)
{
    struct head_part line;
    bool hosted = false;
    size_t at = 0;
    enum head_read read;

    *out = (struct head){ 0 };
    for (bool first = true; (read = line_read(bytes, len, &at, &line)) != HEAD_MORE; first = false) {
        *why = read == HEAD_BAD ? "a line does not end with CR LF" : read_line(line, out, first, &hosted);
        if (*why)
            return HEAD_BAD;
        out->size = at;
        if (!first && line.len == 0)
            return HEAD_WHOLE;
    }
    *why = "its head is too long";
    return len >= HEAD_MAX ? HEAD_BAD : HEAD_MORE;
}

bool head_authority(struct head_part authority, struct head_part *host, uint16_t *port)
{
    const char *colon = memrchr(authority.at, ':', authority.len);
    const char *bracket = memrchr(authority.at, ']', authority.len);
    uint32_t value = 0;

    *host = authority;
    if (!colon || (bracket && bracket > colon))
        return true;
    host->len = (size_t)(colon - authority.at);

    size_t digits = authority.len - host->len - 1;

    if (digits == 0 || digits > 5)
        return false;
    for (size_t i = 1; i <= digits; i++) {
        if (colon[i] < '0' || colon[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(colon[i] - '0');
    }
    *port = (uint16_t)value;
    return value > 0 && value <= UINT16_MAX;
}

/* What Connection names besides is passed on: nothing that counts can be taken out that way. */
void head_write(const struct head *head, const char *host, struct text *out)
{
    const struct fields *fields = &head->fields;

    text_add_bytes(out, head->method.at, head->method.len);
    text_add(out, " ");
    text_add_bytes(out, head->path.at, head->path.len);
    text_addf(out, " HTTP/1.1\r\nHost: %s\r\n", host);
    for (size_t i = 0; i < fields->count; i++) {
        const struct head_field *field = &fields->items[i];

        if (field_is_ours(field) || part_is(field->name, "host"))
            continue;
        text_add_bytes(out, field->name.at, field->name.len);
        text_add(out, ": ");
        text_add_bytes(out, field->value.at, field->value.len);
        text_add(out, "\r\n");
    }
    if (fields->body == HEAD_LENGTH)
        text_addf(out, "Content-Length: %llu\r\n", (unsigned long long)fields->length);
    else if (fields->body == HEAD_CHUNKED)
        text_add(out, "Transfer-Encoding: chunked\r\n");
    if (head->websocket)
        text_add(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    else if (head->alone)
        text_add(out, "Connection: close\r\n");
    text_add(out, "\r\n");
}
