#include "gateway/take.h"

#include "base/array.h"
#include "base/error.h"
#include "base/hostname.h"
#include "base/own.h"
#include "base/sha256.h"
#include "net/fields.h"
#include "net/head.h"
#include "spec/members.h"
#include "spec/node.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static void message_free(struct take_message *message)
{
    for (size_t i = 0; i < message->fields.len; i++) {
        free(message->fields.items[i].name);
        free(message->fields.items[i].value);
    }
    free(message->fields.items);
    text_free(&message->body);
    free(message->sha256);
}

void take_free(struct take *take)
{
    free(take->host);
    free(take->method);
    free(take->path);
    free(take->reason);
    message_free(&take->request);
    message_free(&take->response);
    *take = TAKE_NONE;
}

/* Secrets */

bool take_is_secret(const char *name)
{
    static const char *const words[] = { "auth",    "cookie",     "token",     "secret", "passw", "key",
                                         "session", "credential", "signature", "jwt",    "otp" };

    if (strcasecmp(name, "www-authenticate") == 0) /* it asks for a login, and clients need to see it */
        return false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static char *hash_of(const char *bytes)
{
    struct sha256 *hash = sha256_new();
    unsigned char sum[SHA256_BYTES];
    char text[SHA256_TEXT];

    sha256_add(hash, bytes, strlen(bytes));
    sha256_end(hash, sum);
    sha256_text(sum, text);
    return text_copy(text);
}

void take_add_field(struct take_message *message, const char *name, const char *value, bool secrets)
{
    bool hashed = !secrets && take_is_secret(name);

    *array_add(&message->fields) =
        (struct take_field){ text_copy(name), hashed ? hash_of(value) : text_copy(value), hashed };
}

/* Fields: [{"name", "value"}] or, of secrets, [{"name", "sha256"}] */

static const char *text_of(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_STRING ? node->text : NULL;
}

static bool is_hash(const char *text)
{
    return strlen(text) == SHA256_TEXT - 1 && strspn(text, "0123456789abcdef") == SHA256_TEXT - 1;
}

/* As strictly as if somebody had sent it: what is served of it must be one field. */
static bool is_field(const char *name, const char *value)
{
    struct fields ignored = { .count = 0 };
    autofree char *line = text_format("%s:%s", name, value);

    (void)field_read((struct head_part){ line, strlen(line) }, &ignored);
    return ignored.count == 1 && ignored.items[0].name.len == strlen(name);
}

static bool read_fields(const struct node *node, void *into)
{
    struct take_fields *list = into;

    if (node->kind != NODE_LIST || node->len > HEAD_FIELDS_MAX)
        return false;
    for (size_t i = 0; i < node->len; i++) {
        const struct node *map = &node->items[i];
        const char *name = text_of(map, "name"), *value = text_of(map, "value"), *hash = text_of(map, "sha256");

        if (map->kind != NODE_MAP || !name || !value == !hash || !is_field(name, value ? value : hash))
            return false;
        *array_add(list) = (struct take_field){ text_copy(name), text_copy(value ? value : hash), !value };
    }
    return true;
}

static void write_fields(const void *from, struct node *out)
{
    const struct take_fields *list = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < list->len; i++) {
        struct node *map = node_add(out, NULL, NODE_MAP, NULL);

        node_add(map, "name", NODE_STRING, list->items[i].name);
        node_add(map, list->items[i].hashed ? "sha256" : "value", NODE_STRING, list->items[i].value);
    }
}

/* A body: its text, or {"base64": ...} */

static bool read_body(const struct node *node, void *into)
{
    struct text *body = into;
    const char *coded = node->kind == NODE_MAP && node->len == 1 ? text_of(node, "base64") : NULL;

    if (node->kind == NODE_STRING)
        text_add(body, node->text);
    else if (!coded || !text_add_from_base64(body, coded))
        return false;
    return body->len <= TAKE_BODY_MAX;
}

/* What would be longer as text, since so much of it must be escaped, is no text for anybody. */
static bool is_plain(const struct text *body)
{
    autotext struct text written = TEXT_NONE;

    if (strlen(text_string(body)) != body->len || !text_is_utf8(text_string(body)))
        return false;
    text_add_json(&written, text_string(body));
    return body->len < 64 || written.len <= body->len / 3 * 4;
}

