#include "keeper/record.h"

#include "base/date.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "spec/node.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A reader of one format does not guess at another. */
#define FORMAT "2"

enum { NAME_MAX_LEN = 63, LABEL_MAX_LEN = 512, LABELS_MAX = 64 };

static const char *const state_names[] = {
    [RECORD_RUNNING] = "running", [RECORD_STOPPED] = "stopped", [RECORD_KILLED] = "killed"
};

const char *record_state_name(enum record_state state)
{
    return state_names[state];
}

void record_free(struct record *record)
{
    char *texts[] = { record->id,    record->name,      record->workspace, record->cwd,
                      record->image, record->spec_hash, record->reason,    record->mode };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    strings_free(&record->argv);
    strings_free(&record->labels);
    strings_free(&record->uids);
    strings_free(&record->gids);
    strings_free(&record->settled);
    for (size_t i = 0; i < record->layers.len; i++) {
        struct record_layer *layer = &record->layers.items[i];

        free(layer->source);
        free(layer->target);
        free(layer->why);
        strings_free(&layer->hide);
    }
    free(record->layers.items);
    *record = RECORD_NONE;
}

/* --- names and labels --- */

bool record_is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(name);

    return len > 0 && len <= NAME_MAX_LEN && strchr(letters, name[0]) &&
           !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")];
}

static size_t key_length(const char *label)
{
    return strcspn(label, "=");
}

static bool is_label(const char *label)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
    size_t len = key_length(label);

    return len > 0 && len <= NAME_MAX_LEN && strspn(label, allowed) == len && strlen(label) <= LABEL_MAX_LEN;
}

static char *find_label(const struct strings *labels, const char *key, size_t len, size_t *at)
{
    for (size_t i = 0; i < labels->len; i++)
        if (key_length(labels->items[i]) == len && memcmp(labels->items[i], key, len) == 0) {
            *at = i;
            return labels->items[i];
        }
    return NULL;
}

bool record_add_label(struct strings *labels, const char *label)
{
    size_t len = key_length(label), at;

    if (!is_label(label))
        return false;

    char *fresh = text_format("%s%s", label, label[len] ? "" : "=");
    char *old = find_label(labels, label, len, &at);

    if (old) {
        free(old);
        labels->items[at] = fresh;
    } else if (labels->len < LABELS_MAX) {
        strings_take(labels, fresh);
    } else {
        free(fresh);
        return false;
    }
    return true;
}

bool record_has_label(const struct record *record, const char *wanted)
{
    size_t len = key_length(wanted), at;
    const char *found = find_label(&record->labels, wanted, len, &at);

    return found && (!wanted[len] || strcmp(found, wanted) == 0);
}

/* --- ids --- */

static void set_rows(struct strings *list, const struct id_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        strings_take(list, text_format("%u %u %u", rows[i].inside, rows[i].outside, rows[i].count));
}

static bool get_row(const char *text, struct id_row *row)
{
    uint32_t *numbers[] = { &row->inside, &row->outside, &row->count };

    for (size_t i = 0; i < 3; i++) {
        char *rest;

        *numbers[i] = (uint32_t)strtoul(text, &rest, 10);
        if (rest == text || *rest != (i < 2 ? ' ' : '\0'))
            return false;
        text = rest + 1;
    }
    return true;
}

static size_t get_rows(const struct strings *list, struct id_row rows[2])
{
    size_t count = 0;

    while (count < list->len && count < 2 && get_row(list->items[count], &rows[count]))
        count++;
    return count;
}

bool record_is_on_copy(const struct record *record, const struct record_layer *layer)
{
    return strcmp(record->mode, "copy") == 0 && strcmp(layer->why, TREE_WHY_WORKSPACE) == 0;
}

void record_move(struct record *record, const char *path)
{
    char *old = record->workspace;

    for (size_t i = 0; i < record->layers.len; i++) {
        char **source = &record->layers.items[i].source;

        if (!path_within(*source, old))
            continue;

        char *moved = text_format("%s%s", path, *source + strlen(old));

        free(*source);
        *source = moved;
    }
    record->workspace = text_copy(path);
    free(old);
}

