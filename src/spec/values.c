#include "spec/values.h"

#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/rule_forms.h"
#include "spec/suggest.h"

#include <string.h>

static const char *const bool_names[] = { "false", "true" };

static bool refuse(struct text *why, const char *what)
{
    text_add(why, what);
    return false;
}

void volumes_free(struct volumes *volumes)
{
    for (size_t i = 0; i < volumes->len; i++) {
        free(volumes->items[i].source);
        free(volumes->items[i].target);
    }
    free(volumes->items);
    *volumes = (struct volumes){ 0 };
}

void volumes_add(struct volumes *volumes, const char *source, const char *target, enum tree_mode mode)
{
    *array_add(volumes) = (struct volume){ text_copy(source), text_copy(target), mode };
}

bool value_is_list(const struct field *field)
{
    return field->type == TYPE_STRINGS || field->type == TYPE_ENV || field->type == TYPE_VOLUMES ||
           field->type == TYPE_SERVICES || field->type == TYPE_RULES;
}

void value_free(const struct field *field, struct spec *spec)
{
    void *at = field_of(field, spec);

    if (field->type == TYPE_STRING) {
        free(*(char **)at);
        *(char **)at = NULL;
    } else if (field->type == TYPE_STRINGS || field->type == TYPE_ENV) {
        strings_free(at);
    } else if (field->type == TYPE_VOLUMES) {
        volumes_free(at);
    } else if (field->type == TYPE_SERVICES) {
        services_free(at);
    } else if (field->type == TYPE_RULES) {
        rule_list_free(at);
    }
}

/* Reading one written value */

void value_choices(const struct field *field, struct text *out)
{
    for (size_t i = 0; i < FIELD_CHOICES && field->choices[i]; i++)
        text_addf(out, "%s%s", i ? ", " : "", field->choices[i]);
}

static bool read_choice(const struct field *field, const char *in, unsigned *into, struct text *why)
{
    struct suggest near = SUGGEST_NONE;

    for (unsigned i = 0; i < FIELD_CHOICES && field->choices[i]; i++) {
        if (strcmp(in, field->choices[i]) == 0) {
            *into = i;
            return true;
        }
        suggest_offer(&near, in, field->choices[i]);
    }
    text_add(why, "must be one of ");
    value_choices(field, why);
    if (near.best)
        text_addf(why, " (did you mean %s?)", near.best);
    return false;
}

static bool read_duration(const struct field *field, const char *in, uint64_t *into, struct text *why)
{
    uint64_t value;

    if (!form_duration(in, &value, why))
        return false;
    if (value && (value < field->least || value > field->most)) {
        text_add(why, "must be from ");
        form_duration_show(field->least, why);
        text_add(why, " to ");
        form_duration_show(field->most, why);
        return false;
    }
    *into = value;
    return true;
}

static bool read_amount(const struct field *field, const char *in, struct limit *into, struct text *why)
{
    uint64_t value;

    if (!form_amount(field->type, in, &value, why))
        return false;
    if (value && (value < field->least || value > field->most)) {
        text_add(why, "must be from ");
        form_amount_show(field->type, field->least, why);
        text_add(why, " to ");
        form_amount_show(field->type, field->most, why);
        return false;
    }
    *into = (struct limit){ .max = value };
    return true;
}

static bool read_string(const struct field *field, const struct form_context *context, const char *in,
                        char **into, struct text *why)
{
    char *value = NULL;

    if (!field->form(context, in, &value, why))
        return false;
    free(*into);
    *into = value;
    return true;
}

static bool read_item(const struct field *field, const struct form_context *context, const char *in,
                      struct strings *into, struct text *why)
{
    char *value = NULL;

    if (!field->form(context, in, &value, why))
        return false;
    if (value) /* a variable that the host does not have is not set inside either */
        strings_take(into, value);
    return true;
}

bool value_read_text(const struct field *field, const struct form_context *context, const char *in,
                     struct spec *into, struct text *why)
{
    void *at = field_of(field, into);
    struct volume volume;
    struct rule rule;

