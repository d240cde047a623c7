#pragma once

/* A document as a tree, the same for YAML and JSON, with the line of every value.  The readers
 * refuse whatever two programs could read differently: duplicate keys, anchors, tags, byte order
 * marks, characters that hide or reorder text. */

#include <stdbool.h>
#include <stddef.h>

struct error;
struct text;

enum node_kind { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_STRING, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    unsigned line; /* from 1; 0: made by a program */
    char *key;     /* in a mapping */
    char *text;    /* of a scalar; a bool's is "true" or "false" */
    struct node *items;
    size_t len, cap;
};

/* The keys of one mapping are compared with each other one by one, hence their bound. */
enum { NODE_DEPTH_MAX = 32, NODE_BYTES_MAX = 1 << 20, NODE_KEYS_MAX = 1024 };

#define NODE_NONE ((struct node){ 0 })
#define autonode __attribute__((cleanup(node_free)))

void node_free(struct node *node);

/* `shown` names the document in messages.  On failure `out` is empty. */
int node_read_yaml(const char *bytes, size_t len, const char *shown, struct node *out, struct error *err);
int node_read_json(const char *bytes, size_t len, const char *shown, struct node *out, struct error *err);

/* The same, of at most `most` bytes in place of NODE_BYTES_MAX. */
int node_read_long_json(const char *bytes, size_t len, size_t most, const char *shown, struct node *out,
                        struct error *err);

/* NULL if the mapping has no such key. */
struct node *node_get(const struct node *map, const char *key);

/* Adds a value; its address holds until the next one is added to the same parent. */
struct node *node_add(struct node *parent, const char *key, enum node_kind kind, const char *text);

/* Adds bytes that a program outside reads: as a string, and if they are no UTF-8, made inert, with the bytes
 * themselves in base64 as KEY_bytes beside it. */
void node_add_bytes(struct node *map, const char *key, const char *bytes);

/* The value at a path with dots, made with the mappings above it if it is not there. */
struct node *node_make(struct node *map, const char *path);

/* As JSON with sorted keys and no white space.  A string that is no UTF-8 becomes
 * {"=hex":"<hexadecimal>"}, which node_read_json() turns back. */
void node_write_json(struct node *node, struct text *out);

/* The value as people would call it: its text, inert and not too long, or "a list". */
void node_show(const struct node *node, struct text *out);
void node_show_text(const char *value, struct text *out);