void record_set_ids(struct record *record, const struct ids *ids)
{
    record->shifted = ids->shifted;
    record->helpers = ids->helpers;
    record->base = ids->base;
    set_rows(&record->uids, ids->uids, ids->rows);
    set_rows(&record->gids, ids->gids, ids->rows);
}

void record_get_ids(const struct record *record, struct ids *out)
{
    *out =
        (struct ids){ .shifted = record->shifted, .helpers = record->helpers, .base = (uint32_t)record->base };
    out->rows = get_rows(&record->uids, out->uids);
    if (get_rows(&record->gids, out->gids) < out->rows)
        out->rows = 0;
}

/* --- the file: one table for both directions --- */

/* A kind of value.  `read` fills what `into` points at, false if the node has another form. */
struct kind {
    const char *what;
    bool (*read)(const struct node *node, void *into);
    void (*write)(const void *from, struct node *out);
};

struct member {
    const char *key;
    const struct kind *kind;
    size_t at;
    bool later; /* older records do not have it */
};

static void set_node(struct node *out, enum node_kind kind, const char *text)
{
    out->kind = kind;
    out->text = text ? text_copy(text) : NULL;
}

static bool read_text(const struct node *node, void *into)
{
    if (node->kind != NODE_STRING)
        return false;
    *(char **)into = text_copy(node->text);
    return true;
}

static void write_text(const void *from, struct node *out)
{
    const char *text = *(char *const *)from;

    set_node(out, text ? NODE_STRING : NODE_NULL, text);
}

static bool read_text_or_null(const struct node *node, void *into)
{
    return node->kind == NODE_NULL || read_text(node, into);
}

static bool read_list(const struct node *node, void *into)
{
    if (node->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < node->len; i++) {
        if (node->items[i].kind != NODE_STRING)
            return false;
        strings_add(into, node->items[i].text);
    }
    return true;
}

static void write_list(const void *from, struct node *out)
{
    const struct strings *list = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < list->len; i++)
        node_add(out, NULL, NODE_STRING, list->items[i]);
}

