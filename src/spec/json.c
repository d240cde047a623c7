/* JSON by jansson, which is strict.  It knows no lines of values, so a second walk over the text,
 * by then known to be well-formed, counts them. */

#include "spec/node.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;

    return found ? (int)(found - digits) : -1;
}

/* {"=hex":"..."} stands for a string that is no UTF-8.  No variable can have such a name, so it is
 * never a mapping that somebody meant. */
static bool is_hex(const json_t *json)
{
    return json_is_object(json) && json_object_size(json) == 1 && json_is_string(json_object_get(json, "=hex"));
}

static bool read_hex(const char *hex, struct node *node)
{
    struct text text = TEXT_NONE;

    for (; *hex; hex += 2) {
        int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);
        char byte = (char)(high * 16 + low);

        if (low < 0 || !byte) {
            text_free(&text);
            return false;
        }
        text_add_bytes(&text, &byte, 1);
    }
    node->kind = NODE_STRING;
    node->text = text_steal(&text);
    return true;
}

static bool convert(json_t *json, struct node *node, unsigned depth);

static bool convert_items(json_t *json, struct node *node, unsigned depth)
{
    json_t *value;
    size_t index;

    if (json_is_array(json)) {
        node->kind = NODE_LIST;
        json_array_foreach(json, index, value) if (!convert(value, array_add(node), depth + 1)) return false;
        return true;
    }
    node->kind = NODE_MAP;
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at)) {
        struct node *below = array_add(node);

        below->key = text_copy(json_object_iter_key(at));
        if (!convert(json_object_iter_value(at), below, depth + 1))
            return false;
    }
    return true;
}

/* False if it is nested too deeply or has malformed bytes. */
static bool convert(json_t *json, struct node *node, unsigned depth)
{
    if (depth >= NODE_DEPTH_MAX)
        return false;
    if (is_hex(json))
        return read_hex(json_string_value(json_object_get(json, "=hex")), node);
    switch (json_typeof(json)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return convert_items(json, node, depth);
    case JSON_STRING:
        node->kind = NODE_STRING;
        node->text = text_copy(json_string_value(json));
        break;
    case JSON_INTEGER:
        node->kind = NODE_NUMBER;
        node->text = text_format("%lld", (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        node->kind = NODE_NUMBER;
        node->text = text_format("%.17g", json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        node->kind = NODE_BOOL;
        node->text = text_copy(json_is_true(json) ? "true" : "false");
        break;
    case JSON_NULL:
        node->kind = NODE_NULL;
        break;
    }
    return true;
}

/* The second walk.  `at` never passes the NUL behind the text. */
struct walk {
    const char *at;
    unsigned line;
};

static void skip_space(struct walk *walk)
{
    for (; *walk->at && strchr(" \t\r\n,:", *walk->at); walk->at++)
        walk->line += *walk->at == '\n';
}

/* A string, or a number or word; neither can hold a line end. */
static void skip_scalar(struct walk *walk)
{
    if (*walk->at != '"') {
        walk->at += strcspn(walk->at, " \t\r\n,:]}");
        return;
    }
    walk->at++;
    while (*walk->at && *walk->at != '"')
        walk->at += walk->at[0] == '\\' && walk->at[1] ? 2 : 1;
    walk->at += *walk->at == '"';
}

static void set_lines(struct walk *walk, struct node *node)
{
    skip_space(walk);
    node->line = walk->line;
    if (*walk->at != '{' && *walk->at != '[') {
        skip_scalar(walk);
        return;
    }
    if (node->kind == NODE_STRING) { /* {"=hex":"..."} */
        while (*walk->at && *walk->at != '}') {
            walk->at += *walk->at == '{';
            skip_space(walk);
            if (*walk->at != '}')
                skip_scalar(walk);
            skip_space(walk);
        }
        walk->at += *walk->at == '}';
        return;
    }
    walk->at++;
    for (size_t i = 0; i < node->len; i++) {
        if (node->kind == NODE_MAP) {
            skip_space(walk);
            skip_scalar(walk);
        }
        set_lines(walk, &node->items[i]);
    }
    skip_space(walk);
    walk->at += *walk->at != '\0';
}

int node_read_json(const char *bytes, size_t len, const char *shown, struct node *out, struct error *err)
{
    return node_read_long_json(bytes, len, NODE_BYTES_MAX, shown, out, err);
}

int node_read_long_json(const char *bytes, size_t len, size_t most, const char *shown, struct node *out,
                        struct error *err)
{
    json_error_t problem;

    *out = NODE_NONE;
    if (len > most)
        return error_set(err, ERROR_INVALID, "%s: is larger than %zu MB", shown, most >> 20);

    json_t *json = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);

    if (!json) {
        autotext struct text what = TEXT_NONE;

        text_add_inert(&what, problem.text); /* quotes the text */
        return error_set(err, ERROR_INVALID, "%s:%d: this is no JSON: %.200s", shown, problem.line,
                         text_string(&what));
    }

    bool done = convert(json, out, 0);

    json_decref(json);
    if (!done) {
        node_free(out);
        return error_set(err, ERROR_INVALID, "%s: nested too deeply, or malformed \"=hex\"", shown);
    }

    char *whole = text_format("%.*s", (int)len, bytes);
    struct walk walk = { whole, 1 };

    set_lines(&walk, out);
    free(whole);
    return 0;
}
