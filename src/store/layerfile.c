#include "store/layerfile.h"

#include "base/date.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void layer_info_free(struct layer_info *layer)
{
    strings_free(&layer->merged);
    *layer = LAYER_INFO_NONE;
}

/* The numbers of a layer.  `optional` ones come all or not at all. */
static const struct number {
    const char *key;
    size_t at;
    bool optional;
} numbers[] = {
    { "step", offsetof(struct layer_info, step), false },
    { "ids", offsetof(struct layer_info, ids), false },
    { "weight", offsetof(struct layer_info, weight), false },
    { "bytes", offsetof(struct layer_info, bytes), true },
    { "files", offsetof(struct layer_info, files), true },
};

static const struct id {
    const char *key;
    size_t at;
    bool optional;
} ids[] = {
    { "parent", offsetof(struct layer_info, parent), true },
    { "sandbox", offsetof(struct layer_info, sandbox), false },
};

void layerfile_write(const struct layer_info *layer, struct text *out)
{
    autonode struct node map = { .kind = NODE_MAP };
    char made[DATE_SIZE];

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const char *id = (const char *)layer + ids[i].at;

        node_add(&map, ids[i].key, *id ? NODE_STRING : NODE_NULL, *id ? id : NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uint64_t value = *(const uint64_t *)(const void *)((const char *)layer + numbers[i].at);
        autofree char *text = text_format("%" PRIu64, value);

        if (!numbers[i].optional || layer->measured)
            node_add(&map, numbers[i].key, NODE_NUMBER, text);
    }
    date_write(layer->made, made);
    node_add(&map, "made", NODE_STRING, made);
    if (layer->copy)
        node_add(&map, "copy", NODE_BOOL, "true");

    struct node *merged = node_add(&map, "merged", NODE_LIST, NULL);

    for (size_t i = 0; i < layer->merged.len; i++)
        node_add(merged, NULL, NODE_STRING, layer->merged.items[i]);
    node_write_json(&map, out);
}

static bool get_id(const struct node *node, char out[ID_LENGTH + 1])
{
    if (!node || node->kind != NODE_STRING || !store_is_id(node->text))
        return false;
    memcpy(out, node->text, ID_LENGTH + 1);
    return true;
}

static bool get_number(const struct node *node, uint64_t *out)
{
    char *end;

    if (!node || node->kind != NODE_NUMBER || !*node->text || node->text[strspn(node->text, "0123456789")])
        return false;
    errno = 0;
    *out = strtoull(node->text, &end, 10);
    return !errno && !*end;
}

static bool get_ids(const struct node *map, struct layer_info *layer)
{
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct node *node = node_get(map, ids[i].key);

        if (!get_id(node, (char *)layer + ids[i].at) && !(ids[i].optional && node && node->kind == NODE_NULL))
            return false;
    }
    return true;
}

static bool get_numbers(const struct node *map, struct layer_info *layer)
{
    layer->measured = node_get(map, "bytes") != NULL;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uint64_t *at = (uint64_t *)(void *)((char *)layer + numbers[i].at);

        if ((!numbers[i].optional || layer->measured) && !get_number(node_get(map, numbers[i].key), at))
            return false;
    }
    return true;
}

static bool get_copy(const struct node *node, struct layer_info *layer)
{
    layer->copy = node != NULL;
    return !node || (node->kind == NODE_BOOL && strcmp(node->text, "true") == 0);
}

static bool get_merged(const struct node *list, struct layer_info *layer)
{
    char id[ID_LENGTH + 1];

    if (!list || list->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if (!get_id(&list->items[i], id))
            return false;
        strings_add(&layer->merged, id);
    }
    return true;
}

int layerfile_read(const char *bytes, size_t len, const char *shown, struct layer_info *out, struct error *err)
{
    autonode struct node map = NODE_NONE;
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;
    const struct node *made;

    *out = LAYER_INFO_NONE;
    if (node_read_json(bytes, len, shown, &map, err) < 0)
        return -1;
    made = map.kind == NODE_MAP ? node_get(&map, "made") : NULL;
    if (!made || made->kind != NODE_STRING || !date_read(made->text, &layer.made) || !get_ids(&map, &layer) ||
        !get_numbers(&map, &layer) || !get_copy(node_get(&map, "copy"), &layer) ||
        !get_merged(node_get(&map, "merged"), &layer))
        return error_set(err, ERROR_INVALID, "%s is not what we write", shown);
    *out = layer;
    layer = LAYER_INFO_NONE;
    return 0;
}