static bool read_digits(const char *text, uint64_t *into)
{
    char *rest;

    if (!*text || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    *into = strtoull(text, &rest, 10);
    return errno == 0;
}

static bool read_number(const struct node *node, void *into)
{
    return node->kind == NODE_NUMBER && read_digits(node->text, into);
}

static void write_number(const void *from, struct node *out)
{
    autofree char *text = text_format("%" PRIu64, *(const uint64_t *)from);
    bool none = *(const uint64_t *)from == RECORD_NO_NUMBER;

    set_node(out, none ? NODE_NULL : NODE_NUMBER, none ? NULL : text);
}

static bool read_number_or_null(const struct node *node, void *into)
{
    return node->kind == NODE_NULL || read_number(node, into);
}

/* Inodes and devices have 64 bits, of which a number of JSON keeps 53 at most. */
static bool read_wide(const struct node *node, void *into)
{
    return node->kind == NODE_STRING && read_digits(node->text, into);
}

static void write_wide(const void *from, struct node *out)
{
    autofree char *text = text_format("%" PRIu64, *(const uint64_t *)from);

    set_node(out, NODE_STRING, text);
}

static bool read_flag(const struct node *node, void *into)
{
    *(bool *)into = node->kind == NODE_BOOL && strcmp(node->text, "true") == 0;
    return node->kind == NODE_BOOL;
}

static void write_flag(const void *from, struct node *out)
{
    set_node(out, NODE_BOOL, *(const bool *)from ? "true" : "false");
}

static bool read_date(const struct node *node, void *into)
{
    struct timespec *time = into;

    return node->kind == NODE_STRING && date_read(node->text, time) && time->tv_sec != 0;
}

static bool read_date_or_null(const struct node *node, void *into)
{
    return node->kind == NODE_NULL || read_date(node, into);
}

static void write_date(const void *from, struct node *out)
{
    const struct timespec *time = from;
    char text[DATE_SIZE];

    date_write(*time, text);
    set_node(out, time->tv_sec ? NODE_STRING : NODE_NULL, time->tv_sec ? text : NULL);
}

static bool read_state(const struct node *node, void *into)
{
    for (size_t i = 0; node->kind == NODE_STRING && i < ARRAY_LEN(state_names); i++)
        if (strcmp(node->text, state_names[i]) == 0) {
            *(enum record_state *)into = (enum record_state)i;
            return true;
        }
    return false;
}

static void write_state(const void *from, struct node *out)
{
    set_node(out, NODE_STRING, state_names[*(const enum record_state *)from]);
}

static bool read_labels(const struct node *node, void *into)
{
    if (node->kind != NODE_MAP)
        return false;
    for (size_t i = 0; i < node->len; i++) {
        const struct node *item = &node->items[i];
        autofree char *label = item->kind == NODE_STRING ? text_format("%s=%s", item->key, item->text) : NULL;

        if (!label || strchr(item->key, '=') || !record_add_label(into, label))
            return false;
    }
    return true;
}

static void write_labels(const void *from, struct node *out)
{
    const struct strings *labels = from;

    out->kind = NODE_MAP;
    for (size_t i = 0; i < labels->len; i++) {
        const char *label = labels->items[i];
        size_t len = key_length(label);
        autofree char *key = text_format("%.*s", (int)len, label);

        node_add(out, key, NODE_STRING, label + len + 1);
    }
}

static bool read_layers(const struct node *node, void *into);
static void write_layers(const void *from, struct node *out);

static const struct kind a_text = { "text", read_text, write_text },
                         a_text_or_null = { "text or null", read_text_or_null, write_text },
                         a_list = { "a list of texts", read_list, write_list },
                         a_number = { "a whole number", read_number, write_number },
                         a_number_or_null = { "a whole number or null", read_number_or_null, write_number },
                         a_wide = { "a whole number as text", read_wide, write_wide },
                         a_flag = { "true or false", read_flag, write_flag },
                         a_date = { "a date", read_date, write_date },
                         a_date_or_null = { "a date or null", read_date_or_null, write_date },
                         a_state = { "running, stopped or killed", read_state, write_state },
                         some_labels = { "a mapping of labels", read_labels, write_labels },
                         some_layers = { "a list of layers", read_layers, write_layers };

#define AT(member) offsetof(struct record, member)
#define LAYER_AT(member) offsetof(struct record_layer, member)

/* What a record has.  A new member is a row here, and a new FORMAT if an old reader would go wrong. */
static const struct member members[] = {
    { "applied", &a_date_or_null, AT(applied), .later = true },
    { "argv", &a_list, AT(argv) },
    { "base", &a_number, AT(base) },
    { "created", &a_date, AT(created) },
    { "cwd", &a_text, AT(cwd) },
    { "ended", &a_date_or_null, AT(ended) },
    { "exit_code", &a_number_or_null, AT(exit_code) },
    { "gids", &a_list, AT(gids) },
    { "helpers", &a_flag, AT(helpers) },
    { "id", &a_text, AT(id) },
    { "image", &a_text, AT(image) },
    { "keeper", &a_number, AT(keeper) },
    { "keeper_started", &a_number, AT(keeper_started) },
    { "labels", &some_labels, AT(labels) },
    { "layers", &some_layers, AT(layers) },
    { "mode", &a_text, AT(mode) },
    { "name", &a_text_or_null, AT(name) },
    { "reason", &a_text_or_null, AT(reason) },
    { "settled", &a_list, AT(settled), .later = true },
    { "shifted", &a_flag, AT(shifted) },
    { "spec_hash", &a_text, AT(spec_hash) },
    { "state", &a_state, AT(state) },
    { "uids", &a_list, AT(uids) },
    { "workspace", &a_text, AT(workspace) },
    { "workspace_device", &a_wide, AT(workspace_device) },
    { "workspace_inode", &a_wide, AT(workspace_inode) },
};

static const struct member layer_members[] = {
    { "device", &a_wide, LAYER_AT(device) }, { "hide", &a_list, LAYER_AT(hide) },
    { "inode", &a_wide, LAYER_AT(inode) },   { "layer", &a_number, LAYER_AT(number) },
    { "source", &a_text, LAYER_AT(source) }, { "target", &a_text, LAYER_AT(target) },
    { "why", &a_text, LAYER_AT(why) },
};

/* The first member that is missing or has another form; NULL if all are there. */
static const struct member *read_members(const struct member *rows, size_t count, const struct node *node,
                                         void *into)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *value = node_get(node, rows[i].key);

        if (!value && rows[i].later)
            continue;
        if (!value || !rows[i].kind->read(value, (char *)into + rows[i].at))
            return &rows[i];
    }
    return NULL;
}