    switch (field->type) {
    case TYPE_BOOL:
        *(bool *)at = strcmp(in, "true") == 0;
        return *(bool *)at || strcmp(in, "false") == 0 || refuse(why, "must be true or false");
    case TYPE_CHOICE:
        return read_choice(field, in, at, why);
    case TYPE_DURATION:
        return read_duration(field, in, at, why);
    case TYPE_BYTES:
    case TYPE_NUMBER:
    case TYPE_CPUS:
        return read_amount(field, in, at, why);
    case TYPE_STRING:
        return read_string(field, context, in, at, why);
    case TYPE_STRINGS:
    case TYPE_ENV:
        return read_item(field, context, in, at, why);
    case TYPE_VOLUMES:
        if (!form_volume(context, in, &volume, why))
            return false;
        *array_add((struct volumes *)at) = volume;
        return true;
    case TYPE_SERVICES:
        return services_read_text(in, at, why);
    case TYPE_RULES:
        if (!rule_read_text(context, in, &rule, why))
            return false;
        *array_add((struct rule_list *)at) = rule;
        return true;
    }
    return false;
}

/* Reading a value of a document */

static bool is_text(const struct node *node)
{
    return node->kind == NODE_STRING || node->kind == NODE_NUMBER;
}

static bool read_volume_map(const struct form_context *context, const struct node *node, struct spec *into,
                            struct text *why)
{
    static const char *const keys[] = { "source", "target", "mode" };
    const char *parts[] = { NULL, NULL, tree_mode_names[TREE_COW] };
    struct volume volume;

    for (size_t i = 0; i < node->len; i++) {
        size_t at = 0;

        while (at < ARRAY_LEN(keys) && strcmp(node->items[i].key, keys[at]) != 0)
            at++;
        if (at == ARRAY_LEN(keys) || !is_text(&node->items[i]))
            return refuse(why, "must have the keys source, target and mode, each a text, and no other");
        parts[at] = node->items[i].text;
    }
    if (!parts[0] || !parts[1])
        return refuse(why, "must have the keys source and target");
    if (!form_volume_parts(context, parts[0], parts[1], parts[2], &volume, why))
        return false;
    *array_add(&into->volumes) = volume;
    return true;
}

/* { max: 4G, hard: true } */
static bool read_limit_map(const struct field *field, const struct node *node, struct limit *into,
                           struct text *why)
{
    const struct node *max = node_get(node, "max"), *hard = node_get(node, "hard");
    struct limit limit = { 0 };

    if (!max || !is_text(max) || (hard && hard->kind != NODE_BOOL) || node->len != (hard ? 2U : 1U))
        return refuse(why, "must have the key max, and may have hard: true, and no other");
    if (!read_amount(field, max->text, &limit, why))
        return false;
    limit.hard = hard && strcmp(hard->text, "true") == 0;
    *into = limit;
    return true;
}

static bool read_env_pair(const struct field *field, const struct form_context *context,
                          const struct node *node, struct spec *into, struct text *why)
{
    autofree char *pair = NULL;

    if (node->kind == NODE_LIST || node->kind == NODE_MAP)
        return refuse(why, "must be a text");
    if (!*node->key || strchr(node->key, '='))
        return refuse(why, "must have a name without = before it");
    pair = node->text ? text_format("%s=%s", node->key, node->text) : text_copy(node->key);
    return value_read_text(field, context, pair, into, why);
}

static bool read_rule(const struct form_context *context, const struct node *node, struct spec *into,
                      struct text *why, const struct node **culprit)
{
    struct rule rule;

    if (!rule_read_node(context, node, &rule, why, culprit))
        return false;
    *array_add(&into->rules) = rule;
    return true;
}

/* One item of a list; `pairs`: of a mapping that stands for one. */
static bool read_list_item(const struct field *field, const struct form_context *context, bool pairs,
                           const struct node *item, struct spec *into, struct text *why,
                           const struct node **culprit)
{
    if (pairs)
        return read_env_pair(field, context, item, into, why);
    if (field->type == TYPE_RULES)
        return read_rule(context, item, into, why, culprit);
    if (field->type == TYPE_VOLUMES && item->kind == NODE_MAP)
        return read_volume_map(context, item, into, why);
    if (field->type == TYPE_SERVICES)
        return services_read_node(item, &into->services, why);
    if (!is_text(item))
        return refuse(why, "must be a text");
    return value_read_text(field, context, item->text, into, why);
}

