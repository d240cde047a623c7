/* The family of a sandbox as a tree: what is printed, as text or as JSON, is made first. */

#include "cli/family.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/view.h"
#include "cli/which.h"
#include "keeper/snapshots.h"
#include "keeper/states.h"
#include "spec/node.h"
#include "store/layers.h"
#include "store/stack.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATIONS_MAX = 16 }; /* deeper ones are left out */

const struct option_row options_of_tree[] = {
    { "json", 0, NULL, "Print a JSON object", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

struct family {
    struct which which;
    int layers;
    struct strings snapshots;
};

#define autofamily __attribute__((cleanup(family_free)))

static void family_free(struct family *family)
{
    own_close(&family->layers);
    strings_free(&family->snapshots);
    which_free(&family->which);
}

/* A merged layer shows the same as the newest of those it stands for. */
static void canonical(const struct family *family, char layer[ID_LENGTH + 1])
{
    autolayerinfo struct layer_info info = LAYER_INFO_NONE;
    struct error ignored;

    if (*layer && layers_read(family->layers, layer, &info, &ignored) == 0 && info.merged.len)
        snprintf(layer, ID_LENGTH + 1, "%s", info.merged.items[0]);
}

static int read_states(const struct family *family, const struct kept *kept, struct states *out)
{
    struct error ignored;
    autoclose int dir = kept_open(&family->which.all, kept, &ignored);

    if (dir < 0 || states_read(dir, out, &ignored) < 0)
        return -1;
    for (size_t i = 0; i < out->len; i++)
        canonical(family, out->items[i].layer);
    return 0;
}

/* The layer that it began with; "" if it is no fork. */
static void origin_of(const struct family *family, const struct kept *kept, char layer[ID_LENGTH + 1],
                      char parent[ID_LENGTH + 1])
{
    autostates struct states states = STATES_NONE;
    autolayerinfo struct layer_info info = LAYER_INFO_NONE;
    struct error ignored;

    *layer = *parent = '\0';
    if (read_states(family, kept, &states) < 0 || !states.len || states.items[0].step != 0 ||
        layers_read(family->layers, states.items[0].layer, &info, &ignored) < 0 ||
        strcmp(info.sandbox, kept->id) == 0)
        return;
    memcpy(layer, states.items[0].layer, ID_LENGTH + 1);
    memcpy(parent, info.sandbox, sizeof info.sandbox);
}

/* --- making the tree --- */

static struct node *add_number(struct node *map, const char *key, uint64_t value)
{
    autofree char *text = text_format("%llu", (unsigned long long)value);

    return node_add(map, key, NODE_NUMBER, text);
}

static void add_size(const struct family *family, struct node *map, const char *layer)
{
    uint64_t bytes, files;
    struct error ignored;

    if (layers_size(family->layers, layer, &bytes, &files, &ignored) < 0)
        return;
    add_number(map, "bytes", bytes);
    add_number(map, "files", files);
}

static void add_snapshots(const struct family *family, struct node *map, const char *layer)
{
    struct node *list = node_add(map, "snapshots", NODE_LIST, NULL);

    for (size_t i = 0; i < family->snapshots.len; i++) {
        autosnapshot struct snapshot snapshot = SNAPSHOT_NONE;
        struct error ignored;

        if (snapshot_read(family->which.host.state, family->snapshots.items[i], &snapshot, &ignored) < 0)
            continue;
        canonical(family, snapshot.layer);
        if (strcmp(snapshot.layer, layer) == 0)
            node_add(list, NULL, NODE_STRING, family->snapshots.items[i]);
    }
}

static void add_sandbox(const struct family *family, const struct kept *kept, unsigned generation,
                        struct node *map);

static void add_forks(const struct family *family, const struct kept *kept, const char *layer,
                      unsigned generation, struct node *map)
{
    struct node *list = node_add(map, "forks", NODE_LIST, NULL);

    for (size_t i = 0; generation < GENERATIONS_MAX && i < family->which.all.len; i++) {
        const struct kept *other = &family->which.all.items[i];
        char from[ID_LENGTH + 1], parent[ID_LENGTH + 1];

        if (other == kept || other->state == KEPT_BROKEN)
            continue;
        origin_of(family, other, from, parent);
        if (strcmp(from, layer) == 0 && strcmp(parent, kept->id) == 0)
            add_sandbox(family, other, generation + 1, node_add(list, NULL, NODE_MAP, NULL));
    }
}

static bool was_before(const struct states *states, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(states->items[i].layer, states->items[index].layer) == 0)
            return true;
    return false;
}

static void add_points(const struct family *family, const struct kept *kept, unsigned generation,
                       struct node *map)
{
    autostates struct states states = STATES_NONE;
    struct node *list = node_add(map, "checkpoints", NODE_LIST, NULL);

    if (read_states(family, kept, &states) < 0)
        return;
    canonical(family, states.now);
    for (size_t i = 0; i < states.len; i++) {
        const struct state *state = &states.items[i];

        if (!*state->layer || was_before(&states, i)) /* it changed nothing */
            continue;

        struct node *point = node_add(list, NULL, NODE_MAP, NULL);

        add_number(point, "step", state->step);
        node_add(point, "layer", NODE_STRING, state->layer);
        node_add(point, "now", NODE_BOOL, strcmp(states.now, state->layer) == 0 ? "true" : "false");
        add_size(family, point, state->layer);
        add_snapshots(family, point, state->layer);
        add_forks(family, kept, state->layer, generation, point);
    }
}

static void add_sandbox(const struct family *family, const struct kept *kept, unsigned generation,
                        struct node *map)
{
    node_add(map, "id", NODE_STRING, kept->id);
    if (kept->record.name)
        node_add(map, "name", NODE_STRING, kept->record.name);
    node_add(map, "state", NODE_STRING, kept_state_name(kept->state));
    add_points(family, kept, generation, map);
}

/* --- for people --- */

static const char *text_of(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);

    return node && node->text ? node->text : "";
}

