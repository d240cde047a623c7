#include "cli/prune.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/view.h"
#include "cli/which.h"
#include "store/packages.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

/* Changes that nobody has looked at are not thrown away by a habit. */
#define OLDER_USUALLY "7d"

const struct option_row options_of_prune[] = {
    { "older", 0, "DURATION",
      "Remove what ended longer than DURATION ago (2h, 30d; none: all); " OLDER_USUALLY " unless you say so",
      OPTION_STRING, offsetof(struct run_options, older) },
    { "label", 0, "KEY[=VALUE]", "Remove only what has this label; may be given again, then all are needed",
      OPTION_LIST, offsetof(struct run_options, labels) },
    { "packages", 0, NULL, "Remove the package files that are kept for all sandboxes, and no sandbox",
      OPTION_BOOL, offsetof(struct run_options, packages) },
    { "dry-run", 0, NULL, "Say what would be removed, remove nothing", OPTION_BOOL,
      offsetof(struct run_options, dry_run) },
    { NULL },
};

/* What a run of this command has removed. */
struct pruning {
    const struct run_options *options;
    time_t before;
    struct table table;
    uint64_t space;
    size_t count;
};

static bool is_meant(const struct pruning *pruning, const struct kept *kept)
{
    const struct record *record = &kept->record;
    time_t end = record->ended.tv_sec ? record->ended.tv_sec : record->created.tv_sec;

    if (kept_is_alive(kept) || kept->state == KEPT_BROKEN || end > pruning->before)
        return false;
    for (size_t i = 0; i < pruning->options->labels.len; i++)
        if (!record_has_label(record, pruning->options->labels.items[i]))
            return false;
    return true;
}

static int prune_one(struct pruning *pruning, const struct kept_list *list, const struct kept *kept)
{
    autotext struct text id = TEXT_NONE, age = TEXT_NONE, space = TEXT_NONE;
    struct error err;
    struct view view;

    view_read(list, kept, true, &view);
    if (!pruning->options->dry_run && kept_remove(list, kept, &err) < 0)
        return say_error(&err);
    text_addf(&id, "%.*s", KEPT_ID_SHOWN, kept->id);
    view_age(kept->record.created, &age);
    view_space(view.space, &space);
    table_add(&pruning->table, text_string(&id));
    table_add(&pruning->table, kept->record.name ? kept->record.name : "-");
    table_add(&pruning->table, text_string(&age));
    table_add(&pruning->table, text_string(&space));
    table_add(&pruning->table, kept->record.workspace);
    pruning->space += view.space;
    pruning->count++;
    return 0;
}

static void print(const struct pruning *pruning)
{
    autotext struct text text = TEXT_NONE;

    table_write(&pruning->table, &text);
    text_addf(&text, "%s %zu sandbox%s, ", pruning->options->dry_run ? "would remove" : "removed",
              pruning->count, pruning->count == 1 ? "" : "es");
    view_space(pruning->space, &text);
    text_add(&text, "\n");
    fputs(text_string(&text), stdout);
}

/* Nobody is in the way: who reads one of them has it open. */
static int prune_packages(bool dry, struct error *err)
{
    autohost struct host host = { 0 };
    autotext struct text space = TEXT_NONE;
    struct packages_usage usage = { 0 };

    if (host_read(&host, err) < 0)
        return -1;
    autoclose int dir = packages_open(host.state, err);

    if (dir < 0 && err->kind != ERROR_MISSING)
        return -1;
    if (dir >= 0 && packages_trim(dir, 0, dry, &usage, err) < 0)
        return -1;
    view_space(usage.removed_bytes, &space);
    printf("%s %llu package file%s, %s\n", dry ? "would remove" : "removed",
           (unsigned long long)usage.removed_files, usage.removed_files == 1 ? "" : "s", text_string(&space));
    return 0;
}

int cli_prune(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    struct pruning pruning = { .options = &options->run, .table = { .columns = 5 } };
    uint64_t millis;
    int code = 0;

    if (options->words.len)
        return error_set(err, ERROR_INVALID, "`cove prune` takes no words; `cove rm` removes single sandboxes");
    if (options->run.packages)
        return prune_packages(options->run.dry_run, err);
    if (options_duration("older", options->run.older ? options->run.older : OLDER_USUALLY, &millis, err) < 0 ||
        which_read(&which, err) < 0)
        return -1;
    pruning.before = time(NULL) - (time_t)(millis / 1000);
    for (size_t i = 0; i < which.all.len; i++)
        if (is_meant(&pruning, &which.all.items[i]) &&
            prune_one(&pruning, &which.all, &which.all.items[i]) != 0)
            code = EXIT_OWN_ERROR;
    print(&pruning);
    table_free(&pruning.table);
    return code;
}
