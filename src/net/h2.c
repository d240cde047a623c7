#include "net/h2.h"

#include "base/array.h"
#include "base/own.h"
#include "net/head.h"

#include <string.h>
#include <strings.h>

static const char bad_byte[] = "a field has a byte that it must not have";
static const char two_hosts[] = "it names more than one host";

static const char *const part_names[H2_PARTS] = { ":method", ":scheme", ":authority", ":path" };

void h2_head_clear(struct h2_head *head)
{
    for (size_t i = 0; i < H2_PARTS; i++)
        text_clear(&head->parts[i]);
    text_clear(&head->host);
    text_clear(&head->cookie);
    text_clear(&head->fields);
    head->size = 0;
    head->ordinary = false;
    head->why = NULL;
}

void h2_head_free(struct h2_head *head)
{
    for (size_t i = 0; i < H2_PARTS; i++)
        text_free(&head->parts[i]);
    text_free(&head->host);
    text_free(&head->cookie);
    text_free(&head->fields);
}

static struct head_part part_of(const struct text *text)
{
    return (struct head_part){ text_string(text), text->len };
}

/* --- one field --- */

static const char *add_part(struct h2_head *head, struct head_part name, struct head_part value)
{
    for (size_t i = 0; i < H2_PARTS; i++) {
        if (!part_is_exactly(name, part_names[i]))
            continue;
        if (head->ordinary || head->parts[i].len)
            return "its parts are not said once, and first";
        if (!part_is_visible(value))
            return bad_byte;
        text_add_bytes(&head->parts[i], value.at, value.len);
        return NULL;
    }
    return "it has a part that no request has";
}

static bool has_capitals(struct head_part name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] >= 'A' && name.at[i] <= 'Z')
            return true;
    return false;
}

/* What HTTP/1.1 would take for words about its connection, or for the length of the body. */
static bool is_forbidden(struct head_part name, struct head_part value)
{
    static const char *const names[] = { "connection", "keep-alive", "proxy-connection", "transfer-encoding",
                                         "upgrade" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (part_is(name, names[i]))
            return true;
    return part_is(name, "te") && !part_is(value, "trailers");
}

static const char *check(struct head_part name, struct head_part value)
{
    if (!part_is_token(name) || has_capitals(name) || !part_is_value(value))
        return bad_byte;
    return is_forbidden(name, value) ? "a field is about the connection, which HTTP/2 has none of" : NULL;
}

static void join(struct text *to, const char *between, struct head_part value)
{
    if (to->len)
        text_add(to, between);
    text_add_bytes(to, value.at, value.len);
}

static void add_line(struct text *to, struct head_part name, struct head_part value)
{
    text_add_bytes(to, name.at, name.len);
    text_add(to, ": ");
    text_add_bytes(to, value.at, value.len);
    text_add(to, "\r\n");
}

static const char *add(struct h2_head *head, struct head_part name, struct head_part value)
{
    const char *why = NULL;

    if (name.len && name.at[0] == ':')
        return add_part(head, name, value);
    head->ordinary = true;
    if (!head->careless)
        why = check(name, value);
    if (why)
        return why;
    if (part_is_exactly(name, "host") && (head->host.len || value.len == 0))
        return two_hosts;
    if (part_is_exactly(name, "host"))
        join(&head->host, "", value);
    else if (part_is_exactly(name, "cookie"))
        join(&head->cookie, "; ", value);
    else
        add_line(&head->fields, name, value);
    return NULL;
}

void h2_head_add(struct h2_head *head, struct head_part name, struct head_part value)
{
    head->size += name.len + value.len + strlen(": \r\n");
    if (!head->why)
        head->why = head->size > HEAD_MAX ? "its head is too long" : add(head, name, value);
}

/* --- all of them --- */

static const char *check_parts(const struct h2_head *head)
{
    const struct text *authority = &head->parts[H2_AUTHORITY];
    struct head_part method = part_of(&head->parts[H2_METHOD]), path = part_of(&head->parts[H2_PATH]);

    if (part_is(method, "CONNECT"))
        return "CONNECT goes nowhere from here";
    if (!part_is_token(method) || path.len == 0)
        return "it has no method or no path";
    if (path.at[0] != '/' && !part_is_exactly(path, "*"))
        return "its path does not begin with a slash";
    if (!part_is(part_of(&head->parts[H2_SCHEME]), "https"))
        return "its scheme is not https";
    if (authority->len && head->host.len && !part_is(part_of(&head->host), text_string(authority)))
        return two_hosts;
    return NULL;
}

/* A body whose length is not said goes on in chunks.  That there is none has to be said of methods that have
 * one. */
static void add_framing(const struct head *head, bool ended, struct text *out)
{
    bool usual = part_is_exactly(head->method, "POST") || part_is_exactly(head->method, "PUT") ||
                 part_is_exactly(head->method, "PATCH");

    if (head->fields.body == HEAD_NO_BODY && !ended)
        text_add(out, "transfer-encoding: chunked\r\n");
    else if (head->fields.body == HEAD_NO_BODY && usual)
        text_add(out, "content-length: 0\r\n");
}

static void write_fields(const struct h2_head *head, struct text *out)
{
    const struct text *host = head->parts[H2_AUTHORITY].len ? &head->parts[H2_AUTHORITY] : &head->host;

    text_addf(out, "%s %s HTTP/1.1\r\nhost: %s\r\n", text_string(&head->parts[H2_METHOD]),
              text_string(&head->parts[H2_PATH]), text_string(host));
    text_add_bytes(out, text_string(&head->fields), head->fields.len);
    if (head->cookie.len)
        add_line(out, (struct head_part){ "cookie", strlen("cookie") }, part_of(&head->cookie));
}

const char *h2_head_write(const struct h2_head *head, bool ended, struct text *out, enum head_body *body,
                          uint64_t *length)
{
    static struct head read; /* large, and used here only */
    autotext struct text text = TEXT_NONE;
    const char *why = head->why ? head->why : check_parts(head);

    if (why)
        return why;
    write_fields(head, &text);

    size_t len = text.len;

    /* It must be one head, and nothing behind it, whoever reads it. */
    text_add(&text, "\r\n");
    if (head_read(text.data, text.len, &read, &why) != HEAD_WHOLE)
        return why;
    if (read.size != text.len && !head->careless)
        return bad_byte;
    if (ended && read.fields.length)
        return "it says that it has a body, and has none";
    text_cut(&text, len);
    add_framing(&read, ended, &text);
    text_add(&text, "\r\n");
    *body = read.fields.body == HEAD_NO_BODY && !ended ? HEAD_CHUNKED : read.fields.body;
    *length = read.fields.length;
    text_add_bytes(out, text.data, text.len);
    return NULL;
}