static void print_sandbox(const struct node *map, unsigned depth);

static void print_point(const struct node *point, unsigned depth)
{
    const struct node *snapshots = node_get(point, "snapshots"), *forks = node_get(point, "forks");
    autotext struct text size = TEXT_NONE;
    int indent = (int)depth * 4;

    view_space(strtoull(text_of(point, "bytes"), NULL, 10), &size);
    printf("%*sstep %-5s %.*s  %s%s\n", indent + 2, "", text_of(point, "step"), KEPT_ID_SHOWN,
           text_of(point, "layer"), text_string(&size),
           strcmp(text_of(point, "now"), "true") == 0 ? "  <- now" : "");
    for (size_t i = 0; i < snapshots->len; i++)
        printf("%*ssnapshot %s\n", indent + 4, "", snapshots->items[i].text);
    for (size_t i = 0; i < forks->len; i++)
        print_sandbox(&forks->items[i], depth + 1);
}

/* Ids, names and states are ours: nothing in them can do more than be seen. */
static void print_sandbox(const struct node *map, unsigned depth)
{
    const struct node *points = node_get(map, "checkpoints");
    const char *name = text_of(map, "name");

    printf("%*s%.*s%s%s  %s\n", (int)depth * 4, "", KEPT_ID_SHOWN, text_of(map, "id"), *name ? "  " : "", name,
           text_of(map, "state"));
    for (size_t i = 0; i < points->len; i++)
        print_point(&points->items[i], depth);
}

/* --- the command --- */

static const struct kept *find_id(const struct family *family, const char *id)
{
    for (size_t i = 0; i < family->which.all.len; i++)
        if (strcmp(family->which.all.items[i].id, id) == 0)
            return &family->which.all.items[i];
    return NULL;
}

/* The eldest that is still there. */
static const struct kept *climb(const struct family *family, const struct kept *kept)
{
    for (unsigned i = 0; i < GENERATIONS_MAX; i++) {
        char layer[ID_LENGTH + 1], parent[ID_LENGTH + 1];

        origin_of(family, kept, layer, parent);

        const struct kept *above = *parent ? find_id(family, parent) : NULL;

        if (!above || above->state == KEPT_BROKEN)
            break;
        kept = above;
    }
    return kept;
}

int cli_tree(struct options *options, struct error *err)
{
    autofamily struct family family = { .which = WHICH_NONE, .layers = -1 };
    autonode struct node tree = { .kind = NODE_MAP };
    autotext struct text json = TEXT_NONE;

    if (options->words.len > 1)
        return error_set(err, ERROR_INVALID, "`cove tree` takes one sandbox");
    if (which_read(&family.which, err) < 0)
        return -1;

    const struct kept *kept =
        which_sandbox(&family.which, options->words.len ? options->words.items[0] : NULL, err);

    if (!kept)
        return -1;
    if (kept->state == KEPT_BROKEN) {
        *err = kept->problem;
        return -1;
    }
    family.layers = layers_open(family.which.host.state, err);
    if (family.layers < 0 || snapshots_list(family.which.host.state, &family.snapshots, err) < 0)
        return -1;
    add_sandbox(&family, climb(&family, kept), 0, &tree);
    if (!options->run.json) {
        print_sandbox(&tree, 0);
        return 0;
    }
    node_write_json(&tree, &json);
    printf("%s\n", text_string(&json));
    return 0;
}
