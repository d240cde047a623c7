#include "net/head.h"

#include "base/array.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

static bool is(struct head_part part, const char *word)
{
    return part.len == strlen(word) && strncasecmp(part.at, word, part.len) == 0;
}

static bool is_token(struct head_part part)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < part.len; i++) {
        char c = part.at[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr(others, c))))
            return false;
    }
    return part.len > 0;
}

/* Visible ASCII. */
static bool is_visible(struct head_part part)
{
    for (size_t i = 0; i < part.len; i++)
        if (part.at[i] <= ' ' || part.at[i] >= 0x7f)
            return false;
    return part.len > 0;
}

static bool is_value(struct head_part part)
{
    for (size_t i = 0; i < part.len; i++)
        if (((unsigned char)part.at[i] < ' ' && part.at[i] != '\t') || part.at[i] == 0x7f)
            return false;
    return true;
}

/* One line without its end, which is CR LF and nothing else.  False: it is not whole. */
static bool take_line(const char *bytes, size_t len, size_t *at, struct head_part *out)
{
    const char *end = memchr(bytes + *at, '\n', len - *at);

    if (!end)
        return false;
    size_t size = (size_t)(end - bytes) - *at;

    *out = (struct head_part){ bytes + *at, size };
    *at += size + 1;
    return true;
}

static bool drop_cr(struct head_part *line)
{
    if (line->len == 0 || line->at[line->len - 1] != '\r')
        return false;
    line->len--;
    return !memchr(line->at, '\r', line->len) && !memchr(line->at, '\0', line->len);
}

static struct head_part until(struct head_part *rest, char mark)
{
    const char *found = memchr(rest->at, mark, rest->len);
    size_t len = found ? (size_t)(found - rest->at) : rest->len;
    struct head_part part = { rest->at, len };

    rest->at += len + (found ? 1 : 0);
    rest->len -= len + (found ? 1 : 0);
    return part;
}

/* "/path", "*" for OPTIONS, or a whole URL, whose host then counts. */
static const char *read_target(struct head *head)
{
    static const char scheme[] = "http://";
    struct head_part rest = head->target;

    head->path = rest;
    if (rest.at[0] == '/' || (is(rest, "*") && is(head->method, "OPTIONS")))
        return NULL;
    if (rest.len <= strlen(scheme) || strncasecmp(rest.at, scheme, strlen(scheme)) != 0)
        return "its target is neither a path nor an http URL";
    rest.at += strlen(scheme);
    rest.len -= strlen(scheme);

    const char *slash = memchr(rest.at, '/', rest.len);

    head->host = (struct head_part){ rest.at, slash ? (size_t)(slash - rest.at) : rest.len };
    if (slash)
        head->path = (struct head_part){ slash, rest.len - head->host.len };
    else
        head->path = (struct head_part){ "/", 1 };
    if (head->host.len == 0 || memchr(rest.at, '@', head->host.len) || memchr(rest.at, '?', head->host.len))
        return "the host of its target cannot be told";
    return NULL;
}

static const char *read_first_line(struct head_part line, struct head *head)
{
    head->method = until(&line, ' ');
    head->target = until(&line, ' ');
    if (!is_token(head->method) || head->method.len >= HEAD_METHOD_MAX || !is_visible(head->target) ||
        memchr(head->target.at, '#', head->target.len))
        return "its first line is not METHOD TARGET VERSION";
    if (line.len != strlen("HTTP/1.1") ||
        (memcmp(line.at, "HTTP/1.1", line.len) != 0 && memcmp(line.at, "HTTP/1.0", line.len) != 0))
        return "its version is neither HTTP/1.1 nor HTTP/1.0";
    head->old = line.at[line.len - 1] == '0';
    return read_target(head);
}

static const char *read_length(struct head_part value, struct head *head)
{
    if (head->body != HEAD_NO_BODY)
        return "it has more than one length";
    if (value.len == 0 || value.len > 18 || (value.at[0] == '0' && value.len > 1))
        return "its Content-Length is no number";
    head->length = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return "its Content-Length is no number";
        head->length = head->length * 10 + (uint64_t)(value.at[i] - '0');
    }
    head->body = HEAD_LENGTH;
    return NULL;
}

static const char *read_coding(struct head_part value, struct head *head)
{
    if (head->body != HEAD_NO_BODY)
        return "it has more than one length";
    if (!is(value, "chunked") || head->old)
        return "its Transfer-Encoding is not just chunked";
    head->body = HEAD_CHUNKED;
    return NULL;
}

