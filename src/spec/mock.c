#include "spec/mock.h"

#include "base/error.h"
#include "base/own.h"
#include "net/fields.h"
#include "spec/network.h"
#include "spec/node.h"
#include "spec/rule_file.h"
#include "spec/suggest.h"

#include <stdlib.h>
#include <string.h>

struct mock *mock_new(void)
{
    struct mock *mock = memory_zero(sizeof *mock);

    mock->status = MOCK_STATUS_USUAL;
    return mock;
}

void mock_free(struct mock *mock)
{
    if (!mock)
        return;
    strings_free(&mock->headers);
    text_free(&mock->body);
    free(mock->file);
    free(mock);
}

struct mock *mock_copy(const struct mock *mock)
{
    struct mock *copy;

    if (!mock)
        return NULL;
    copy = mock_new();
    copy->status = mock->status;
    strings_copy(&copy->headers, &mock->headers);
    text_add_bytes(&copy->body, text_string(&mock->body), mock->body.len);
    copy->file = mock->file ? text_copy(mock->file) : NULL;
    return copy;
}

static int compare_bytes(const struct text *a, const struct text *b)
{
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return a->len ? memcmp(a->data, b->data, a->len) : 0;
}

int mock_compare(const struct mock *a, const struct mock *b)
{
    int order = !a - !b;

    if (order || !a || !b)
        return order;
    order = (int)a->status - (int)b->status;
    if (order == 0)
        order = strcmp(a->file ? a->file : "", b->file ? b->file : "");
    if (order == 0)
        order = strings_compare(&a->headers, &b->headers);
    return order ? order : compare_bytes(&a->body, &b->body);
}

/* Reading */

static bool refuse(struct text *why, const char *what)
{
    text_add(why, what);
    return false;
}

static bool read_status(const struct node *node, struct mock *mock, struct text *why)
{
    unsigned long value = node->text && strspn(node->text, "0123456789") == 3 && !node->text[3]
                              ? strtoul(node->text, NULL, 10)
                              : 0;

    mock->status = (unsigned)value;
    return (value >= 200 && value <= 599) || refuse(why, "has a status that is not from 200 to 599");
}

/* As strictly as what a server says, and framed by nobody but us. */
static bool add_header(const char *line, struct mock *mock, struct text *why)
{
    struct fields fields = { .count = 0 };
    const char *wrong = field_read((struct head_part){ line, strlen(line) }, &fields);

    if (mock->headers.len >= MOCK_HEADERS_MAX)
        return refuse(why, "has more than 64 headers");
    if (fields.count && field_is_ours(&fields.items[0]))
        return refuse(why, "has a header that is said between neighbours or frames the body (Connection, "
                           "Content-Length, Transfer-Encoding and their like); Cove writes these itself");
    if (wrong)
        return refuse(why, "has a header that is none: a name, and a text on one line");
    strings_add(&mock->headers, line);
    return true;
}

static bool add_pair(const char *name, const struct node *value, struct mock *mock, struct text *why)
{
    autofree char *line = NULL;

    if (value->kind == NODE_LIST || value->kind == NODE_MAP || !value->text)
        return refuse(why, "has a header that is no text");
    if (!name) /* whole already */
        return add_header(value->text, mock, why);
    line = text_format("%s: %s", name, value->text);
    return add_header(line, mock, why);
}

/* { Name: value }, { Name: [value, value] } or [ "Name: value" ]. */
static bool read_headers(const struct node *node, struct mock *mock, struct text *why)
{
    if (node->kind != NODE_MAP && node->kind != NODE_LIST)
        return refuse(why, "has headers that are no mapping");
    for (size_t i = 0; i < node->len; i++) {
        const struct node *item = &node->items[i];
        bool many = node->kind == NODE_MAP && item->kind == NODE_LIST;

        for (size_t n = 0; n < (many ? item->len : 1); n++)
            if (!add_pair(item->key, many ? &item->items[n] : item, mock, why))
                return false;
    }
    return true;
}

static bool is_text(const struct node *node, struct text *why)
{
    if (node->text && node->kind != NODE_NULL)
        return true;
    text_addf(why, "has a %s that is no text", node->key);
    return false;
}

static bool read_body(const struct node *node, struct mock *mock, struct text *why)
{
    if (!is_text(node, why))
        return false;
    text_add(&mock->body, node->text);
    return true;
}

static bool read_base64(const struct node *node, struct mock *mock, struct text *why)
{
    return is_text(node, why) &&
           (text_add_from_base64(&mock->body, node->text) || refuse(why, "has a body that is not base64"));
}

