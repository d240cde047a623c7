#include "spec/node.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 100 };

void node_free(struct node *node)
{
    for (size_t i = 0; i < node->len; i++)
        node_free(&node->items[i]);
    free(node->items);
    free(node->key);
    free(node->text);
    *node = NODE_NONE;
}

struct node *node_get(const struct node *map, const char *key)
{
    for (size_t i = 0; i < map->len; i++)
        if (map->items[i].key && strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

struct node *node_add(struct node *parent, const char *key, enum node_kind kind, const char *text)
{
    struct node *node = array_add(parent);

    node->kind = kind;
    node->key = key ? text_copy(key) : NULL;
    node->text = text ? text_copy(text) : NULL;
    return node;
}

struct node *node_make(struct node *map, const char *path)
{
    const char *dot;

    while ((dot = strchr(path, '.'))) {
        char *name = text_format("%.*s", (int)(dot - path), path);
        struct node *below = node_get(map, name);

        map = below ? below : node_add(map, name, NODE_MAP, NULL);
        path = dot + 1;
        free(name);
    }
    return node_add(map, path, NODE_NULL, NULL);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct node *)a)->key, ((const struct node *)b)->key);
}

void node_add_bytes(struct node *map, const char *key, const char *bytes)
{
    autotext struct text shown = TEXT_NONE, exact = TEXT_NONE;
    autofree char *other = text_format("%s_bytes", key);

    if (text_is_utf8(bytes)) {
        node_add(map, key, NODE_STRING, bytes);
        return;
    }
    text_add_inert(&shown, bytes);
    text_add_base64(&exact, bytes, strlen(bytes));
    node_add(map, key, NODE_STRING, text_string(&shown));
    node_add(map, other, NODE_STRING, text_string(&exact));
}

static void write_string(const char *string, struct text *out)
{
    if (text_is_utf8(string)) {
        text_add_json(out, string);
        return;
    }
    text_add(out, "{\"=hex\":\"");
    for (; *string; string++)
        text_addf(out, "%02x", (unsigned char)*string);
    text_add(out, "\"}");
}

static void write_items(struct node *node, struct text *out)
{
    if (node->kind == NODE_MAP && node->len)
        qsort(node->items, node->len, sizeof *node->items, by_key);
    for (size_t i = 0; i < node->len; i++) {
        if (i)
            text_add(out, ",");
        if (node->kind == NODE_MAP) {
            text_add_json(out, node->items[i].key);
            text_add(out, ":");
        }
        node_write_json(&node->items[i], out);
    }
}

void node_write_json(struct node *node, struct text *out)
{
    switch (node->kind) {
    case NODE_NULL:
        text_add(out, "null");
        break;
    case NODE_BOOL:
    case NODE_NUMBER:
        text_add(out, node->text);
        break;
    case NODE_STRING:
        write_string(node->text, out);
        break;
    case NODE_LIST:
        text_add(out, "[");
        write_items(node, out);
        text_add(out, "]");
        break;
    case NODE_MAP:
        text_add(out, "{");
        write_items(node, out);
        text_add(out, "}");
        break;
    }
}

void node_show_text(const char *value, struct text *out)
{
    autotext struct text inert = TEXT_NONE;
    size_t len;

    text_add_inert(&inert, value);
    len = inert.len < SHOWN_MAX ? inert.len : SHOWN_MAX;
    while (len < inert.len && len && (inert.data[len] & 0xc0) == 0x80)
        len--; /* not in the middle of a letter */
    text_add(out, "'");
    if (len)
        text_add_bytes(out, inert.data, len);
    text_add(out, len < inert.len ? "...'" : "'");
}

void node_show(const struct node *node, struct text *out)
{
    static const char *const names[] = {
        [NODE_NULL] = "nothing", [NODE_LIST] = "a list", [NODE_MAP] = "a mapping"
    };

    if (node->text)
        node_show_text(node->text, out);
    else
        text_add(out, names[node->kind]);
}
