#include "gateway/brief.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/rules.h"
#include "spec/fields.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/rule_forms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_line(struct node *line, struct text *out)
{
    node_write_json(line, out);
    text_add(out, "\n");
}

static void add_number(struct node *map, const char *key, uint64_t number)
{
    autofree char *text = text_format("%" PRIu64, number);

    node_add(map, key, NODE_NUMBER, text);
}

static void add_amounts(struct node *map, const char *key, const struct amounts *amounts)
{
    struct node *added = node_add(map, key, NODE_MAP, NULL);

    add_number(added, "bytes", amounts->bytes);
    add_number(added, "requests", amounts->requests);
    add_number(added, "connections", amounts->connections);
}

static void add_proxy(struct node *map, const struct proxy *proxy)
{
    struct node *added = node_add(map, "proxy", NODE_MAP, NULL), *except;

    node_add(added, "host", NODE_STRING, proxy->host.text);
    add_number(added, "port", proxy->port);
    if (proxy->authorization)
        node_add(added, "authorization", NODE_STRING, proxy->authorization);
    except = node_add(added, "except", NODE_LIST, NULL);
    for (size_t i = 0; i < proxy->except.len; i++)
        node_add(except, NULL, NODE_STRING, proxy->except.items[i]);
}

static void add_hints(struct node *map, const struct rule_list *hints)
{
    struct node *list = node_add(map, "hints", NODE_LIST, NULL);

    for (size_t i = 0; hints && i < hints->len; i++) {
        struct node *added = node_add(list, NULL, NODE_MAP, NULL);

        node_add(added, "host", NODE_STRING, hints->items[i].host);
        add_number(added, "port", hints->items[i].port);
        node_add(added, "registry", NODE_STRING, hints->items[i].place);
    }
}

static void write_rule(const struct rule *rule, uint64_t bytes, struct text *out)
{
    autonode struct node line = { .kind = NODE_MAP };

    rule_write(rule, node_add(&line, "rule", NODE_MAP, NULL));
    add_number(&line, "bytes", bytes);
    if (rule->place)
        node_add(&line, "place", NODE_STRING, rule->place);
    if (rule->inside)
        node_add(&line, "inside", NODE_BOOL, "true");
    if (rule->index) {
        add_number(&line, "registry", rule->registry);
        node_add(&line, "index", NODE_STRING, rule->index);
    }
    write_line(&line, out);
}

void brief_write(const struct brief *brief, const struct rules *rules, struct text *out)
{
    autonode struct node head = { .kind = NODE_MAP };

    add_number(&head, "generation", brief->generation);
    add_number(&head, "mode", rules->mode);
    if (brief->died)
        node_add(&head, "died", NODE_BOOL, "true");
    node_add(&head, "record_secrets", NODE_BOOL, brief->record_secrets ? "true" : "false");
    add_number(&head, "packages", rules->packages);
    node_add(&head, "sandbox", NODE_STRING, brief->sandbox);
    add_amounts(&head, "spent", &brief->spent);
    add_amounts(&head, "budget", &rules->budget);
    if (*rules->proxy.host.text)
        add_proxy(&head, &rules->proxy);
    add_hints(&head, brief->hints);
    write_line(&head, out);
    for (size_t i = 0; i < rules->list.len; i++)
        write_rule(&rules->list.items[i], brief->bytes ? brief->bytes[i] : 0, out);
}

static const char *value(const struct node *map, const char *key, enum node_kind kind)
{
    const struct node *found = node_get(map, key);

    return found && found->kind == kind ? found->text : NULL;
}

static bool read_number(const struct node *map, const char *key, uint64_t most, uint64_t *out)
{
    const char *text = value(map, key, NODE_NUMBER);

    if (!text)
        return false;
    *out = strtoull(text, NULL, 10);
    return *out <= most;
}

static bool read_amounts(const struct node *map, const char *key, struct amounts *out)
{
    const struct node *found = node_get(map, key);

    return found && read_number(found, "bytes", UINT64_MAX, &out->bytes) &&
           read_number(found, "requests", UINT64_MAX, &out->requests) &&
           read_number(found, "connections", UINT64_MAX, &out->connections);
}