static bool read_file(const struct node *node, struct mock *mock, struct text *why)
{
    if (!is_text(node, why))
        return false;
    if (!*node->text)
        return refuse(why, "has a file without a name");
    free(mock->file);
    mock->file = text_copy(node->text);
    return true;
}

static const struct {
    const char *name;
    bool (*read)(const struct node *node, struct mock *mock, struct text *why);
    bool content; /* of which there is one */
} keys[] = {
    { "status", read_status, false }, { "headers", read_headers, false }, { "body", read_body, true },
    { "base64", read_base64, true },  { "file", read_file, true },
};

static bool read_key(const struct node *node, struct mock *mock, size_t *contents, struct text *why)
{
    struct suggest near = SUGGEST_NONE;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        suggest_offer(&near, node->key, keys[i].name);
        if (strcmp(keys[i].name, node->key) != 0)
            continue;
        *contents += keys[i].content;
        if (*contents > 1)
            return refuse(why, "must have one of body, base64 and file");
        return keys[i].read(node, mock, why);
    }
    text_add(why, "has the key ");
    node_show_text(node->key, why);
    text_add(why, ", which a mock does not have");
    suggest_add(&near, "", why);
    return refuse(why, "; there are status, headers, body, base64 and file");
}

static bool read_map(const struct node *node, struct mock *mock, struct text *why)
{
    size_t contents = 0;

    if (node->kind != NODE_MAP)
        return refuse(why, "must be a mapping with status, headers, and body or file");
    for (size_t i = 0; i < node->len; i++)
        if (!read_key(&node->items[i], mock, &contents, why))
            return false;
    if (contents && (mock->status == 204 || mock->status == 304))
        return refuse(why, "has a body, and its status is of answers that have none");
    return true;
}

struct mock *mock_read_node(const struct node *node, struct text *why)
{
    struct mock *mock = mock_new();

    if (read_map(node, mock, why))
        return mock;
    mock_free(mock);
    return NULL;
}

/* Writing */

static bool is_plain(const struct text *body)
{
    return strlen(text_string(body)) == body->len && text_is_utf8(text_string(body));
}

void mock_write(const struct mock *mock, struct node *out)
{
    autofree char *status = text_format("%u", mock->status);
    autotext struct text coded = TEXT_NONE;
    struct node *headers;

    node_add(out, "status", NODE_NUMBER, status);
    headers = node_add(out, "headers", NODE_LIST, NULL);
    for (size_t i = 0; i < mock->headers.len; i++)
        node_add(headers, NULL, NODE_STRING, mock->headers.items[i]);
    if (mock->file) {
        node_add(out, "file", NODE_STRING, mock->file);
    } else if (is_plain(&mock->body) && mock->body.len) {
        node_add(out, "body", NODE_STRING, mock->body.data);
    } else if (mock->body.len) {
        text_add_base64(&coded, mock->body.data, mock->body.len);
        node_add(out, "base64", NODE_STRING, text_string(&coded));
    }
}

/* Files */

bool mock_is_relative(const struct mock *mock)
{
    return mock->file && mock->file[0] != '/';
}

int mocks_place(struct rule_list *rules, const char *policy, const struct form_context *context,
                struct error *err)
{
    for (size_t i = 0; i < rules->len; i++) {
        struct mock *mock = rules->items[i].mock;
        autofree char *file = NULL;

        if (!mock || !mock->file)
            continue;
        if (rule_file_path(&rules->items[i], "mock", mock->file, policy, context, &file, err) < 0)
            return -1;
        free(mock->file);
        mock->file = steal_ptr(&file);
    }
    return 0;
}

static int load(struct rule *rule, const struct file_rules *trusted, struct error *err)
{
    struct mock *mock = rule->mock;
    autotext struct text bytes = TEXT_NONE;

    if (rule_file_read(rule, "mock", mock->file, trusted, &bytes, err) < 0)
        return -1;
    text_free(&mock->body);
    mock->body = bytes;
    bytes = TEXT_NONE;
    free(mock->file);
    mock->file = NULL;
    return 0;
}

int mocks_load(struct rule_list *rules, const struct file_rules *trusted, struct error *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < rules->len; i++) {
        struct mock *mock = rules->items[i].mock;

        if (mock && mock->file && load(&rules->items[i], trusted, err) < 0)
            return -1;
        bytes += mock ? mock->body.len : 0;
        if (bytes > MOCKS_BYTES_MAX)
            return error_set(err, ERROR_INVALID,
                             "network.rules: the bodies of mocks are more than %d MB together",
                             MOCKS_BYTES_MAX >> 20);
    }
    return 0;
}
