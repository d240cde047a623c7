#include "spec/rule_forms.h"

#include "base/hostname.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/rule_path.h"

#include <string.h>

static const char *const action_names[] = { [RULE_ALLOW] = "allow", [RULE_DENY] = "deny" };

static bool refuse(struct text *why, const char *what)
{
    text_add(why, what);
    return false;
}

/* Single values */

static bool read_port(const char *in, uint16_t *out, struct text *why)
{
    size_t digits = strspn(in, "0123456789");
    unsigned long value = digits && digits <= 5 ? strtoul(in, NULL, 10) : 0;

    if (in[digits] || in[0] == '0' || value == 0 || value > UINT16_MAX)
        return refuse(why, "must have a port from 1 to 65535");
    *out = (uint16_t)value;
    return true;
}

static bool read_host(const char *in, size_t len, struct rule *rule, struct text *why)
{
    char form[HOSTNAME_SIZE + 2];
    const char *refused = hostname_read_pattern(in, len, form);

    if (refused)
        return refuse(why, refused);
    free(rule->host);
    rule->host = text_copy(form);
    return true;
}

static bool read_address(const char *in, struct rule *rule, struct text *why)
{
    struct address address;
    char shown[ADDRESS_SIZE];

    if (address_read(in, strlen(in), &address) != ADDRESS_PLAIN)
        return refuse(why, "must be an address such as 192.0.2.1 or 2001:db8::1");
    address_show(&address, shown);
    free(rule->address);
    rule->address = text_copy(shown);
    return true;
}

/* What the values of one rule are together */

static const char *check_address(const char *written)
{
    struct address address;

    (void)address_read(written, strlen(written), &address);
    switch (address_class(&address)) {
    case ADDRESS_UNSPECIFIED:
    case ADDRESS_MULTICAST:
    case ADDRESS_TRANSLATED:
        return "has an address that no rule can open: it is no one machine's own";
    case ADDRESS_PUBLIC:
    case ADDRESS_LOOPBACK:
    case ADDRESS_PRIVATE:
    case ADDRESS_LINK_LOCAL:
    case ADDRESS_METADATA:
    case ADDRESS_RESERVED:
        break;
    }
    return NULL;
}

/* What only somebody who grants must keep to: a layer that only narrows can be as wide as it likes. */
static const char *check_grant(const struct rule *rule, const struct hostname *host)
{
    if (rule->action == RULE_DENY)
        return NULL;
    if (hostname_pattern_is_broad(rule->host))
        return "is for everybody's names; name the host, or a domain of one owner as *.example.com (all of the "
               "public network is network.mode: open)";
    if (!rule->address && host->text[0] && hostname_is_local(host))
        return "is a name that means another machine everywhere; the rule must give its address as well";
    return NULL;
}

static const char *check(const struct form_context *context, const struct rule *rule)
{
    struct hostname host = HOSTNAME_NONE;
    const char *why = NULL;

    if (rule->host[0] != '*')
        (void)hostname_read(rule->host, strlen(rule->host), &host);
    if (hostname_is_address(&host) && !rule->port)
        return "is an address, and a rule for one must name its port";
    if (hostname_is_address(&host) && rule->address)
        return "is an address; another one cannot be given for it";
    if (rule->action == RULE_DENY && rule->address)
        return "is denied; an address is only for what is allowed";
    if (rule->address && (context->places & PLACE_REPOSITORY))
        return "has an address, which only the owner and the administrator can say";
    if (hostname_is_address(&host))
        why = check_address(rule->host);
    if (!why && rule->address)
        why = check_address(rule->address);
    if (!why && !(context->places & (PLACE_ADMIN | PLACE_REPOSITORY)))
        why = check_grant(rule, &host);
    return why;
}

/* HOST[:PORT] */

static bool read_host_port(const char *in, struct rule *rule, struct text *why)
{
    const char *colon = strrchr(in, ':');
    bool bracketed = in[0] == '[', address = strchr(in, ':') != colon && !bracketed;

    if (strchr(in, '/'))
        return refuse(why, "must be a host such as example.com or example.com:8443, not a URL");
    if (bracketed && colon && colon < strchrnul(in, ']'))
        colon = NULL;
    if (address)
        colon = NULL;
    if (colon && !read_port(colon + 1, &rule->port, why))
        return false;
    return read_host(in, colon ? (size_t)(colon - in) : strlen(in), rule, why);
}

