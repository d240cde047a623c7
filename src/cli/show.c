#include "cli/show.h"

#include "base/date.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/view.h"
#include "cli/which.h"
#include "spec/node.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { COMMAND_MAX = 2000 };

const struct option_row options_of_show[] = {
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

static void add_line(struct text *out, const char *head, const char *value)
{
    if (!value)
        return;
    text_addf(out, "%-10s ", head);
    text_add_inert(out, value);
    text_add(out, "\n");
}

static void add_date(struct text *out, const char *head, struct timespec time)
{
    autotext struct text line = TEXT_NONE;
    char date[DATE_SIZE];

    if (!time.tv_sec)
        return;
    date_write(time, date);
    text_addf(&line, "%s (", date);
    view_age(time, &line);
    text_add(&line, " ago)");
    add_line(out, head, text_string(&line));
}

static void add_end(struct text *out, const struct record *record)
{
    autofree char *line =
        text_format("%" PRIu64 " (%s)", record->exit_code, record->reason ? record->reason : "?");

    if (record->exit_code != RECORD_NO_NUMBER)
        add_line(out, "exit", line);
    if (record->state != RECORD_RUNNING)
        add_line(out, "why", record->why);
}

static void add_layers(struct text *out, const struct record_layers *layers)
{
    for (size_t i = 0; i < layers->len; i++) {
        const struct record_layer *layer = &layers->items[i];
        autofree char *line = text_format("u%" PRIu64 " %s (%s)", layer->number, layer->target, layer->why);

        add_line(out, i ? "" : "layers", line);
    }
}

static void add_record(struct text *out, const struct record *record)
{
    autotext struct text command = TEXT_NONE;

    add_date(out, "created", record->created);
    add_date(out, "ended", record->ended);
    add_end(out, record);
    view_command(record, COMMAND_MAX, &command);
    add_line(out, "command", text_string(&command));
    add_line(out, "workspace", record->workspace);
    add_line(out, "mode", record->mode);
    add_line(out, "directory", record->cwd);
    add_line(out, "image", record->image);
    for (size_t i = 0; i < record->labels.len; i++)
        add_line(out, i ? "" : "labels", record->labels.items[i]);
    add_layers(out, &record->layers);
}

static void add_services(struct text *out, const struct kept *kept)
{
    autostrings struct strings services = STRINGS_NONE;

    view_services(kept, &services);
    for (size_t i = 0; i < services.len; i++)
        add_line(out, i ? "" : "services", services.items[i]);
}

static void show_text(const struct which *which, const struct kept *kept, const struct view *view,
                      struct text *out)
{
    autofree char *files = text_format("%s/sandboxes/%s", which->host.state, kept->id);
    autotext struct text space = TEXT_NONE;

    view_space(view->space, &space);
    add_line(out, "id", kept->id);
    add_line(out, "name", kept->record.name);
    add_line(out, "state", kept_state_name(kept->state));
    if (kept->state == KEPT_BROKEN) {
        add_line(out, "error", kept->problem.text);
    } else {
        add_record(out, &kept->record);
        add_services(out, kept);
        add_line(out, "changes", view_changes(kept, view));
    }
    add_line(out, "space", text_string(&space));
    add_line(out, "files", files);
}

static void show_json(const struct kept *kept, const struct view *view, struct text *out)
{
    autonode struct node node = NODE_NONE;
    autofree char *space = text_format("%" PRIu64, view->space);

    view_node(kept, view, &node);
    node_add(&node, "space", NODE_NUMBER, space);
    node_write_json(&node, out);
    text_add(out, "\n");
}

int cli_show(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    autotext struct text text = TEXT_NONE;
    struct view view;

    if (options->words.len > 1)
        return error_set(err, ERROR_INVALID, "`cove show` takes one sandbox");
    if (which_read(&which, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, options->words.len ? options->words.items[0] : NULL, err);

    if (!kept)
        return -1;
    view_read(&which.all, kept, true, &view);
    if (options->run.json)
        show_json(kept, &view, &text);
    else
        show_text(&which, kept, &view, &text);
    fputs(text_string(&text), stdout);
    return 0;
}
