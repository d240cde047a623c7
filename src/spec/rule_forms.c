#include "spec/rule_forms.h"

#include "base/hostname.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/bundle.h"
#include "spec/forms.h"
#include "spec/mock.h"
#include "spec/node.h"
#include "spec/rule_path.h"
#include "spec/suggest.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t seconds;
} periods[] = { { "/s", 1 }, { "/min", 60 } };

static const char *const action_names[] = {
    [RULE_ALLOW] = "allow", [RULE_DENY] = "deny", [RULE_MOCK] = "mock", [RULE_COUNT] = "count"
};

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
    if (rule->action != RULE_ALLOW)
        return NULL;
    if (hostname_pattern_is_broad(rule->host))
        return "is for everybody's names; name the host, or a domain of one owner as *.example.com (all of the "
               "public network is network.mode: open)";
    if (!rule->address && host->text[0] && hostname_is_local(host))
        return "is a name that means another machine everywhere; its rule must have an address as well, which "
               "`cove allow NAME:PORT --address ADDRESS` gives it";
    return NULL;
}

static const char *check_ca(const struct form_context *context, const struct rule *rule)
{
    if (!rule->ca)
        return NULL;
    if (rule->action != RULE_ALLOW)
        return "is denied or mocked; a ca is only for what is allowed";
    if (context->places & PLACE_REPOSITORY)
        return "has a ca, which only the owner and the administrator can say";
    if ((context->places & PLACE_SPEC) && !bundle_is_read(rule->ca))
        return "has a ca that is no certificate: a description of a sandbox has the certificates themselves";
    return NULL;
}

/* A file is read with the owner's rights: no repository says which. */
static const char *check_mock(const struct form_context *context, const struct rule *rule)
{
    if (!rule->mock)
        return NULL;
    if (rule->action != RULE_MOCK)
        return "has a mock, which is for action: mock";
    if (rule->mock->file && (context->places & PLACE_REPOSITORY))
        return "has a mock with a file, which only the owner and the administrator can say; write its body";
    if (mock_is_relative(rule->mock) && (context->places & PLACE_SPEC))
        return "has a mock with a file that is no whole path";
    return NULL;
}

/* What does not go with its action. */
static const char *check_action(const struct rule *rule)
{
    if (rule->action != RULE_ALLOW && rule->address)
        return "is denied or mocked; an address is only for what is allowed";
    if ((rule->action == RULE_DENY || rule->action == RULE_MOCK) && (rule->rate.requests || rule->bytes))
        return "is denied or mocked; rate and bytes are only for what is allowed";
    if (rule->action == RULE_COUNT && !rule->rate.requests && !rule->bytes)
        return "is only counted, and has neither rate nor bytes";
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
    if (rule->address && (context->places & PLACE_REPOSITORY))
        return "has an address, which only the owner and the administrator can say";
    why = check_action(rule);
    if (!why)
        why = check_ca(context, rule);
    if (!why)
        why = check_mock(context, rule);
    if (why)
        return why;
    if (hostname_is_address(&host) && rule->action != RULE_MOCK)
        why = check_address(rule->host);
    if (!why && rule->address)
        why = check_address(rule->address);
    if (!why && !(context->places & (PLACE_ADMIN | PLACE_REPOSITORY)))
        why = check_grant(rule, &host);
    return why;
}

/* Whether the sandbox has its own of it: what goes there does not leave. */
static bool is_loopback(const char *pattern)
{
    struct hostname host = HOSTNAME_NONE;

    (void)hostname_read(pattern, strlen(pattern), &host);
    if (hostname_is_address(&host))
        return address_class(&host.address) == ADDRESS_LOOPBACK;
    return strcmp(pattern, "localhost") == 0 || text_ends(pattern, ".localhost");
}

static bool fits(const struct form_context *context, const struct rule *rule, struct text *why)
{
    autofree char *port = rule->port ? text_format("%u", rule->port) : text_copy("PORT");
    const char *refused;

    if (rule->action == RULE_ALLOW && (context->places & (PLACE_OWNER | PLACE_FLAG)) &&
        is_loopback(rule->host)) {
        text_addf(why,
                  "is the sandbox's own loopback inside; a service of this machine is reached there with "
                  "--host-service %s (network.host-services)",
                  port);
        return false;
    }
    refused = check(context, rule);
    return !refused || refuse(why, refused);
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

    if (read_host_port(in, &rule, why) && (!address || read_address(address, &rule, why)) &&
        fits(context, &rule, why)) {
        rule.place = context->shown ? text_copy(context->shown) : NULL;
        *out = rule;
        return true;
    }
    rule_free(&rule);
    return false;
}