static const char *note(const struct head_field *field, struct head *head, bool *hosted)
{
    if (is(field->name, "content-length"))
        return read_length(field->value, head);
    if (is(field->name, "transfer-encoding"))
        return read_coding(field->value, head);
    if (!is(field->name, "host"))
        return NULL;
    if (*hosted || (head->host.len && (head->host.len != field->value.len ||
                                       strncasecmp(head->host.at, field->value.at, head->host.len) != 0)))
        return "it names more than one host";
    *hosted = true;
    head->host = field->value;
    return NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *read_field(struct head_part line, struct head *head, bool *hosted)
{
    struct head_field field = { .name = { line.at, 0 } };
    const char *colon = memchr(line.at, ':', line.len);

    if (!colon)
        return "a field has no colon";
    field.name.len = (size_t)(colon - line.at);
    field.value = (struct head_part){ colon + 1, line.len - field.name.len - 1 };
    while (field.value.len && is_blank(field.value.at[0])) {
        field.value.at++;
        field.value.len--;
    }
    while (field.value.len && is_blank(field.value.at[field.value.len - 1]))
        field.value.len--;
    if (!is_token(field.name) || !is_value(field.value))
        return "a field has a byte that it must not have";
    if (head->count == HEAD_FIELDS_MAX)
        return "it has too many fields";
    head->fields[head->count++] = field;
    return note(&field, head, hosted);
}

enum head_read head_read(const char *bytes, size_t len, struct head *out, const char **why)
{
    struct head_part line;
    bool first = true, hosted = false;
    size_t at = 0;

    *out = (struct head){ 0 };
    *why = NULL;
    while (at < len && take_line(bytes, len, &at, &line)) {
        if (!drop_cr(&line))
            *why = "a line does not end with CR LF";
        else if (first)
            *why = read_first_line(line, out);
        else if (line.len)
            *why = read_field(line, out, &hosted);
        else if (out->host.len == 0)
            *why = "it names no host";
        if (*why)
            return HEAD_BAD;
        out->size = at;
        if (!first && line.len == 0)
            return HEAD_WHOLE;
        first = false;
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

/* What is between the client and us, or would make another protocol of the connection.  What Connection names
 * besides is passed on: a server that is told to close has no use for it, and nothing that counts can be taken
 * out that way. */
static bool is_for_us(struct head_part name)
{
    static const char *const names[] = {
        "connection", "keep-alive", "proxy-connection", "proxy-authorization", "upgrade",
        "te",         "host",       "http2-settings"
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is(name, names[i]))
            return true;
    return false;
}

void head_write(const struct head *head, const char *host, struct text *out)
{
    text_add_bytes(out, head->method.at, head->method.len);
    text_add(out, " ");
    text_add_bytes(out, head->path.at, head->path.len);
    text_add(out, head->old ? " HTTP/1.0\r\nHost: " : " HTTP/1.1\r\nHost: ");
    text_add(out, host);
    text_add(out, "\r\n");
    for (size_t i = 0; i < head->count; i++) {
        const struct head_field *field = &head->fields[i];

        if (is_for_us(field->name))
            continue;
        text_add_bytes(out, field->name.at, field->name.len);
        text_add(out, ": ");
        text_add_bytes(out, field->value.at, field->value.len);
        text_add(out, "\r\n");
    }
    text_add(out, "Connection: close\r\n\r\n");
}

/* --- bodies --- */

enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF };

void body_begin(struct body *body, const struct head *head)
{
    *body = (struct body){ .kind = head->body, .left = head->body == HEAD_LENGTH ? head->length : 0 };
    body->over = body->kind == HEAD_NO_BODY || (body->kind == HEAD_LENGTH && body->left == 0);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_size(struct body *body, char c)
{
    int value = digit(c);

    if (c == '\r' && body->digits) {
        body->state = SIZE_LF;
        return true;
    }
    if (value < 0 || body->digits == 15)
        return false;
    body->left = body->left << 4 | (uint64_t)value;
    body->digits++;
    return true;
}

/* One byte that is not data.  No extensions and no trailers: nobody sends them but who has something in mind.
 */
static bool take_frame(struct body *body, char c)
{
    switch (body->state) {
    case SIZE:
        return take_size(body, c);
    case SIZE_LF:
        body->state = body->left ? DATA : LAST_CR;
        return c == '\n';
    case DATA_CR:
        body->state = DATA_LF;
        return c == '\r';
    case DATA_LF:
        body->state = SIZE;
        body->digits = 0;
        return c == '\n';
    case LAST_CR:
        body->state = LAST_LF;
        return c == '\r';
    default:
        body->over = true;
        return c == '\n';
    }
}

static size_t take_data(struct body *body, size_t len)
{
    size_t taken = body->left < len ? (size_t)body->left : len;

    body->left -= taken;
    return taken;
}

int64_t body_take(struct body *body, const char *bytes, size_t len)
{
    size_t at = 0;

    while (at < len && !body->over) {
        if (body->kind == HEAD_LENGTH) {
            at += take_data(body, len - at);
            body->over = body->left == 0;
        } else if (body->state == DATA) {
            at += take_data(body, len - at);
            if (body->left == 0)
                body->state = DATA_CR;
        } else if (!take_frame(body, bytes[at++])) {
            return -1;
        }
    }
    return (int64_t)at;
}