/* A list, or for env also a mapping. */
static bool read_list(const struct field *field, const struct form_context *context, const struct node *node,
                      struct spec *into, struct text *why, const struct node **culprit)
{
    bool pairs = field->type == TYPE_ENV && node->kind == NODE_MAP;

    if (node->kind != NODE_LIST && !pairs)
        return refuse(why, field->type == TYPE_ENV ? "must be a mapping or a list" : "must be a list");
    for (size_t i = 0; i < node->len; i++) {
        *culprit = &node->items[i];
        if (!read_list_item(field, context, pairs, &node->items[i], into, why, culprit))
            return false;
    }
    return true;
}

bool value_read_node(const struct field *field, const struct form_context *context, const struct node *node,
                     struct spec *into, struct text *why, const struct node **culprit)
{
    *culprit = node;
    if (value_is_list(field))
        return read_list(field, context, node, into, why, culprit);
    if (field_is_limit(field) && node->kind == NODE_MAP)
        return read_limit_map(field, node, field_of(field, into), why);
    if (field->type == TYPE_BOOL && node->kind != NODE_BOOL)
        return refuse(why, "must be true or false");
    if (field->type != TYPE_BOOL && !is_text(node))
        return refuse(why, "must be a text (put it in quotes)");
    return value_read_text(field, context, node->text, into, why);
}

/* Writing */

static void write_volumes(const struct volumes *volumes, struct node *out)
{
    out->kind = NODE_LIST;
    for (size_t i = 0; i < volumes->len; i++) {
        struct node *map = node_add(out, NULL, NODE_MAP, NULL);

        node_add(map, "source", NODE_STRING, volumes->items[i].source);
        node_add(map, "target", NODE_STRING, volumes->items[i].target);
        node_add(map, "mode", NODE_STRING, tree_mode_names[volumes->items[i].mode]);
    }
}

static void write_rules(const struct rule_list *rules, struct node *out)
{
    out->kind = NODE_LIST;
    for (size_t i = 0; i < rules->len; i++)
        rule_write(&rules->items[i], node_add(out, NULL, NODE_MAP, NULL));
}

static void write_env(const struct strings *env, struct node *out)
{
    out->kind = NODE_MAP;
    for (size_t i = 0; i < env->len; i++) {
        const char *equals = strchr(env->items[i], '=');
        autofree char *name = text_format("%.*s", (int)(equals - env->items[i]), env->items[i]);

        node_add(out, name, NODE_STRING, equals + 1);
    }
}

static void write_scalar(struct node *out, enum node_kind kind, const char *text)
{
    out->kind = text ? kind : NODE_NULL;
    out->text = text ? text_copy(text) : NULL;
}

static void write_limit(const struct field *field, const struct limit *limit, struct node *out)
{
    autotext struct text max = TEXT_NONE;

    form_amount_show(field->type, limit->max, &max);
    if (!limit->hard) {
        write_scalar(out, NODE_STRING, text_string(&max));
        return;
    }
    out->kind = NODE_MAP;
    node_add(out, "max", NODE_STRING, text_string(&max));
    node_add(out, "hard", NODE_BOOL, bool_names[true]);
}