static void write_members(const struct member *rows, size_t count, const void *from, struct node *out)
{
    out->kind = NODE_MAP;
    for (size_t i = 0; i < count; i++)
        rows[i].kind->write((const char *)from + rows[i].at, node_add(out, rows[i].key, NODE_NULL, NULL));
}

static bool read_layers(const struct node *node, void *into)
{
    struct record_layers *layers = into;

    if (node->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < node->len; i++)
        if (node->items[i].kind != NODE_MAP ||
            read_members(layer_members, ARRAY_LEN(layer_members), &node->items[i], array_add(layers)))
            return false;
    return true;
}

static void write_layers(const void *from, struct node *out)
{
    const struct record_layers *layers = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < layers->len; i++)
        write_members(layer_members, ARRAY_LEN(layer_members), &layers->items[i],
                      node_add(out, NULL, NODE_MAP, NULL));
}

void record_node(const struct record *record, struct node *out)
{
    write_members(members, ARRAY_LEN(members), record, out);
    node_add(out, "format", NODE_NUMBER, FORMAT);
}

void record_json(const struct record *record, struct text *out)
{
    autonode struct node node = NODE_NONE;

    record_node(record, &node);
    node_write_json(&node, out);
    text_add(out, "\n");
}

static int read_node(const struct node *node, const char *shown, struct record *out, struct error *err)
{
    const struct node *format = node->kind == NODE_MAP ? node_get(node, "format") : NULL;
    autotext struct text said = TEXT_NONE;

    if (!format)
        return error_set(err, ERROR_INVALID, "%s: this is no record of a sandbox: it has no `format`", shown);
    if (format->kind != NODE_NUMBER || strcmp(format->text, FORMAT) != 0) {
        node_show(format, &said);
        return error_set(err, ERROR_UNSUPPORTED,
                         "%s: has format %s, and this version of Cove knows only " FORMAT, shown,
                         text_string(&said));
    }

    const struct member *wrong = read_members(members, ARRAY_LEN(members), node, out);
    const struct node *value = wrong ? node_get(node, wrong->key) : NULL;

    if (wrong && !value)
        return error_set(err, ERROR_INVALID, "%s: has no `%s`", shown, wrong->key);
    if (wrong)
        return error_set(err, ERROR_INVALID, "%s:%u: `%s` must be %s", shown, value->line, wrong->key,
                         wrong->kind->what);
    return 0;
}

int record_read_json(const char *bytes, size_t len, const char *shown, struct record *out, struct error *err)
{
    autonode struct node node = NODE_NONE;

    *out = RECORD_NONE;
    if (node_read_json(bytes, len, shown, &node, err) < 0)
        return -1;
    if (read_node(&node, shown, out, err) == 0)
        return 0;
    record_free(out);
    return -1;
}

int record_read(int dir, const char *id, struct record *out, struct error *err)
{
    autofree char *shown = text_format("record of %.12s", id),
                  *bytes = file_text(dir, STORE_RECORD, NODE_BYTES_MAX);

    *out = RECORD_NONE;
    if (!bytes)
        return error_set(err, ERROR_INVALID, "%s: is no readable file of 1 MB at most", shown);
    if (record_read_json(bytes, strlen(bytes), shown, out, err) < 0)
        return -1;
    if (strcmp(out->id, id) == 0)
        return 0;
    record_free(out);
    return error_set(err, ERROR_INVALID, "%s: is that of another sandbox", shown);
}

int record_write(int dir, const struct record *record, struct error *err)
{
    autotext struct text json = TEXT_NONE;

    record_json(record, &json);
    if (json.len > NODE_BYTES_MAX) {
        error_set(err, ERROR_REFUSED, "the record of the sandbox would be larger than 1 MB");
        return error_hint(err, "hide fewer paths, or keep nothing with --rm");
    }
    return store_write_record(dir, json.data, json.len, err);
}