bool rule_read_text(const struct form_context *context, const char *in, struct rule *out, struct text *why)
{
    return rule_read_target(context, in, NULL, out, why);
}

bool rule_read_target(const struct form_context *context, const char *in, const char *address, struct rule *out,
                      struct text *why)
{
    struct rule rule = { 0 };
    const char *refused = NULL;

    if (read_host_port(in, &rule, why) && (!address || read_address(address, &rule, why))) {
        refused = check(context, &rule);
        if (!refused) {
            rule.place = context->shown ? text_copy(context->shown) : NULL;
            *out = rule;
            return true;
        }
        text_add(why, refused);
    }
    rule_free(&rule);
    return false;
}

/* A mapping */

/* What a rule can have, now or in a later version: an old program must not take a rule for less than it says.
 */
static const struct key {
    const char *name;
    bool later;
} keys[] = {
    { "host", false },    { "port", false },  { "action", false }, { "address", false },
    { "methods", false }, { "paths", false }, { "ca", true },      { "secret", true },
    { "mock", true },     { "rate", true },   { "bytes", true },
};

#define KEYS "host, port, action, address, methods and paths"

enum { KEY_HOST, KEY_PORT, KEY_ACTION, KEY_ADDRESS, KEY_METHODS, KEY_PATHS };

enum { WORDS_MAX = 64 }; /* of methods or paths in one rule */

static bool unknown_key(const struct node *node, struct text *why)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!keys[i].later || strcmp(keys[i].name, node->key) != 0)
            continue;
        text_addf(why, "is the value of %s, which this version cannot act on; a rule has " KEYS, keys[i].name);
        return false;
    }
    return refuse(why, "is the value of a key that a rule does not have; there are " KEYS);
}

