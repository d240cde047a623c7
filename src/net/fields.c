#include "net/fields.h"

#include "base/array.h"

#include <string.h>
#include <strings.h>

bool part_is(struct head_part part, const char *word)
{
    return part.len == strlen(word) && strncasecmp(part.at, word, part.len) == 0;
}

bool part_is_exactly(struct head_part part, const char *word)
{
    return part.len == strlen(word) && memcmp(part.at, word, part.len) == 0;
}

bool part_reads_as(struct head_part part, const char *word)
{
    if (part.len != strlen(word))
        return false;
    for (size_t i = 0; i < part.len; i++)
        if (strncasecmp(part.at[i] == '_' ? "-" : part.at + i, word + i, 1) != 0)
            return false;
    return true;
}

bool part_is_token(struct head_part part)
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

struct head_part part_until(struct head_part *rest, char mark)
{
    const char *found = memchr(rest->at, mark, rest->len);
    size_t len = found ? (size_t)(found - rest->at) : rest->len;
    struct head_part part = { rest->at, len };

    rest->at += len + (found ? 1 : 0);
    rest->len -= len + (found ? 1 : 0);
    return part;
}

enum head_read line_read(const char *bytes, size_t len, size_t *at, struct head_part *line)
{
    const char *end = *at < len ? memchr(bytes + *at, '\n', len - *at) : NULL;

    if (!end)
        return HEAD_MORE;
    *line = (struct head_part){ bytes + *at, (size_t)(end - bytes) - *at };
    *at += line->len + 1;
    if (line->len == 0 || line->at[line->len - 1] != '\r')
        return HEAD_BAD;
    line->len--;
    return memchr(line->at, '\r', line->len) || memchr(line->at, '\0', line->len) ? HEAD_BAD : HEAD_WHOLE;
}

bool part_is_visible(struct head_part part)
{
    for (size_t i = 0; i < part.len; i++)
        if (part.at[i] <= ' ' || part.at[i] >= 0x7f)
            return false;
    return part.len > 0;
}

bool part_is_value(struct head_part part)
{
    for (size_t i = 0; i < part.len; i++)
        if (((unsigned char)part.at[i] < ' ' && part.at[i] != '\t') || part.at[i] == 0x7f)
            return false;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct head_part trimmed(struct head_part part)
{
    while (part.len && is_blank(part.at[0])) {
        part.at++;
        part.len--;
    }
    while (part.len && is_blank(part.at[part.len - 1]))
        part.len--;
    return part;
}

static const char *note_length(struct head_part value, struct fields *fields)
{
    if (fields->body != HEAD_NO_BODY)
        return "it has more than one length";
    if (value.len == 0 || value.len > 18 || (value.at[0] == '0' && value.len > 1))
        return "its Content-Length is no number";
    fields->length = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return "its Content-Length is no number";
        fields->length = fields->length * 10 + (uint64_t)(value.at[i] - '0');
    }
    fields->body = HEAD_LENGTH;
    return NULL;
}

static const char *note_coding(struct head_part value, struct fields *fields)
{
    if (fields->body != HEAD_NO_BODY)
        return "it has more than one length";
    if (!part_is(value, "chunked"))
        return "its Transfer-Encoding is not just chunked";
    fields->body = HEAD_CHUNKED;
    fields->coded = true;
    return NULL;
}

static const char *note_connection(struct head_part value, struct fields *fields)
{
    while (value.len) {
        struct head_part word = trimmed(part_until(&value, ','));

        fields->close |= part_is(word, "close");
        fields->keep |= part_is(word, "keep-alive");
        fields->upgrading |= part_is(word, "upgrade");
    }
    return NULL;
}

static const char *note_upgrade(struct head_part value, struct fields *fields)
{
    if (fields->upgrade.len)
        return "it asks for more than one upgrade";
    fields->upgrade = value;
    return NULL;
}

static const char *note(const struct head_field *field, struct fields *fields)
{
    static const struct {
        const char *name;
        const char *(*note)(struct head_part value, struct fields *fields);
    } rows[] = { { "content-length", note_length },
                 { "transfer-encoding", note_coding },
                 { "connection", note_connection },
                 { "upgrade", note_upgrade } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (part_is(field->name, rows[i].name))
            return rows[i].note(field->value, fields);
    /* What a program behind a server gets as a variable has the name of the other there. */
    if (part_reads_as(field->name, "content-length") || part_reads_as(field->name, "transfer-encoding"))
        return "a field could be taken for its length";
    return NULL;
}

const char *field_read(struct head_part line, struct fields *fields)
{
    struct head_field field = { .name = { line.at, 0 } };
    const char *colon = memchr(line.at, ':', line.len);

    if (!colon)
        return "a field has no colon";
    field.name.len = (size_t)(colon - line.at);
    field.value = trimmed((struct head_part){ colon + 1, line.len - field.name.len - 1 });
    if (!part_is_token(field.name) || !part_is_value(field.value))
        return "a field has a byte that it must not have";
    if (fields->count == HEAD_FIELDS_MAX)
        return "it has too many fields";
    fields->items[fields->count++] = field;
    return note(&field, fields);
}

bool field_is_ours(const struct head_field *field)
{
    static const char *const names[] = {
        "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "upgrade",
        "te",         "trailer",    "http2-settings",   "transfer-encoding",   "content-length"
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (part_is(field->name, names[i]))
            return true;
    return false;
}
