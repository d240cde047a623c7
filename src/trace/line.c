#include "trace/line.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "spec/members.h"

#include <stdlib.h>
#include <string.h>

/* Numbers that every reader of JSON keeps. */
#define SEQ_MAX ((UINT64_C(1) << 53) - 1)

#define AT(member) offsetof(struct trace_line, member)

/* All but `data`, which is moved. */
static const struct member members[] = {
    { "kind", &member_text, AT(kind) }, { "mono_us", &member_number, AT(mono_us) },
    { "prev", &member_text, AT(prev) }, { "seq", &member_number, AT(seq) },
    { "time", &member_date, AT(time) },
};

/* The tree gets another owner: a copy of a megabyte would help nobody.  A key stays where it is. */
static void move(struct node *from, struct node *to)
{
    char *from_key = from->key, *to_key = to->key;

    *to = *from;
    *from = (struct node){ .key = from_key };
    to->key = to_key;
}

void trace_line_free(struct trace_line *line)
{
    free(line->prev);
    free(line->kind);
    node_free(&line->data);
    *line = TRACE_LINE_NONE;
}

static bool is_hash(const char *text)
{
    return strlen(text) == SHA256_TEXT - 1 && !text[strspn(text, "0123456789abcdef")];
}

bool trace_line_read(const char *bytes, size_t len, struct trace_line *out)
{
    autonode struct node node = NODE_NONE;
    struct trace_line line = TRACE_LINE_NONE;
    struct error ignored;

    *out = TRACE_LINE_NONE;
    /* Everything but an object is refused before a reader of JSON sees it: most of what is torn is. */
    if (len < 2 || len > TRACE_LINE_MAX || bytes[0] != '{' || bytes[len - 1] != '}' ||
        node_read_json(bytes, len, "trace", &node, &ignored) < 0)
        return false;

    struct node *data = node.kind == NODE_MAP ? node_get(&node, "data") : NULL;

    if (data && data->kind == NODE_MAP && !members_read(members, ARRAY_LEN(members), &node, &line) &&
        line.seq > 0 && line.seq <= SEQ_MAX && is_hash(line.prev)) {
        *out = line;
        move(data, &out->data);
        return true;
    }
    trace_line_free(&line);
    return false;
}

void trace_line_write(struct trace_line *line, struct text *out)
{
    autonode struct node node = NODE_NONE;

    members_write(members, ARRAY_LEN(members), line, &node);
    line->data.kind = NODE_MAP;
    move(&line->data, node_add(&node, "data", NODE_MAP, NULL));
    node_write_json(&node, out);
    move(node_get(&node, "data"), &line->data);
}

void trace_hash(const void *bytes, size_t len, char out[SHA256_TEXT])
{
    struct sha256 *sha256 = sha256_new();
    unsigned char sum[SHA256_BYTES];

    sha256_add(sha256, bytes, len);
    sha256_end(sha256, sum);
    sha256_text(sum, out);
}

uint64_t trace_line_torn(const struct trace_line *line)
{
    static const struct member member = { "torn", &member_number, 0, false };
    uint64_t torn;

    return strcmp(line->kind, TRACE_GAP) == 0 && !members_read(&member, 1, &line->data, &torn) ? torn : 0;
}
