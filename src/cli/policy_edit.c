#include "cli/policy_edit.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"
#include "spec/network.h"
#include "spec/node.h"
#include "spec/rule_forms.h"

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

/* --- taking back --- */

static const struct node *rules_in(const struct node *root)
{
    const struct node *network = root->kind == NODE_MAP ? node_get(root, "network") : NULL;
    const struct node *rules = network && network->kind == NODE_MAP ? node_get(network, "rules") : NULL;

    return rules && rules->kind == NODE_LIST ? rules : NULL;
}

static bool read_item(const struct node *item, struct rule *out)
{
    const struct form_context context = { .places = PLACE_OWNER };
    autotext struct text why = TEXT_NONE;
    const struct node *culprit;

    return rule_read_node(&context, item, out, &why, &culprit);
}

bool policy_edit_each(const struct text *old, void (*take)(const struct rule *rule, unsigned line, void *owner),
                      void *owner)
{
    autonode struct node root = NODE_NONE;
    struct error ignored;

    if (old->len && node_read_yaml(text_string(old), old->len, "", &root, &ignored) < 0)
        return false;

    const struct node *rules = rules_in(&root);

    for (size_t i = 0; rules && i < rules->len; i++) {
        struct rule rule;

        if (!read_item(&rules->items[i], &rule))
            return false;
        take(&rule, rules->items[i].line, owner);
        rule_free(&rule);
    }
    return true;
}

/* One that allows this host and port, and says no more. */
static bool says_just(const struct node *item, const struct rule *rule)
{
    struct rule is;
    bool same;

    if (!read_item(item, &is))
        return false;
    same = is.action == RULE_ALLOW && is.port == rule->port && strcmp(is.host, rule->host) == 0 &&
           (!rule->address || (is.address && strcmp(is.address, rule->address) == 0)) && !is.methods.len &&
           !is.paths.len && !is.ca && !is.rate.requests && !is.bytes;
    rule_free(&is);
    return same;
}

/* What is left of a text that has something else at `at` in place of `len` bytes; whether that says what it
 * said but for one rule. */
static bool cut(const struct text *old, size_t index, const char *at, size_t len, const char *instead,
                struct text *out)
{
    autonode struct node before = NODE_NONE, after = NODE_NONE;
    autotext struct text was = TEXT_NONE, is = TEXT_NONE;
    const char *bytes = text_string(old);
    struct error ignored;
    struct node *rules;

    text_clear(out);
    text_add_bytes(out, bytes, (size_t)(at - bytes));
    text_add(out, instead);
    text_add(out, at + len);
    if (node_read_yaml(bytes, old->len, "", &before, &ignored) < 0 ||
        node_read_yaml(text_string(out), out->len, "", &after, &ignored) < 0)
        return false;
    rules = rules_of(&before);
    node_free(&rules->items[index]);
    rules->len--;
    memmove(&rules->items[index], &rules->items[index + 1], (rules->len - index) * sizeof *rules->items);
    node_write_json(&before, &was);
    node_write_json(&after, &is);
    return strcmp(text_string(&was), text_string(&is)) == 0;
}

/* An item that has its line for itself; with the last one the list begins to be written as an empty one. */
static bool cut_line(const struct text *old, const struct node *rules, size_t index, struct text *out)
{
    const char *head = line_at(text_string(old), rules->line),
               *line = line_at(text_string(old), rules->items[index].line);
    size_t len = line ? strcspn(line, "\n") : 0;
    autofree char *between = NULL;

    if (!line || line[strspn(line, " ")] != '-')
        return false;
    len += line[len] == '\n';
    if (rules->len > 1)
        return cut(old, index, line, len, "", out);
    head = head && head < line ? strstr(head, "rules:") : NULL;
    if (!head || head >= line)
        return false;
    head += strlen("rules:");
    between = text_format(" []%.*s", (int)(line - head), head);
    return cut(old, index, head, (size_t)(line - head) + len, between, out);
}

/* One of several in a line, with the comma behind or before it. */
static bool cut_word(const struct text *old, const struct node *rules, size_t index, struct text *out)
{
    static const char *const quotes[] = { "\"", "'", "" };
    const struct node *item = &rules->items[index];
    const char *line = line_at(text_string(old), item->line);

    for (size_t i = 0; line && item->text && i < ARRAY_LEN(quotes); i++) {
        autotext struct text word = TEXT_NONE;

        text_addf(&word, "%s%s%s", quotes[i], item->text, quotes[i]);
        for (const char *at = strstr(line, text_string(&word)); at; at = strstr(at + 1, text_string(&word))) {
            const char *end = at + word.len, *begin = at;

            end += strspn(end, " ");
            if (*end == ',')
                end += 1 + (end[1] == ' ');
            else
                for (end = at + word.len; begin > line && strchr(", ", begin[-1]);)
                    begin--;
            if (cut(old, index, begin, (size_t)(end - begin), "", out))
                return true;
        }
    }
    return false;
}

int policy_edit_remove(const char *shown, const struct text *old, const struct rule *rule, struct text *out,
                       struct error *err)
{
    autotext struct text now = TEXT_NONE;
    int result = 1;

    text_add_bytes(&now, text_string(old), old->len);
    for (;;) {
        autonode struct node root = NODE_NONE;
        const struct node *rules;
        size_t i = 0;

        if (now.len && node_read_yaml(text_string(&now), now.len, shown, &root, err) < 0)
            return -1;
        rules = rules_in(&root);
        while (rules && i < rules->len && !says_just(&rules->items[i], rule))
            i++;
        if (!rules || i == rules->len)
            break;
        if (!cut_line(&now, rules, i, out) && !cut_word(&now, rules, i, out)) {
            text_clear(out);
            return error_set(
                err, ERROR_INVALID,
                "%s:%u: the rule is written in a way in which it cannot be taken out; delete it there", shown,
                rules->items[i].line);
        }
        text_clear(&now);
        text_add_bytes(&now, text_string(out), out->len);
        result = 0;
    }
    text_clear(out);
    if (result == 0)
        text_add_bytes(out, text_string(&now), now.len);
    return result;
}
