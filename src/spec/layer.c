#include "spec/layer.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"
#include "spec/node.h"
#include "spec/suggest.h"
#include "spec/values.h"

#include <string.h>

enum { ITEMS_MAX = 1024 };

void layer_free(struct layer *layer)
{
    spec_free(&layer->values);
    for (size_t i = 0; i < FIELD_COUNT; i++)
        free(layer->said[i]);
    *layer = (struct layer){ 0 };
}

int layer_complain(struct error *err, const char *shown, const struct node *node, const char *key,
                   const char *why)
{
    autotext struct text key_shown = TEXT_NONE, value = TEXT_NONE;

    text_add_inert(&key_shown, key);
    node_show(node, &value);
    return error_set(err, ERROR_INVALID, "%s:%u: %s: %s %s", shown, node->line, text_string(&key_shown),
                     text_string(&value), why);
}

/* What a document is read with. */
struct reading {
    const char *shown;
    const char *above; /* put before every key in messages: "policy." */
    unsigned places;
    const struct form_context *context;
    struct layer *out;
    struct error *err;
};

static bool is_group(const char *path)
{
    autofree char *prefix = text_format("%s.", path);

    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (text_starts(fields[i].key, prefix))
            return true;
    return false;
}

/* A key that was put at the wrong depth (timeout for limits.timeout) counts as the nearest.  `groups` has those
 * above others, which the answer may be one of. */
static struct suggest suggest_key(const char *path, unsigned places, struct strings *groups)
{
    struct suggest near = SUGGEST_NONE;
    const char *last = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;

    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *dot = strrchr(fields[i].key, '.');

        if (!(fields[i].places & places))
            continue;
        if (strcmp(last, dot ? dot + 1 : fields[i].key) == 0)
            return (struct suggest){ .best = fields[i].key };
        suggest_offer(&near, path, fields[i].key);
        if (dot)
            strings_take(groups, text_format("%.*s", (int)(dot - fields[i].key), fields[i].key));
    }
    for (size_t i = 0; i < groups->len; i++)
        suggest_offer(&near, path, groups->items[i]);
    return near;
}

static int unknown_key(const struct reading *reading, const struct node *node, const char *path)
{
    autofree char *key = text_format("%s%s", reading->above, path);
    autostrings struct strings groups = STRINGS_NONE;
    autotext struct text why = TEXT_NONE;
    struct suggest near = suggest_key(path, reading->places, &groups);

    text_add(&why, "is the value of a key that does not exist");
    suggest_add(&near, reading->above, &why);
    text_add(&why, "; cove-policy(5) lists all");
    return layer_complain(reading->err, reading->shown, node, key, text_string(&why));
}

/* What is wrong may be the value of a key that no field has: one of a rule or of a service. */
static int complain_within(const struct reading *reading, const struct node *culprit, const struct node *node,
                           const char *key, const char *why)
{
    autofree char *below = culprit != node && culprit->key ? text_format("%s: %s", key, culprit->key) : NULL;

    return layer_complain(reading->err, reading->shown, culprit, below ? below : key, why);
}

static int read_field(const struct reading *reading, const struct node *node, const struct field *field)
{
    autofree char *key = text_format("%s%s", reading->above, field->key);
    autotext struct text why = TEXT_NONE;
    const struct node *culprit = node;

    if (!(field->places & reading->places))
        return layer_complain(reading->err, reading->shown, node, key,
                              "cannot be said here: it is for the owner's policy file and flags");

    /* Only our own JSON has it: a member that was not said. */
    if (node->kind == NODE_NULL && field->type == TYPE_STRING && (reading->places & PLACE_SPEC))
        return 0;

    /* Layers are compared item by item, and a repository writes what it likes. */
    if (node->len > ITEMS_MAX && !(reading->places & PLACE_SPEC))
        return layer_complain(reading->err, reading->shown, node, key, "must not have more than 1024 items");
    if (!value_read_node(field, reading->context, node, &reading->out->values, &why, &culprit))
        return complain_within(reading, culprit, node, key, text_string(&why));
    reading->out->said[field - fields] = text_format("%s:%u", reading->shown, node->line);
    return 0;
}

