#include "cli/steps.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/view.h"
#include "cli/which.h"
#include "keeper/report.h"
#include "keeper/states.h"
#include "spec/node.h"
#include "trace/step.h"

#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_MAX = 60, EXIT_BROKEN = 1 };

const struct option_row options_of_steps[] = {
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

/* What a step changed is counted in the moment after its end was told. */
static bool is_counted(const struct steps *steps)
{
    enum { MOMENT_S = 2 };
    const struct step *last = steps->len ? &steps->items[steps->len - 1] : NULL;

    return !last || last->state != STEP_IS_OVER || last->looked || last->ended.tv_sec + MOMENT_S < time(NULL);
}

/* A line may be on its way while we look.  One that has no end a moment later is torn. */
static int read_steps(int dir, bool counted, struct steps *out, struct error *err)
{
    enum { TRIES = 5, TRIES_COUNTED = 25, PAUSE_MS = 20 };

    for (unsigned tries = 1;; tries++) {
        bool held = store_is_held(dir);

        if (steps_read(dir, held, out, err) < 0)
            return -1;
        if (!held || tries == (out->found.how == TRACE_TRUNCATED ? TRIES : TRIES_COUNTED) ||
            (out->found.how != TRACE_TRUNCATED && (!counted || is_counted(out))))
            return 0;
        steps_free(out);
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

/* A checkpoint that was made may be gone by now. */
static void heed_dropped(int dir, struct steps *steps)
{
    autostates struct states states = STATES_NONE;
    struct error ignored;

    (void)states_read(dir, &states, &ignored);
    for (size_t i = 0; i < steps->len; i++) {
        struct step_end *end = &steps->items[i].end;
        const char *why = end->checkpoint ? states_why(&states, steps->items[i].number) : NULL;

        if (!why)
            continue;
        free(steal_ptr(&end->checkpoint));
        end->no_checkpoint = text_copy(why);
    }
}

/* --- for people --- */

static void add_end(struct table *table, const struct step *step)
{
    autotext struct text text = TEXT_NONE;
    const struct step_end *end = &step->end;

    if (step->state != STEP_IS_OVER)
        text_add(&text, step_state_name(step->state));
    else if (end->limit)
        text_addf(&text, "limit %s", end->limit);
    else if (end->signal != MEMBER_NO_NUMBER && strcmp(end->reason, "signaled") == 0)
        text_addf(&text, "signal %" PRIu64, end->signal);
    else if (end->exit != MEMBER_NO_NUMBER && strcmp(end->reason, "exited") == 0)
        text_addf(&text, "exit %" PRIu64, end->exit);
    else
        text_add(&text, end->reason);
    if (step->inside)
        text_add(&text, " (said)");
    table_add(table, text_string(&text));
}

static void add_usage(struct table *table, const struct step_end *end)
{
    autotext struct text cpu = TEXT_NONE, memory = TEXT_NONE;
    bool counted = end->user_us != MEMBER_NO_NUMBER && end->system_us != MEMBER_NO_NUMBER;

    if (counted)
        view_took(end->user_us + end->system_us, &cpu);
    if (end->peak_kib != MEMBER_NO_NUMBER)
        view_space(end->peak_kib * 1024, &memory);
    table_add(table, counted ? text_string(&cpu) : "-");
    table_add(table, memory.len ? text_string(&memory) : "-");
}

static void add_files(struct table *table, const struct step *step)
{
    const struct step_end *end = &step->end;
    autofree char *files =
        text_format("+%" PRIu64 " ~%" PRIu64 " -%" PRIu64, end->added, end->changed, end->removed);

    if (step->state == STEP_IS_OVER && end->added == MEMBER_NO_NUMBER)
        table_add(table, "?");
    else
        table_add(table, end->added || end->changed || end->removed ? files : "-");
}

static void add_checkpoint(struct table *table, const struct step_end *end)
{
    autofree char *none = text_format("none: %s", end->no_checkpoint ? end->no_checkpoint : "");

    autofree char *made =
        end->checkpoint ? text_format("%.*s", table->width ? KEPT_ID_SHOWN : ID_LENGTH, end->checkpoint) : NULL;

    table_add(table, made ? made : end->no_checkpoint ? none : "-");
}

static void add_row(struct table *table, const struct step *step)
{
    autotext struct text age = TEXT_NONE, took = TEXT_NONE, command = TEXT_NONE;
    autofree char *number = text_format("%" PRIu64 "%s", step->number, step->verified ? "" : "?");

    view_age(step->started, &age);
    if (step->state == STEP_IS_OVER)
        view_took(step->end.wall_us, &took);
    view_words(&step->argv, COMMAND_MAX, &command);
    table_add(table, number);
    table_add(table, text_string(&age));
    table_add(table, took.len ? text_string(&took) : "-");
    add_end(table, step);
    add_usage(table, &step->end);
    add_files(table, step);
    add_checkpoint(table, &step->end);
    table_add(table, text_string(&command));
}

static void add_table(const struct steps *steps, struct text *out)
{
    static const char *const heads[] = { "STEP",   "AGE",   "TOOK",       "END",    "CPU",
                                         "MEMORY", "FILES", "CHECKPOINT", "COMMAND" };
    autotable struct table table = { .columns = ARRAY_LEN(heads), .width = report_width(STDOUT_FILENO) };

    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_add(&table, heads[i]);
    for (size_t i = 0; i < steps->len; i++)
        add_row(&table, &steps->items[i]);
    table_write(&table, out);
}

static void warn(const struct steps *steps)
{
    autofree char *says = trace_found_says(&steps->found);

    if (says)
        say_warning("the record of this sandbox is broken: %s", says);
    if (steps->odd)
        say_warning("%" PRIu64 " lines of the record are about steps and make no sense where they stand",
                    steps->odd);
    if (steps->left_out)
        say_warning("there are %" PRIu64 " steps more", steps->left_out);
}

/* --- for programs --- */

static void add_number(struct node *out, const char *key, uint64_t value)
{
    autofree char *text = text_format("%" PRIu64, value);

    node_add(out, key, NODE_NUMBER, text);
}

static void add_chain(const struct trace_found *found, struct node *out)
{
    autofree char *says = trace_found_says(found);
    struct node *broken = node_add(out, "broken", says ? NODE_MAP : NODE_NULL, NULL);

    if (says) {
        add_number(broken, "line", found->broken);
        node_add(broken, "how", NODE_STRING, trace_break_name(found->how));
        node_add(broken, "says", NODE_STRING, says);
    }
    add_number(out, "lines", found->lines);
    add_number(out, "records", found->records);
    add_number(out, "torn", found->torn);
    node_add(out, "hash", *found->hash ? NODE_STRING : NODE_NULL, *found->hash ? found->hash : NULL);
}

static void add_json(const struct steps *steps, struct text *out)
{
    autonode struct node all = { .kind = NODE_MAP };

    add_chain(&steps->found, node_add(&all, "chain", NODE_MAP, NULL));
    add_number(&all, "left_out", steps->left_out);
    add_number(&all, "odd", steps->odd);

    struct node *list = node_add(&all, "steps", NODE_LIST, NULL);

    for (size_t i = 0; i < steps->len; i++)
        step_node(&steps->items[i], node_add(list, NULL, NODE_MAP, NULL));
    node_write_json(&all, out);
    text_add(out, "\n");
}

int cli_steps(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    autosteps struct steps steps = STEPS_NONE;
    autotext struct text text = TEXT_NONE;

    if (options->words.len > 1)
        return error_set(err, ERROR_INVALID, "`cove steps` takes one sandbox");
    if (which_read(&which, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, options->words.len ? options->words.items[0] : NULL, err);

    if (!kept)
        return -1;

    autoclose int dir = kept_open(&which.all, kept, err);

    /* One that was made by `cove run` has no steps, and no record of them. */
    if (dir < 0 ||
        (read_steps(dir, !kept->record.no_checkpoints, &steps, err) < 0 && err->kind != ERROR_MISSING))
        return -1;
    heed_dropped(dir, &steps);
    if (options->run.json)
        add_json(&steps, &text);
    else
        add_table(&steps, &text);
    fputs(text_string(&text), stdout);
    warn(&steps);
    if (!options->run.json && !steps.len && kept->state != KEPT_BROKEN && !kept->record.stays)
        say_note("sandbox %s was made by `cove run`, for one command, and has no steps; see cove show %s",
                 kept_word(kept).text, kept_word(kept).text);
    return steps.found.how == TRACE_WHOLE ? 0 : EXIT_BROKEN;
}
