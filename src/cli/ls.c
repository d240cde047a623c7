#include "cli/ls.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/view.h"
#include "cli/which.h"
#include "keeper/report.h"
#include "spec/node.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = 40 };

const struct option_row options_of_ls[] = {
    { "quiet", 'q', NULL, "Print ids only", OPTION_BOOL, offsetof(struct run_options, quiet) },
    { "json", 0, NULL, "Print one JSON array", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

static void add_ids(const struct kept_list *list, struct text *out)
{
    for (size_t i = 0; i < list->len; i++)
        text_addf(out, "%s\n", list->items[i].id);
}

static void add_json(const struct kept_list *list, struct text *out)
{
    autonode struct node all = { .kind = NODE_LIST };

    for (size_t i = 0; i < list->len; i++) {
        struct view view;

        view_read(list, &list->items[i], false, &view);
        view_node(&list->items[i], &view, node_add(&all, NULL, NODE_MAP, NULL));
    }
    node_write_json(&all, out);
    text_add(out, "\n");
}

/* On a terminal without the way to the home directory: there is little room. */
static void add_workspace(struct table *table, const struct which *which, const char *workspace)
{
    const char *home = which->host.home;
    bool below = table->width && home && home[1] && path_within(workspace, home);
    autofree char *shown = text_format("%s%s", below ? "~" : "", workspace + (below ? strlen(home) : 0));

    table_add(table, shown);
}

static void add_row(struct table *table, const struct which *which, const struct kept *kept)
{
    autotext struct text id = TEXT_NONE, age = TEXT_NONE, command = TEXT_NONE, state = TEXT_NONE;
    const struct record *record = &kept->record;
    bool broken = kept->state == KEPT_BROKEN;
    struct view view;

    view_read(&which->all, kept, false, &view);
    text_addf(&id, "%.*s", KEPT_ID_SHOWN, kept->id);
    view_age(record->created, &age);
    view_command(record, COMMAND_MAX, &command);
    view_state(kept, &state);
    table_add(table, text_string(&id));
    table_add(table, record->name ? record->name : "-");
    table_add(table, text_string(&state));
    table_add(table, broken ? "-" : text_string(&age));
    table_add(table, view_changes(kept, &view));
    add_workspace(table, which, broken ? "-" : record->workspace);
    table_add(table, text_string(&command));
}

static void add_table(const struct which *which, struct text *out)
{
    static const char *const heads[] = { "ID", "NAME", "STATE", "AGE", "CHANGES", "WORKSPACE", "COMMAND" };
    const struct kept_list *list = &which->all;
    autotable struct table table = { .columns = ARRAY_LEN(heads), .width = report_width(STDOUT_FILENO) };

    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_add(&table, heads[i]);
    for (size_t i = 0; i < list->len; i++)
        add_row(&table, which, &list->items[i]);
    table_write(&table, out);
}

static void warn_of_broken(const struct kept_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->items[i].state == KEPT_BROKEN)
            say_warning("%s", list->items[i].problem.text);
}

int cli_ls(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    autotext struct text text = TEXT_NONE;

    if (options->words.len)
        return error_set(err, ERROR_INVALID, "`cove ls` takes no words; `cove show` tells about one sandbox");
    if (which_read(&which, err) < 0)
        return -1;
    if (options->run.json)
        add_json(&which.all, &text);
    else if (options->run.quiet)
        add_ids(&which.all, &text);
    else
        add_table(&which, &text);
    fputs(text_string(&text), stdout);
    if (!options->run.json && !options->run.quiet)
        warn_of_broken(&which.all);
    return 0;
}
