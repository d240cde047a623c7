#include "keeper/record.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "spec/members.h"
#include "spec/node.h"
#include "store/store.h"

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
    char *texts[] = { record->id,        record->name,   record->workspace, record->cwd,  record->image,
                      record->spec_hash, record->reason, record->mode,      record->then, record->why };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    strings_free(&record->argv);
    strings_free(&record->labels);
    strings_free(&record->services);
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

struct timespec record_since(const struct record *record)
{
    return record->since.tv_sec ? record->since : record->created;
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
    out->kind = NODE_STRING;
    out->text = text_copy(state_names[*(const enum record_state *)from]);
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

static const struct member_kind a_state = { "running, stopped or killed", read_state, write_state },
                                some_labels = { "a mapping of labels", read_labels, write_labels },
                                some_layers = { "a list of layers", read_layers, write_layers };

#define AT(member) offsetof(struct record, member)
#define LAYER_AT(member) offsetof(struct record_layer, member)

/* What a record has.  A new member is a row here, and a new FORMAT if an old reader would go wrong. */
static const struct member record_members[] = {
    { "applied", &member_date_or_null, AT(applied), .later = true },
    { "argv", &member_list, AT(argv) },
    { "base", &member_number, AT(base) },
    { "created", &member_date, AT(created) },
    { "cwd", &member_text, AT(cwd) },
    { "ended", &member_date_or_null, AT(ended) },
    { "exit_code", &member_number_or_null, AT(exit_code) },
    { "gids", &member_list, AT(gids) },
    { "helpers", &member_flag, AT(helpers) },
    { "id", &member_text, AT(id) },
    { "image", &member_text, AT(image) },
    { "keeper", &member_number, AT(keeper) },
    { "keeper_started", &member_number, AT(keeper_started) },
    { "idle_ms", &member_number, AT(idle_ms), .later = true },
    { "labels", &some_labels, AT(labels) },
    { "layers", &some_layers, AT(layers) },
    { "mode", &member_text, AT(mode) },
    { "name", &member_text_or_null, AT(name) },
    { "no_checkpoints", &member_flag, AT(no_checkpoints), .later = true },
    { "paused", &member_flag, AT(paused), .later = true },
    { "reason", &member_text_or_null, AT(reason) },
    { "services", &some_labels, AT(services), .later = true },
    { "settled", &member_list, AT(settled), .later = true },
    { "shifted", &member_flag, AT(shifted) },
    { "since", &member_date_or_null, AT(since), .later = true },
    { "spec_hash", &member_text, AT(spec_hash) },
    { "state", &a_state, AT(state) },
    { "stays", &member_flag, AT(stays), .later = true },
    { "then", &member_text_or_null, AT(then), .later = true },
    { "ttl_ms", &member_number, AT(ttl_ms), .later = true },
    { "uids", &member_list, AT(uids) },
    { "why", &member_text_or_null, AT(why), .later = true },
    { "workspace", &member_text, AT(workspace) },
    { "workspace_device", &member_wide, AT(workspace_device) },
    { "workspace_inode", &member_wide, AT(workspace_inode) },
};

static const struct member layer_members[] = {
    { "device", &member_wide, LAYER_AT(device) }, { "hide", &member_list, LAYER_AT(hide) },
    { "inode", &member_wide, LAYER_AT(inode) },   { "layer", &member_number, LAYER_AT(number) },
    { "source", &member_text, LAYER_AT(source) }, { "target", &member_text, LAYER_AT(target) },
    { "why", &member_text, LAYER_AT(why) },
};

static bool read_layers(const struct node *node, void *into)
{
    struct record_layers *layers = into;

    if (node->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < node->len; i++)
        if (node->items[i].kind != NODE_MAP ||
            members_read(layer_members, ARRAY_LEN(layer_members), &node->items[i], array_add(layers)))
            return false;
    return true;
}

static void write_layers(const void *from, struct node *out)
{
    const struct record_layers *layers = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < layers->len; i++)
        members_write(layer_members, ARRAY_LEN(layer_members), &layers->items[i],
                      node_add(out, NULL, NODE_MAP, NULL));
}

void record_node(const struct record *record, struct node *out)
{
    members_write(record_members, ARRAY_LEN(record_members), record, out);
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

    const struct member *wrong = members_read(record_members, ARRAY_LEN(record_members), node, out);
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
