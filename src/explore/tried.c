#include "explore/tried.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "explore/score.h"
#include "spec/node.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum member_kind { MEMBER_NUMBER, MEMBER_TEXT, MEMBER_SCORE, MEMBER_LIST };

/* A new member is a row here. */
static const struct {
    const char *key;
    enum member_kind kind;
    size_t at;
} members[] = {
    { "added", MEMBER_NUMBER, offsetof(struct tried, added) },
    { "attempts", MEMBER_NUMBER, offsetof(struct tried, attempts) },
    { "error", MEMBER_TEXT, offsetof(struct tried, error) },
    { "exit", MEMBER_NUMBER, offsetof(struct tried, exit_code) },
    { "files", MEMBER_NUMBER, offsetof(struct tried, files) },
    { "id", MEMBER_TEXT, offsetof(struct tried, id) },
    { "output", MEMBER_LIST, offsetof(struct tried, output) },
    { "peak_kib", MEMBER_NUMBER, offsetof(struct tried, peak_kib) },
    { "reason", MEMBER_TEXT, offsetof(struct tried, reason) },
    { "removed", MEMBER_NUMBER, offsetof(struct tried, removed) },
    { "score", MEMBER_SCORE, offsetof(struct tried, score) },
    { "score_by", MEMBER_TEXT, offsetof(struct tried, score_by) },
    { "score_exit", MEMBER_NUMBER, offsetof(struct tried, score_exit) },
    { "score_output", MEMBER_LIST, offsetof(struct tried, score_output) },
    { "tampered", MEMBER_LIST, offsetof(struct tried, tampered) },
    { "task", MEMBER_NUMBER, offsetof(struct tried, task) },
    { "try", MEMBER_NUMBER, offsetof(struct tried, number) },
    { "wall_us", MEMBER_NUMBER, offsetof(struct tried, wall_us) },
};

void tried_free(struct tried *tried)
{
    free(tried->id);
    free(tried->reason);
    free(tried->score);
    free(tried->score_by);
    free(tried->error);
    strings_free(&tried->tampered);
    strings_free(&tried->output);
    strings_free(&tried->score_output);
    *tried = TRIED_NONE;
}

struct tried tried_take(struct tried *tried)
{
    struct tried taken = *tried;

    *tried = TRIED_NONE;
    return taken;
}

/* --- writing --- */

static void write_list(const struct strings *list, const char *key, struct node *out)
{
    struct node *node = node_add(out, key, NODE_LIST, NULL);

    for (size_t i = 0; i < list->len; i++)
        node_add(node, NULL, NODE_STRING, list->items[i]);
}

static void write_member(const char *key, enum member_kind kind, const void *at, struct node *out)
{
    const char *text = kind == MEMBER_TEXT || kind == MEMBER_SCORE ? *(char *const *)at : NULL;
    autofree char *number =
        kind == MEMBER_NUMBER ? text_format("%llu", (unsigned long long)*(const uint64_t *)at) : NULL;

    if (kind == MEMBER_LIST)
        write_list(at, key, out);
    else if (kind == MEMBER_NUMBER)
        node_add(out, key, NODE_NUMBER, number);
    else if (!text)
        node_add(out, key, NODE_NULL, NULL);
    else
        node_add(out, key, kind == MEMBER_SCORE ? NODE_NUMBER : NODE_STRING, text);
}

void tried_node(const struct tried *tried, struct node *out)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        write_member(members[i].key, members[i].kind, (const char *)tried + members[i].at, out);
}

void tried_json(const struct tried *tried, struct text *out)
{
    autonode struct node node = { .kind = NODE_MAP };

    tried_node(tried, &node);
    node_write_json(&node, out);
}

/* --- reading --- */

static bool read_number(const struct node *node, uint64_t *out)
{
    const char *text = node->text;

    if (node->kind != NODE_NUMBER || !*text || strlen(text) > 18 || text[strspn(text, "0123456789")])
        return false;
    *out = strtoull(text, NULL, 10);
    return true;
}

/* What only a program of ours wrote has no other bytes; what somebody changed may. */
static char *inert(const char *string)
{
    struct text out = TEXT_NONE;

    text_add_inert(&out, string);
    return text_steal(&out);
}

static bool read_text(const struct node *node, char **out)
{
    if (node->kind == NODE_STRING)
        *out = inert(node->text);
    return node->kind == NODE_STRING || node->kind == NODE_NULL;
}

static bool read_score(const struct node *node, char **out)
{
    double score;

    if (node->kind == NODE_NULL)
        return true;
    if (node->kind != NODE_NUMBER || !score_read(node->text, &score))
        return false;
    *out = score_write(score);
    return true;
}

static bool read_list(const struct node *node, struct strings *out)
{
    if (node->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < node->len; i++) {
        if (node->items[i].kind != NODE_STRING)
            return false;
        strings_take(out, inert(node->items[i].text));
    }
    return true;
}

static bool read_member(const struct node *node, enum member_kind kind, void *at)
{
    switch (kind) {
    case MEMBER_NUMBER:
        return read_number(node, at);
    case MEMBER_TEXT:
        return read_text(node, at);
    case MEMBER_SCORE:
        return read_score(node, at);
    case MEMBER_LIST:
        return read_list(node, at);
    }
    return false;
}

static int read_members(const struct node *root, const char *shown, struct tried *out, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct node *node = node_get(root, members[i].key);

        if (node && !read_member(node, members[i].kind, (char *)out + members[i].at))
            return error_set(err, ERROR_INVALID, "%s: \"%s\" is of another kind", shown, members[i].key);
    }
    if (!out->number || !out->reason)
        return error_set(err, ERROR_INVALID, "%s: \"try\" or \"reason\" is missing", shown);
    return 0;
}

int tried_read(const char *bytes, size_t len, const char *shown, struct tried *out, struct error *err)
{
    autonode struct node root = NODE_NONE;
    autotried struct tried tried = TRIED_NONE;

    if (node_read_json(bytes, len, shown, &root, err) < 0)
        return -1;
    if (root.kind != NODE_MAP)
        return error_set(err, ERROR_INVALID, "%s: this is no object", shown);
    if (read_members(&root, shown, &tried, err) < 0)
        return -1;
    *out = tried_take(&tried);
    return 0;
}