static int read_map(const struct reading *reading, const struct node *map, const char *prefix)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct node *node = &map->items[i];
        autofree char *path = text_format("%s%s", prefix, node->key);
        const struct field *field = strchr(node->key, '.') ? NULL : field_find(path);

        if (field) {
            if (read_field(reading, node, field) < 0)
                return -1;
            continue;
        }
        if (strchr(node->key, '.') || !is_group(path))
            return unknown_key(reading, node, path);
        if (node->kind != NODE_MAP)
            return layer_complain(reading->err, reading->shown, node, path, "must be a mapping");

        autofree char *below = text_format("%s.", path);

        if (read_map(reading, node, below) < 0)
            return -1;
    }
    return 0;
}

int layer_read(const struct node *root, const char *shown, const char *above, unsigned places,
               const struct form_context *context, struct layer *out, struct error *err)
{
    autofree char *before = *above ? text_format("%s.", above) : text_copy("");
    struct form_context placed = *context;
    const struct reading reading = { shown, before, places, &placed, out, err };

    placed.places = places;
    placed.shown = shown;

    if (root->kind != NODE_MAP)
        return layer_complain(err, shown, root, *above ? above : "the whole file", "must be a mapping of keys");
    return read_map(&reading, root, "");
}

/* What a repository may wish for.  `kinds` are or-ed bits of enum node_kind. */
static const struct wish {
    const char *key;
    unsigned kinds;
    const char *must;
} wish_table[] = {
    { "image", 1U << NODE_STRING, "must be a text" },
    { "setup", 1U << NODE_STRING | 1U << NODE_LIST, "must be a command or a list of commands" },
    { "services", 1U << NODE_LIST | 1U << NODE_MAP, "must be a list or a mapping" },
    { "ports", 1U << NODE_NUMBER | 1U << NODE_LIST, "must be a list of ports" },
    { "outputs", 1U << NODE_STRING | 1U << NODE_LIST, "must be a list of paths" },
    { "env", 1U << NODE_LIST | 1U << NODE_MAP, "must be a mapping or a list" },
};

static const struct wish *wish_find(const char *key, struct suggest *near)
{
    for (size_t i = 0; i < ARRAY_LEN(wish_table); i++) {
        if (strcmp(wish_table[i].key, key) == 0)
            return &wish_table[i];
        suggest_offer(near, key, wish_table[i].key);
    }
    return NULL;
}

static int check_wish(const struct node *node, const char *shown, struct error *err)
{
    autofree char *key = text_format("wishes.%s", node->key);
    autotext struct text why = TEXT_NONE;
    struct suggest near = SUGGEST_NONE;
    const struct wish *wish = wish_find(node->key, &near);

    if (wish && (wish->kinds & 1U << node->kind))
        return 0;
    if (wish)
        return layer_complain(err, shown, node, key, wish->must);
    text_add(&why, "is the value of a key that does not exist");
    suggest_add(&near, "wishes.", &why);
    text_add(&why, "; there are image, setup, services, ports, outputs, env");
    return layer_complain(err, shown, node, key, text_string(&why));
}

int layer_check_wishes(const struct node *wishes, const char *shown, struct strings *notes, struct error *err)
{
    if (wishes->kind != NODE_MAP)
        return layer_complain(err, shown, wishes, "wishes", "must be a mapping of keys");
    for (size_t i = 0; i < wishes->len; i++) {
        const struct node *node = &wishes->items[i];

        if (check_wish(node, shown, err) < 0)
            return -1;
        strings_take(notes,
                     text_format("%s:%u: wishes.%s is not acted on by this version; a wish grants nothing",
                                 shown, node->line, node->key));
    }
    return 0;
}
