#include "net/answer.h"

#include "base/text.h"

#include <string.h>

/* "HTTP/1.1 200 OK"; some leave out the last two parts of that. */
static const char *read_first_line(struct head_part line, struct answer *answer)
{
    static const char wrong[] = "its first line is not VERSION STATUS REASON";
    struct head_part version = part_until(&line, ' '), status = part_until(&line, ' ');

    if (version.len != strlen("HTTP/1.1") ||
        (memcmp(version.at, "HTTP/1.1", version.len) != 0 && memcmp(version.at, "HTTP/1.0", version.len) != 0))
        return "its version is neither HTTP/1.1 nor HTTP/1.0";
    answer->old = version.at[version.len - 1] == '0';
    if (status.len != 3)
        return wrong;
    for (size_t i = 0; i < status.len; i++) {
        if (status.at[i] < '0' || status.at[i] > '9')
            return wrong;
        answer->status = answer->status * 10 + (unsigned)(status.at[i] - '0');
    }
    answer->reason = line;
    for (size_t i = 0; i < line.len; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7f)
            return wrong;
    return answer->status < 100 || answer->status > 599 ? wrong : NULL;
}

static const char *finish(struct answer *answer, bool to_head)
{
    const struct fields *fields = &answer->fields;
    bool interim = answer->status < 200;

    if (fields->coded && (answer->old || interim || answer->status == 204))
        return "it must have no Transfer-Encoding";
    if (interim && fields->body == HEAD_LENGTH)
        return "it must have no Content-Length";
    answer->length = fields->length;
    answer->body = fields->body == HEAD_NO_BODY ? HEAD_UNTIL_CLOSE : fields->body;
    if (to_head || interim || answer->status == 204 || answer->status == 304)
        answer->body = HEAD_NO_BODY;
    return NULL;
}

static const char *read_line(struct head_part line, struct answer *answer, bool first, bool to_head)
{
    if (first)
        return read_first_line(line, answer);
    return line.len ? field_read(line, &answer->fields) : finish(answer, to_head);
}

enum head_read answer_read(const char *bytes, size_t len, bool to_head, struct answer *out, const char **why)
{
    struct head_part line;
    size_t at = 0;
    enum head_read read;

    *out = (struct answer){ 0 };
    for (bool first = true; (read = line_read(bytes, len, &at, &line)) != HEAD_MORE; first = false) {
        *why = read == HEAD_BAD ? "a line of it does not end with CR LF" : read_line(line, out, first, to_head);
        if (*why)
            return HEAD_BAD;
        out->size = at;
        if (!first && line.len == 0)
            return HEAD_WHOLE;
    }
    *why = "its head is too long";
    return len >= ANSWER_MAX ? HEAD_BAD : HEAD_MORE;
}

ssize_t answer_heads(struct text *heard, const char *bytes, size_t len, bool to_head, answer_taker *take,
                     void *whose)
{
    static struct answer answer; /* large, and used here only */
    size_t before = heard->len, used = 0;
    const char *why;

    text_add_bytes(heard, bytes, len);
    while (used < heard->len) {
        enum head_read read = answer_read(heard->data + used, heard->len - used, to_head, &answer, &why);

        if (read == HEAD_MORE)
            break;
        if (read == HEAD_BAD || !take(whose, &answer))
            return -1;
        used += answer.size;
        if (answer.status >= 200) {
            text_free(heard);
            return (ssize_t)(used - before);
        }
    }
    text_drop(heard, used);
    return (ssize_t)len;
}

bool answer_in_chunks(const struct answer *answer, bool old)
{
    return !old && (answer->body == HEAD_CHUNKED || answer->body == HEAD_UNTIL_CLOSE);
}

/* An answer without a body may still say how long one would be. */
static void add_length(const struct answer *answer, bool old, struct text *out)
{
    bool bare = answer->status < 200 || answer->status == 204;

    if (!bare && answer->fields.body == HEAD_LENGTH)
        text_addf(out, "Content-Length: %llu\r\n", (unsigned long long)answer->length);
    else if (answer_in_chunks(answer, old) || (!bare && !old && answer->fields.coded))
        text_add(out, "Transfer-Encoding: chunked\r\n");
}

void answer_write(const struct answer *answer, bool old, bool last, struct text *out)
{
    text_addf(out, "HTTP/1.1 %u ", answer->status);
    text_add_bytes(out, answer->reason.at, answer->reason.len);
    text_add(out, "\r\n");
    for (size_t i = 0; i < answer->fields.count; i++) {
        const struct head_field *field = &answer->fields.items[i];

        if (field_is_ours(field))
            continue;
        text_add_bytes(out, field->name.at, field->name.len);
        text_add(out, ": ");
        text_add_bytes(out, field->value.at, field->value.len);
        text_add(out, "\r\n");
    }
    add_length(answer, old, out);
    if (answer->status == 101)
        text_add(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    else if (last && answer->status >= 200)
        text_add(out, "Connection: close\r\n");
    text_add(out, "\r\n");
}
