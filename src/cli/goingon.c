#include "cli/goingon.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/staying.h"
#include "keeper/keep.h"
#include "store/store.h"

#include <string.h>

void goingon_free(struct goingon *goingon)
{
    strings_free(&goingon->words);
    which_free(&goingon->which);
    *goingon = GOINGON_NONE;
}

static bool has_name(const struct kept *kept, const char *name)
{
    return kept->record.name && strcmp(kept->record.name, name) == 0;
}

int goingon_find(const struct options *options, struct goingon *out, struct error *err)
{
    const char *name = options->run.name;

    if (!options->run.again && !name)
        return 0;
    if (which_read(&out->which, err) < 0)
        return -1;
    if (options->run.again) {
        out->kept = which_sandbox(&out->which, name, err);
        return out->kept ? 0 : -1;
    }
    for (size_t i = 0; i < out->which.all.len; i++)
        if (has_name(&out->which.all.items[i], name))
            out->kept = &out->which.all.items[i];
    return 0;
}

static int check(const struct kept *kept, struct error *err)
{
    const struct record *record = &kept->record;

    if (kept->state == KEPT_BROKEN) {
        *err = kept->problem;
        return -1;
    }
    if (kept_is_alive(kept))
        return error_set(err, ERROR_REFUSED, "sandbox %s still runs", kept_word(kept).text);
    if (strcmp(record->mode, "live") == 0 || strcmp(record->mode, "rw") == 0)
        return error_set(err, ERROR_REFUSED,
                         "sandbox %s wrote to the workspace itself (%s), and there is nothing to go on with",
                         kept_word(kept).text, record->mode);
    return 0;
}

/* What was asked for and cannot be given; NULL: nothing. */
static const char *in_vain(const struct options *options)
{
    const struct run_options *run = &options->run;
    const struct {
        bool asked;
        const char *name;
    } others[] = {
        { options->spec.len, options->spec.len ? options->spec.items[0].flag->name : NULL },
        { run->explain, "explain" },
        { run->prove, "prove" },
        { run->print_plan, "print-plan" },
        { run->dry_run, "dry-run" },
        { run->summary, "summary" },
        { run->report, "report" },
        { run->labels.len, "label" },
    };

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (others[i].asked)
            return others[i].name;
    return NULL;
}

int goingon_check_staying(const struct goingon *goingon, const struct options *options, struct error *err)
{
    const char *name = in_vain(options);

    if (!name)
        return 0;
    error_set(err, ERROR_REFUSED, "--%s: sandbox %.*s stays as it was made", name, KEPT_ID_SHOWN,
              goingon->kept->id);
    return error_hint(err, "run the command without it; `cove exec` has options of its own");
}

/* The command's own words stand behind what the sandbox is; `--name` stays, it is the same. */
int goingon_take(struct goingon *goingon, struct options *options, struct sandbox_dir *dir, struct error *err)
{
    const struct kept *kept = goingon->kept;
    struct options joined;

    if (check(kept, err) < 0 || staying_open(&goingon->which, kept, dir, err) < 0 || check(kept, err) < 0 ||
        keep_check_spec(dir->fd, &kept->record, err) < 0)
        return -1;
    strings_add(&goingon->words, options->command->name);
    strings_add(&goingon->words, "--spec");
    strings_take(&goingon->words,
                 text_format("%s/sandboxes/%s/" STORE_SPEC, goingon->which.host.state, kept->id));
    strings_add(&goingon->words, "--directory");
    strings_add(&goingon->words, kept->record.cwd);
    for (int i = 1; i < options->argc; i++)
        strings_add(&goingon->words, options->argv[i]);
    if (options_parse(options->command, (int)goingon->words.len, goingon->words.items, &joined, err) < 0)
        return -1;
    options_free(options);
    *options = joined;
    return 0;
}
