#include "cli/snapshot.h"

#include "base/date.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/point.h"
#include "cli/table.h"
#include "cli/view.h"
#include "keeper/snapshots.h"
#include "spec/node.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const struct option_row options_of_snapshot[] = {
    { "name", 0, "NAME", "Call the snapshot so", OPTION_STRING, offsetof(struct run_options, name) },
    { "json", 0, NULL, "With ls: print a JSON list", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

/* --- ls --- */

static void add_row(struct table *table, const char *name, const struct snapshot *snapshot)
{
    autotext struct text age = TEXT_NONE;
    autofree char *step = text_format("%llu", (unsigned long long)snapshot->step),
                  *id = text_format("%.*s", KEPT_ID_SHOWN, snapshot->record.id);

    view_age(snapshot->made, &age);
    table_add(table, name);
    table_add(table, id);
    table_add(table, step);
    table_add(table, text_string(&age));
    table_add(table, snapshot->record.workspace);
}

static void add_node(struct node *list, const char *name, const struct snapshot *snapshot)
{
    struct node *node = node_add(list, NULL, NODE_MAP, NULL);
    autofree char *step = text_format("%llu", (unsigned long long)snapshot->step);
    char made[DATE_SIZE];

    date_write(snapshot->made, made);
    node_add(node, "name", NODE_STRING, name);
    node_add(node, "sandbox", NODE_STRING, snapshot->record.id);
    node_add(node, "step", NODE_NUMBER, step);
    node_add(node, "layer", NODE_STRING, snapshot->layer);
    node_add(node, "made", NODE_STRING, made);
    node_add_bytes(node, "workspace", snapshot->record.workspace);
}

static int list(bool json, struct error *err)
{
    static const char *const heads[] = { "NAME", "SANDBOX", "STEP", "AGE", "WORKSPACE" };
    autotable struct table table = { .columns = ARRAY_LEN(heads) };
    autonode struct node nodes = { .kind = NODE_LIST };
    autohost struct host host = { 0 };
    autostrings struct strings names = STRINGS_NONE;
    autotext struct text out = TEXT_NONE;

    if (host_read(&host, err) < 0 || snapshots_list(host.state, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_add(&table, heads[i]);
    for (size_t i = 0; i < names.len; i++) {
        autosnapshot struct snapshot snapshot = SNAPSHOT_NONE;
        struct error ignored;

        if (snapshot_read(host.state, names.items[i], &snapshot, &ignored) < 0)
            continue;
        add_row(&table, names.items[i], &snapshot);
        add_node(&nodes, names.items[i], &snapshot);
    }
    if (json) {
        node_write_json(&nodes, &out);
        text_add(&out, "\n");
    } else {
        table_write(&table, &out);
    }
    fputs(text_string(&out), stdout);
    return 0;
}

/* --- rm --- */

static int remove_all(const struct strings *words, struct error *err)
{
    autohost struct host host = { 0 };

    if (words->len < 2)
        return error_set(err, ERROR_INVALID, "`cove snapshot rm` needs the name of a snapshot");
    if (host_read(&host, err) < 0)
        return -1;
    for (size_t i = 1; i < words->len; i++) {
        if (snapshot_remove(host.state, words->items[i], err) < 0)
            return -1;
        printf("%s\n", words->items[i]);
    }
    return 0;
}

/* --- making --- */

static int make(const char *word, const char *wanted, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    struct point point;
    struct timespec now;

    if (which_read(&which, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, word, err);

    if (!kept)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);

    autofree char *name =
        wanted ? text_copy(wanted)
               : text_format("%.*s-%llx", KEPT_ID_SHOWN, kept->id,
                             (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000);
    autoclose int dir = kept_open(&which.all, kept, err);

    if (dir < 0 || point_now(&which, kept, &point, err) < 0 ||
        snapshot_make(which.host.state, name, dir, &kept->record, point.layer, err) < 0)
        return -1;
    printf("%s\n", name);
    return 0;
}

int cli_snapshot(struct options *options, struct error *err)
{
    const struct strings *words = &options->words;

    if (words->len && strcmp(words->items[0], "ls") == 0)
        return list(options->run.json, err);
    if (words->len && strcmp(words->items[0], "rm") == 0)
        return remove_all(words, err);
    if (words->len > 1)
        return error_set(
            err, ERROR_INVALID,
            "`cove snapshot` takes one sandbox; a name for what is kept: cove snapshot --name NAME ID");
    return make(words->len ? words->items[0] : NULL, options->run.name, err);
}