static void write_body(const void *from, struct node *out)
{
    const struct text *body = from;
    autotext struct text coded = TEXT_NONE;

    if (is_plain(body)) {
        out->kind = NODE_STRING;
        out->text = text_copy(text_string(body));
        return;
    }
    text_add_base64(&coded, body->data, body->len);
    out->kind = NODE_MAP;
    node_add(out, "base64", NODE_STRING, text_string(&coded));
}

static const struct member_kind member_fields = { "a list of fields", read_fields, write_fields },
                                member_body = { "a text, or base64", read_body, write_body };

/* Messages */

#define MESSAGE(member, kind)                                                                                  \
    {                                                                                                          \
#member, &(kind), offsetof(struct take_message, member), false                                         \
    }

static const struct member message_rows[] = {
    { "headers", &member_fields, offsetof(struct take_message, fields), false },
    MESSAGE(body, member_body),
    MESSAGE(size, member_number),
    MESSAGE(sha256, member_text),
    { "cut", &member_flag, offsetof(struct take_message, cut), true },
};

static bool read_message(const struct node *node, void *into)
{
    return node->kind == NODE_MAP && !members_read(message_rows, ARRAY_LEN(message_rows), node, into);
}

static void write_message(const void *from, struct node *out)
{
    members_write(message_rows, ARRAY_LEN(message_rows), from, out);
}

static const struct member_kind member_message = { "what one side said", read_message, write_message };

#define TAKE(member, kind)                                                                                     \
    {                                                                                                          \
#member, &(kind), offsetof(struct take, member), false                                                 \
    }

static const struct member rows[] = {
    TAKE(time, member_date),     TAKE(host, member_text),   TAKE(port, member_number),
    TAKE(method, member_text),   TAKE(path, member_text),   TAKE(request, member_message),
    TAKE(status, member_number), TAKE(reason, member_text), TAKE(response, member_message),
};

void take_write(const struct take *take, struct text *out)
{
    autonode struct node node = NODE_NONE;

    members_write(rows, ARRAY_LEN(rows), take, &node);
    node_write_json(&node, out);
    text_add(out, "\n");
}

/* NULL, or which part of it no exchange could have had. */
static const char *check(const struct take *take)
{
    struct hostname host;
    struct head_part method = { take->method, strlen(take->method) };

    if (hostname_read(take->host, strlen(take->host), &host) || strcmp(host.text, take->host) != 0)
        return "host";
    if (take->port < 1 || take->port > UINT16_MAX)
        return "port";
    if (method.len >= HEAD_METHOD_MAX || !part_is_token(method))
        return "method";
    if ((take->path[0] != '/' && strcmp(take->path, "*") != 0) || strlen(take->path) > HEAD_MAX)
        return "path";
    if ((take->status < 100 || take->status > 599) && (take->status || !take->response.cut))
        return "status";
    if (!is_field("x", take->reason) || strlen(take->reason) > HEAD_MAX)
        return "reason";
    return is_hash(take->request.sha256) && is_hash(take->response.sha256) ? NULL : "sha256";
}

int take_read(const char *line, size_t len, const char *shown, struct take *out, struct error *err)
{
    autonode struct node node = NODE_NONE;
    autotake struct take take = TAKE_NONE;
    const struct member *wrong;
    const char *why;

    if (node_read_long_json(line, len, TAKE_LINE_MAX, shown, &node, err) < 0)
        return -1;
    if (node.kind != NODE_MAP)
        return error_set(err, ERROR_INVALID, "%s: is no exchange", shown);
    wrong = members_read(rows, ARRAY_LEN(rows), &node, &take);
    if (wrong)
        return error_set(err, ERROR_INVALID, "%s: %s must be there, as it is recorded", shown, wrong->key);
    why = check(&take);
    if (why)
        return error_set(err, ERROR_INVALID, "%s: %s is none that an exchange can have", shown, why);
    *out = take;
    take = TAKE_NONE;
    return 0;
}