static bool read_action(const char *in, struct rule *rule, struct text *why)
{
    static const char *const later[] = { "ask", "stage", "mock" };

    for (size_t i = 0; i < ARRAY_LEN(action_names); i++)
        if (strcmp(in, action_names[i]) == 0) {
            rule->action = (enum rule_action)i;
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (strcmp(in, later[i]) == 0)
            return refuse(why, "is an action that this version cannot take; there are allow and deny");
    return refuse(why, "is no action; there are allow and deny");
}

/* In one form, since it is compared as it stands: of letters in upper case, as methods are but for odd ones. */
static const char *check_method(const char *in)
{
    size_t len = strspn(in, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");

    if (strcmp(in, "CONNECT") == 0)
        return "is no method of a request to a host";
    return len == 0 || in[len] || len > 31 ? "must be a method in upper case, such as GET" : NULL;
}

static const char *check_path(const char *in)
{
    return path_is_pattern(in)
               ? NULL
               : "must be a path such as /v1/users, where * stands for a part of it and ** for many, "
                 "with nothing escaped that need not be, no .. and no ?";
}

/* One or a list of them.  Nothing in it would be a rule for nothing, which nobody means. */
static bool read_words(const struct node *node, const char *(*check_word)(const char *), struct strings *out,
                       struct text *why)
{
    bool single = node->kind == NODE_STRING;

    if (!single && node->kind != NODE_LIST)
        return refuse(why, "must be a text or a list of them");
    if (!single && (node->len == 0 || node->len > WORDS_MAX))
        return refuse(why, "must have at least one, and at most 64");
    for (size_t i = 0; i < (single ? 1 : node->len); i++) {
        const struct node *word = single ? node : &node->items[i];
        const char *refused = word->kind == NODE_STRING ? check_word(word->text) : "must be a list of texts";

        if (refused && !single && word->kind == NODE_STRING) {
            text_add(why, "has ");
            text_add_inert(why, word->text);
            text_add(why, ", which ");
        }
        if (refused)
            return refuse(why, refused);
        strings_add(out, word->text);
    }
    strings_sort(out);
    return true;
}

static bool read_value(const struct node *node, struct rule *rule, struct text *why)
{
    size_t key = 0;

    while (key < ARRAY_LEN(keys) && strcmp(keys[key].name, node->key) != 0)
        key++;
    if (key == ARRAY_LEN(keys) || keys[key].later)
        return unknown_key(node, why);
    if (key == KEY_METHODS)
        return read_words(node, check_method, &rule->methods, why);
    if (key == KEY_PATHS)
        return read_words(node, check_path, &rule->paths, why);
    if (node->kind != NODE_STRING && node->kind != NODE_NUMBER)
        return refuse(why, "must be a text");
    switch (key) {
    case KEY_HOST:
        return read_host(node->text, strlen(node->text), rule, why);
    case KEY_PORT:
        return read_port(node->text, &rule->port, why);
    case KEY_ACTION:
        return read_action(node->text, rule, why);
    default:
        return read_address(node->text, rule, why);
    }
}

static bool read_map(const struct form_context *context, const struct node *map, struct rule *rule,
                     struct text *why, const struct node **culprit)
{
    const char *refused;

    for (size_t i = 0; i < map->len; i++) {
        *culprit = &map->items[i];
        if (!read_value(*culprit, rule, why))
            return false;
    }
    *culprit = map;
    if (!rule->host)
        return refuse(why, "must have the key host");
    *culprit = node_get(map, "host");
    refused = check(context, rule);
    return !refused || refuse(why, refused);
}

bool rule_read_node(const struct form_context *context, const struct node *node, struct rule *out,
                    struct text *why, const struct node **culprit)
{
    struct rule rule = { 0 };
    bool taken;

    *culprit = node;
    if (node->kind == NODE_MAP)
        taken = read_map(context, node, &rule, why, culprit);
    else if (node->kind == NODE_STRING)
        taken = rule_read_text(context, node->text, &rule, why);
    else
        taken = refuse(why, "must be a text, or a mapping with the key host");
    if (!taken) {
        rule_free(&rule);
        return false;
    }
    free(rule.place);
    rule.place = context->shown ? text_format("%s:%u", context->shown, node->line) : NULL;
    *out = rule;
    return true;
}

/* Writing */

static void write_words(const char *key, const struct strings *words, struct node *out)
{
    struct node *list = words->len ? node_add(out, key, NODE_LIST, NULL) : NULL;

    for (size_t i = 0; i < words->len; i++)
        node_add(list, NULL, NODE_STRING, words->items[i]);
}

void rule_write(const struct rule *rule, struct node *out)
{
    autofree char *port = text_format("%u", rule->port);

    node_add(out, "host", NODE_STRING, rule->host);
    if (rule->port)
        node_add(out, "port", NODE_NUMBER, port);
    node_add(out, "action", NODE_STRING, action_names[rule->action]);
    if (rule->address)
        node_add(out, "address", NODE_STRING, rule->address);
    write_words("methods", &rule->methods, out);
    write_words("paths", &rule->paths, out);
}

static void show_words(const char *before, const struct strings *words, struct text *out)
{
    for (size_t i = 0; i < words->len; i++)
        text_addf(out, "%s%s", i ? ", " : before, words->items[i]);
}

void rule_show(const struct rule *rule, struct text *out)
{
    bool brackets = strchr(rule->host, ':') != NULL;

    text_addf(out, "%s%s%s%s", rule->action == RULE_DENY ? "deny " : "", brackets ? "[" : "", rule->host,
              brackets ? "]" : "");
    if (rule->port)
        text_addf(out, ":%u", rule->port);
    if (rule->address)
        text_addf(out, " at %s", rule->address);
    show_words(" with ", &rule->methods, out);
    show_words(" on ", &rule->paths, out);
}

static int compare_words(const struct strings *a, const struct strings *b)
{
    int order = 0;

    for (size_t i = 0; order == 0 && i < a->len && i < b->len; i++)
        order = strcmp(a->items[i], b->items[i]);
    return order ? order : (int)a->len - (int)b->len;
}

static int compare(const void *one, const void *other)
{
    const struct rule *a = one, *b = other;
    int order = strcmp(a->host, b->host);

    if (order == 0)
        order = (int)a->port - (int)b->port;
    if (order == 0)
        order = (int)a->action - (int)b->action;
    if (order == 0)
        order = strcmp(a->address ? a->address : "", b->address ? b->address : "");
    if (order == 0)
        order = compare_words(&a->methods, &b->methods);
    return order ? order : compare_words(&a->paths, &b->paths);
}

void rule_list_sort(struct rule_list *list)
{
    size_t kept = 0;

    if (list->len)
        qsort(list->items, list->len, sizeof *list->items, compare);
    for (size_t i = 0; i < list->len; i++) {
        if (kept && compare(&list->items[kept - 1], &list->items[i]) == 0)
            rule_free(&list->items[i]);
        else
            list->items[kept++] = list->items[i];
    }
    list->len = kept;
}
