#include "cli/policy_edit.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/network.h"
#include "spec/node.h"

#include <string.h>

/* In quotes: a star or a bracket means something in YAML. */
static void write_item(const struct rule *rule, struct text *out)
{
    bool brackets = strchr(rule->host, ':') != NULL;

    if (!rule->address) {
        text_addf(out, "\"%s%s%s", brackets ? "[" : "", rule->host, brackets ? "]" : "");
        if (rule->port)
            text_addf(out, ":%u", rule->port);
        text_add(out, "\"");
        return;
    }
    text_addf(out, "{ host: \"%s\"", rule->host);
    if (rule->port)
        text_addf(out, ", port: %u", rule->port);
    text_addf(out, ", address: \"%s\" }", rule->address);
}

/* The beginning of a line, counted from 1. */
static const char *line_at(const char *text, unsigned line)
{
    while (line > 1 && (text = strchr(text, '\n'))) {
        text++;
        line--;
    }
    return text;
}

/* Where something is put, and what. */
struct insertion {
    const char *at; /* NULL: no place is known */
    struct text text;
};

/* rules: [a, b]: behind the bracket.  Or a line of its own before the first item of a list. */
static void into_list(const char *old, const struct node *rules, const char *item, struct insertion *out)
{
    const char *line = line_at(old, rules->line), *bracket, *first;

    if (!line)
        return;
    bracket = strstr(line, "rules:");
    bracket = bracket ? bracket + strlen("rules:") + strspn(bracket + strlen("rules:"), " ") : NULL;
    if (bracket && *bracket == '[' && bracket < strchrnul(line, '\n')) {
        out->at = bracket + 1;
        text_addf(&out->text, "%s%s", item, rules->len ? ", " : "");
        return;
    }
    first = rules->len ? line_at(old, rules->items[0].line) : NULL;
    if (!first || first[strspn(first, " ")] != '-')
        return;
    out->at = first;
    text_addf(&out->text, "%.*s- %s\n", (int)strspn(first, " "), first, item);
}

/* A mapping without rules: before its first key, if that has a line of its own. */
static void into_network(const char *old, const struct node *network, const char *item, struct insertion *out)
{
    const char *first = network->len ? line_at(old, network->items[0].line) : NULL;
    size_t indent = first ? strspn(first, " ") : 0;

    if (!first || !indent || strncmp(first + indent, network->items[0].key, strlen(network->items[0].key)) != 0)
        return;
    out->at = first;
    text_addf(&out->text, "%.*srules:\n%.*s  - %s\n", (int)indent, first, (int)indent, first, item);
}

static void find_place(const char *old, const struct node *root, const char *item, struct insertion *out)
{
    const struct node *network = node_get(root, "network");
    const struct node *rules = network ? node_get(network, "rules") : NULL;

    if (rules) {
        into_list(old, rules, item, out);
    } else if (network) {
        into_network(old, network, item, out);
    } else {
        out->at = strchr(old, '\0');
        text_addf(&out->text, "%snetwork:\n  rules:\n    - %s\n",
                  out->at == old || out->at[-1] == '\n' ? "" : "\n", item);
    }
}

static struct node *get_or_add(struct node *map, const char *key, enum node_kind kind)
{
    struct node *found = node_get(map, key);

    return found ? found : node_add(map, key, kind, NULL);
}

static struct node *rules_of(struct node *root)
{
    struct node *network = get_or_add(root, "network", NODE_MAP);

    return network->kind == NODE_MAP ? get_or_add(network, "rules", NODE_LIST) : network;
}

/* Whether `new` says what `old` does with one rule before the others. */
static bool says_one_more(struct node *old, struct node *new)
{
    autotext struct text before = TEXT_NONE, after = TEXT_NONE;
    struct node *was = rules_of(old), *is = rules_of(new);

    if (was->kind != NODE_LIST || is->kind != NODE_LIST || is->len != was->len + 1)
        return false;
    node_free(&is->items[0]);
    memmove(is->items, is->items + 1, --is->len * sizeof *is->items);
    node_write_json(old, &before);
    node_write_json(new, &after);
    return strcmp(text_string(&before), text_string(&after)) == 0;
}

/* Whether the list has it in the form in which we write it. */
static bool has_item(const struct node *root, const char *item)
{
    const struct node *network = node_get(root, "network");
    const struct node *rules = network ? node_get(network, "rules") : NULL;

    for (size_t i = 0; rules && i < rules->len; i++) {
        autofree char *quoted = text_format("\"%s\"", rules->items[i].text ? rules->items[i].text : "");

        if (strcmp(quoted, item) == 0)
            return true;
    }
    return false;
}

int policy_edit_add(const char *shown, const struct text *old, const struct rule *rule, struct text *out,
                    struct error *err)
{
    autonode struct node before = { .kind = NODE_MAP }, after = NODE_NONE;
    struct insertion insertion = { 0 };
    autotext struct text item = TEXT_NONE;
    const char *bytes = text_string(old);
    struct error unread = { 0 };

    if (old->len && node_read_yaml(bytes, old->len, shown, &before, err) < 0)
        return -1;
    write_item(rule, &item);
    if (has_item(&before, text_string(&item)))
        return 1;
    if (before.kind == NODE_MAP)
        find_place(bytes, &before, text_string(&item), &insertion);
    if (insertion.at) {
        text_add_bytes(out, bytes, (size_t)(insertion.at - bytes));
        text_add(out, text_string(&insertion.text));
        text_add(out, insertion.at);
    }
    text_free(&insertion.text);
    if (out->len && node_read_yaml(text_string(out), out->len, shown, &after, &unread) == 0 &&
        says_one_more(&before, &after))
        return 0;
    text_clear(out);
    error_set(err, ERROR_INVALID, "%s: is written in a way in which no rule can be added", shown);
    return error_hint(err, "add to network.rules: - %s", text_string(&item));
}