/* A mapping */

enum { WORDS_MAX = 64 }; /* of methods or paths in one rule */

static bool read_action(const char *in, struct rule *rule, struct text *why)
{
    static const char *const later[] = { "ask", "stage" };

    for (size_t i = 0; i < ARRAY_LEN(action_names); i++)
        if (strcmp(in, action_names[i]) == 0) {
            rule->action = (enum rule_action)i;
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (strcmp(in, later[i]) == 0)
            return refuse(why,
                          "is an action that this version cannot take; there are allow, deny, mock and count");
    return refuse(why, "is no action; there are allow, deny, mock and count");
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

/* Keys */

typedef bool read_key(const struct node *node, struct rule *rule, struct text *why);

static bool is_scalar(const struct node *node, struct text *why)
{
    return node->kind == NODE_STRING || node->kind == NODE_NUMBER || refuse(why, "must be a text");
}

static bool take_host(const struct node *node, struct rule *rule, struct text *why)
{
    return is_scalar(node, why) && read_host(node->text, strlen(node->text), rule, why);
}

static bool take_port(const struct node *node, struct rule *rule, struct text *why)
{
    return is_scalar(node, why) && read_port(node->text, &rule->port, why);
}

static bool take_action(const struct node *node, struct rule *rule, struct text *why)
{
    return is_scalar(node, why) && read_action(node->text, rule, why);
}

static bool take_address(const struct node *node, struct rule *rule, struct text *why)
{
    return is_scalar(node, why) && read_address(node->text, rule, why);
}

static bool take_methods(const struct node *node, struct rule *rule, struct text *why)
{
    return read_words(node, check_method, &rule->methods, why);
}

static bool take_paths(const struct node *node, struct rule *rule, struct text *why)
{
    return read_words(node, check_path, &rule->paths, why);
}

static bool take_mock(const struct node *node, struct rule *rule, struct text *why)
{
    mock_free(rule->mock);
    rule->mock = mock_read_node(node, why);
    return rule->mock != NULL;
}

static bool take_ca(const struct node *node, struct rule *rule, struct text *why)
{
    if (node->kind != NODE_STRING || !*node->text)
        return refuse(why, "must be a file with certificates");
    free(rule->ca);
    rule->ca = text_copy(node->text);
    return true;
}

/* 10/s, 600/min */
static bool take_rate(const struct node *node, struct rule *rule, struct text *why)
{
    static const char must[] = "must be a number of requests in a second or a minute, such as 10/s or 600/min";
    const char *text = node->kind == NODE_STRING ? node->text : "";
    size_t digits = strspn(text, "0123456789");
    unsigned long requests = digits && digits <= 9 ? strtoul(text, NULL, 10) : 0;

    for (size_t i = 0; requests && i < ARRAY_LEN(periods); i++)
        if (strcmp(text + digits, periods[i].name) == 0) {
            rule->rate = (struct rate){ (uint32_t)requests, periods[i].seconds };
            return true;
        }
    return refuse(why, must);
}

static bool take_bytes(const struct node *node, struct rule *rule, struct text *why)
{
    if (!is_scalar(node, why) || !form_amount(TYPE_BYTES, node->text, &rule->bytes, why))
        return false;
    return rule->bytes || refuse(why, "must be a size such as 512M, 4G, 64K or plain bytes");
}

/* What a rule can have, now or in a later version: an old program must not take a rule for less than it says.
 */
static const struct key {
    const char *name;
    read_key *read; /* NULL: later */
} keys[] = {
    { "host", take_host },       { "port", take_port },       { "action", take_action },
    { "address", take_address }, { "methods", take_methods }, { "paths", take_paths },
    { "ca", take_ca },           { "mock", take_mock },       { "rate", take_rate },
    { "bytes", take_bytes },     { "secret", NULL },
};

#define KEYS "host, port, action, address, methods, paths, ca, mock, rate and bytes"

static bool read_value(const struct node *node, struct rule *rule, struct text *why)
{
    struct suggest near = SUGGEST_NONE;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (keys[i].read)
            suggest_offer(&near, node->key, keys[i].name);
        if (strcmp(keys[i].name, node->key) != 0)
            continue;
        if (keys[i].read)
            return keys[i].read(node, rule, why);
        text_addf(why, "is the value of %s, which this version cannot act on; a rule has " KEYS, keys[i].name);
        return false;
    }
    text_add(why, "is the value of a key that a rule does not have");
    suggest_add(&near, "", why);
    return refuse(why, "; there are " KEYS);
}

/* Several rules may stand on a line. */
static void add_whose(const struct node *map, const struct node *culprit, struct text *why)
{
    const struct node *host = node_get(map, "host");
    autotext struct text shown = TEXT_NONE;

    if (!host || host == culprit || !host->text)
        return;
    node_show_text(host->text, &shown);
    text_addf(why, " (in the rule for %s)", text_string(&shown));
}

static bool read_map(const struct form_context *context, const struct node *map, struct rule *rule,
                     struct text *why, const struct node **culprit)
{
    for (size_t i = 0; i < map->len; i++) {
        *culprit = &map->items[i];
        if (!read_value(*culprit, rule, why)) {
            add_whose(map, *culprit, why);
            return false;
        }
    }
    *culprit = map;
    if (!rule->host)
        return refuse(why, "must have the key host");
    if (rule->action == RULE_MOCK && !rule->mock)
        rule->mock = mock_new();
    *culprit = node_get(map, "host");
    return fits(context, rule, why);
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

static void show_rate(const struct rate *rate, struct text *out)
{
    for (size_t i = 0; i < ARRAY_LEN(periods); i++)
        if (periods[i].seconds == rate->seconds)
            text_addf(out, "%u%s", rate->requests, periods[i].name);
}

static void write_bounds(const struct rule *rule, struct node *out)
{
    autotext struct text rate = TEXT_NONE, bytes = TEXT_NONE;

    if (rule->rate.requests) {
        show_rate(&rule->rate, &rate);
        node_add(out, "rate", NODE_STRING, text_string(&rate));
    }
    if (rule->bytes) {
        form_amount_show(TYPE_BYTES, rule->bytes, &bytes);
        node_add(out, "bytes", NODE_STRING, text_string(&bytes));
    }
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
    if (rule->ca)
        node_add(out, "ca", NODE_STRING, rule->ca);
    if (rule->mock)
        mock_write(rule->mock, node_add(out, "mock", NODE_MAP, NULL));
    write_bounds(rule, out);
}

static void show_words(const char *before, const struct strings *words, struct text *out)
{
    for (size_t i = 0; i < words->len; i++)
        text_addf(out, "%s%s", i ? ", " : before, words->items[i]);
}

void rule_show(const struct rule *rule, struct text *out)
{
    bool brackets = strchr(rule->host, ':') != NULL;

    if (rule->action != RULE_ALLOW)
        text_addf(out, "%s ", action_names[rule->action]);
    text_addf(out, "%s%s%s", brackets ? "[" : "", rule->host, brackets ? "]" : "");
    if (rule->port)
        text_addf(out, ":%u", rule->port);
    if (rule->address)
        text_addf(out, " at %s", rule->address);
    show_words(" with ", &rule->methods, out);
    show_words(" on ", &rule->paths, out);
    if (rule->ca)
        text_add(out, " by a ca of its own");
    if (rule->rate.requests) {
        text_add(out, " at ");
        show_rate(&rule->rate, out);
    }
    if (rule->bytes) {
        text_add(out, " for ");
        form_amount_show(TYPE_BYTES, rule->bytes, out);
    }
    if (rule->mock)
        text_addf(out, " as %u", rule->mock->status);
}

/* NULL comes first. */
static int compare_texts(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_bounds(const struct rule *a, const struct rule *b)
{
    const uint64_t pairs[][2] = { { a->rate.requests, b->rate.requests },
                                  { a->rate.seconds, b->rate.seconds },
                                  { a->bytes, b->bytes } };

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    return 0;
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
        order = compare_texts(a->address, b->address);
    if (order == 0)
        order = compare_texts(a->ca, b->ca);
    if (order == 0)
        order = compare_bounds(a, b);
    if (order == 0)
        order = strings_compare(&a->methods, &b->methods);
    if (order == 0)
        order = strings_compare(&a->paths, &b->paths);
    return order ? order : mock_compare(a->mock, b->mock);
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