static bool read_proxy(const struct node *map, struct proxy *out)
{
    const struct node *found = node_get(map, "proxy"), *except = found ? node_get(found, "except") : NULL;
    const char *host = found ? value(found, "host", NODE_STRING) : NULL, *authorization;
    uint64_t port;

    if (!found)
        return true;
    if (!host || !except || hostname_read(host, strlen(host), &out->host) ||
        !read_number(found, "port", UINT16_MAX, &port))
        return false;
    out->port = (uint16_t)port;
    authorization = value(found, "authorization", NODE_STRING);
    out->authorization = authorization ? text_copy(authorization) : NULL;
    for (size_t i = 0; i < except->len; i++)
        if (except->items[i].text)
            strings_add(&out->except, except->items[i].text);
    return true;
}

static bool read_hints(const struct node *map, struct rule_list *out)
{
    const struct node *list = node_get(map, "hints");

    for (size_t i = 0; list && i < list->len; i++) {
        const char *host = value(&list->items[i], "host", NODE_STRING);
        const char *registry = value(&list->items[i], "registry", NODE_STRING);
        uint64_t port;

        if (!host || !registry || !read_number(&list->items[i], "port", UINT16_MAX, &port))
            return false;
        *array_add(out) =
            (struct rule){ .host = text_copy(host), .port = (uint16_t)port, .place = text_copy(registry) };
    }
    return list != NULL;
}

static bool read_head(const struct node *line, struct brief *brief, struct rules *rules)
{
    const char *secrets = value(line, "record_secrets", NODE_BOOL),
               *sandbox = value(line, "sandbox", NODE_STRING);
    uint64_t before, mode;

    if (!secrets || !sandbox || !read_number(line, "packages", UINT64_MAX, &rules->packages) ||
        !read_number(line, "generation", UINT32_MAX, &before) ||
        !read_number(line, "mode", NETWORK_OPEN, &mode) || !read_amounts(line, "spent", &brief->spent) ||
        !read_amounts(line, "budget", &rules->budget) || !read_proxy(line, &rules->proxy) ||
        !read_hints(line, &rules->hints))
        return false;
    brief->generation = (unsigned)before;
    (void)snprintf(brief->sandbox, sizeof brief->sandbox, "%s", sandbox);
    brief->died = node_get(line, "died") != NULL;
    brief->record_secrets = strcmp(secrets, "true") == 0;
    rules->mode = (enum network_mode)mode;
    return true;
}

/* As one of the administrator's: what was granted has been judged. */
static bool read_rule(const struct node *line, struct brief *brief, struct rules *rules)
{
    const struct form_context context = { .places = PLACE_ADMIN };
    const struct node *node = node_get(line, "rule"), *place = node_get(line, "place"), *culprit;
    autotext struct text why = TEXT_NONE;
    struct rule rule;
    uint64_t bytes, registry = 0;
    const char *index = value(line, "index", NODE_STRING);

    if (!node || !read_number(line, "bytes", UINT64_MAX, &bytes) ||
        (index && !read_number(line, "registry", REGISTRY_COUNT - 1, &registry)) ||
        !rule_read_node(&context, node, &rule, &why, &culprit))
        return false;
    rule.place = place && place->text ? text_copy(place->text) : NULL;
    rule.inside = node_get(line, "inside") != NULL;
    rule.registry = (enum registry)registry;
    rule.index = index ? text_copy(index) : NULL;
    *array_add(&rules->list) = rule;
    brief->bytes = memory_resize(brief->bytes, sizeof *brief->bytes * rules->list.len);
    brief->bytes[rules->list.len - 1] = bytes;
    return true;
}

int brief_read(const char *bytes, struct brief *brief, struct rules *rules, struct error *err)
{
    bool first = true, good = true;

    *brief = (struct brief){ 0 };
    for (const char *end; good && (end = strchr(bytes, '\n')); bytes = end + 1, first = false) {
        autonode struct node line = NODE_NONE;

        if (node_read_long_json(bytes, (size_t)(end - bytes), BRIEF_MAX, "the brief", &line, err) < 0)
            return -1;
        good = first ? read_head(&line, brief, rules) : read_rule(&line, brief, rules);
    }
    return good && !first ? 0 : error_set(err, ERROR_INVALID, "the gateway was told what it cannot understand");
}