void value_write(const struct field *field, const struct spec *spec, struct node *out)
{
    const void *at = field_of_const(field, spec);
    autotext struct text text = TEXT_NONE;

    switch (field->type) {
    case TYPE_BOOL:
        write_scalar(out, NODE_BOOL, bool_names[*(const bool *)at]);
        break;
    case TYPE_CHOICE:
        write_scalar(out, NODE_STRING, field->choices[*(const unsigned *)at]);
        break;
    case TYPE_DURATION:
        form_duration_show(*(const uint64_t *)at, &text);
        write_scalar(out, NODE_STRING, text_string(&text));
        break;
    case TYPE_BYTES:
    case TYPE_NUMBER:
    case TYPE_CPUS:
        write_limit(field, at, out);
        break;
    case TYPE_STRING:
        write_scalar(out, NODE_STRING, *(char *const *)at);
        break;
    case TYPE_STRINGS:
        out->kind = NODE_LIST;
        for (size_t i = 0; i < ((const struct strings *)at)->len; i++)
            node_add(out, NULL, NODE_STRING, ((const struct strings *)at)->items[i]);
        break;
    case TYPE_ENV:
        write_env(at, out);
        break;
    case TYPE_VOLUMES:
        write_volumes(at, out);
        break;
    case TYPE_SERVICES:
        services_write(at, out);
        break;
    case TYPE_RULES:
        write_rules(at, out);
        break;
    }
}

static void show_list(const struct field *field, const void *at, struct text *out)
{
    const struct volumes *volumes = at;
    const struct rule_list *rules = at;
    const struct strings *strings = at;
    size_t len = field->type == TYPE_VOLUMES ? volumes->len
                 : field->type == TYPE_RULES ? rules->len
                                             : strings->len;

    text_add(out, "[");
    for (size_t i = 0; i < len; i++) {
        autotext struct text item = TEXT_NONE;

        if (field->type == TYPE_VOLUMES)
            form_volume_show(&volumes->items[i], &item);
        else if (field->type == TYPE_RULES)
            rule_show(&rules->items[i], &item);
        else
            text_add(&item, strings->items[i]);
        text_add(out, i ? ", " : "");
        text_add_inert(out, text_string(&item));
    }
    text_add(out, "]");
}

void value_show(const struct field *field, const struct spec *spec, struct text *out)
{
    struct node node = NODE_NONE;

    if (field->type == TYPE_SERVICES) {
        services_show(field_of_const(field, spec), out);
        return;
    }
    if (value_is_list(field)) {
        show_list(field, field_of_const(field, spec), out);
        return;
    }
    if (field_is_limit(field)) {
        const struct limit *limit = field_of_const(field, spec);

        form_amount_show(field->type, limit->max, out);
        text_add(out, limit->hard ? ", hard" : "");
        return;
    }
    value_write(field, spec, &node);
    text_add_inert(out, node.text ? node.text : "not said");
    node_free(&node);
}

static void move_strings(struct strings *from, struct strings *into)
{
    for (size_t i = 0; i < from->len; i++)
        strings_take(into, from->items[i]);
    from->len = 0;
    strings_free(from);
}

void value_move(const struct field *field, struct spec *from, struct spec *into)
{
    void *source = field_of(field, from), *target = field_of(field, into);

    switch (field->type) {
    case TYPE_BOOL:
        *(bool *)target = *(bool *)source;
        break;
    case TYPE_CHOICE:
        *(unsigned *)target = *(unsigned *)source;
        break;
    case TYPE_DURATION:
        *(uint64_t *)target = *(uint64_t *)source;
        break;
    case TYPE_BYTES:
    case TYPE_NUMBER:
    case TYPE_CPUS:
        *(struct limit *)target = *(struct limit *)source;
        break;
    case TYPE_STRING:
        free(*(char **)target);
        *(char **)target = steal_ptr((char **)source);
        break;
    case TYPE_STRINGS:
    case TYPE_ENV:
        move_strings(source, target);
        break;
    case TYPE_VOLUMES:
        for (size_t i = 0; i < ((struct volumes *)source)->len; i++)
            *array_add((struct volumes *)target) = ((struct volumes *)source)->items[i];
        ((struct volumes *)source)->len = 0;
        volumes_free(source);
        break;
    case TYPE_SERVICES:
        services_move(source, target);
        break;
    case TYPE_RULES:
        for (size_t i = 0; i < ((struct rule_list *)source)->len; i++)
            *array_add((struct rule_list *)target) = ((struct rule_list *)source)->items[i];
        ((struct rule_list *)source)->len = 0;
        rule_list_free(source);
        break;
    }
}
