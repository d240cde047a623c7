/* `cove prove`: tries what must not work, and says what held. */

#include "cli/prove.h"

#include "base/date.h"
#include "base/delivery.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "cli/context.h"
#include "cli/run.h"
#include "cli/table.h"
#include "cli/through.h"
#include "cli/version.h"
#include "keeper/held.h"
#include "prove/prove.h"
#include "prove/statement.h"
#include "spec/fields.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

const struct option_row options_of_prove[] = {
    { "report", 'o', "FILE", "Write the statement to FILE as JSON, too; - is standard output", OPTION_STRING,
      offsetof(struct run_options, output) },
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

/* Everything one proof holds. */
struct proof {
    struct context context;
    struct through through;
    struct plan plan;
    struct limits
        limits; /* that the policy asks for, whatever becomes of the plan; where they go has no path */
    struct proving proving;
    struct verdict *verdicts; /* one a row */
    struct utsname system;
    char policy[65];
};

static void proof_free(struct proof *proof)
{
    proving_end(&proof->proving);
    if (proof->verdicts)
        verdicts_free(proof->verdicts);
    free(proof->verdicts);
    plan_free(&proof->plan);
    through_free(&proof->through);
    context_free(&proof->context);
}

/* As `cove run` would plan it, with one file more: the prober. */
static int make_plan(struct proof *proof, struct error *err)
{
    struct context *context = &proof->context;

    if (context->spec.workspace == WORKSPACE_RW && through_prepare(&proof->through, &context->trees, err) < 0)
        return -1;
    if (proving_add_program(&proof->proving, &context->trees, err) < 0 ||
        plan_build(&context->spec, &context->host, &context->workspace, &context->trees, &proof->plan, err) < 0)
        return -1;
    proof->limits = proof->plan.limits;
    memset(proof->limits.place.dirs, 0, sizeof proof->limits.place.dirs); /* the plan's own */
    proof->proving.limits = &proof->limits;
#ifdef COVE_UNSAFE
    unsafe_apply(&proof->plan);
#endif
    return 0;
}

static int try_it(struct proof *proof, struct error *err)
{
    const struct host *host = &proof->context.host;

    if (proving_set_variable(&proof->proving, err) < 0 || context_read(&proof->context, err) < 0)
        return -1;
    strings_free(&proof->context.spec.command); /* the statement holds for any */
    spec_hash(&proof->context.spec, proof->policy);
    if (proving_begin(&proof->proving, host, err) < 0 || make_plan(proof, err) < 0)
        return -1;
    proof->verdicts = memory_zero(rows_len * sizeof *proof->verdicts);
    return proving_run(&proof->proving, host, &proof->plan, proof->verdicts, err);
}

/* A signal waits until nothing is left of the canaries. */
static int prove(struct proof *proof, struct error *err)
{
    sigset_t old;

    uname(&proof->system);
    held_begin(&old);

    int result = try_it(proof, err);

    proving_end(&proof->proving);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}

static struct statement make_statement(const struct proof *proof)
{
    const struct spec *spec = &proof->context.spec;
    const struct ids *ids = &proof->plan.ids;
    struct statement statement = {
        .version = COVE_VERSION,
        .build = version_build,
        .system = proof->system.sysname,
        .release = proof->system.release,
        .machine = proof->system.machine,
        .user = proof->context.host.name,
        .uid = proof->context.host.uid,
        .ids = ids->shifted   ? "shifted"
               : ids->helpers ? "subordinate"
                              : "own",
        .policy = proof->policy,
        .image = spec->image,
        .workspace = fields[FIELD_WORKSPACE].choices[proof->plan.workspace_mode],
        .profile = fields[FIELD_SECCOMP].choices[spec->profile],
        .landlock_abi = proof->plan.landlock_abi,
        .limits = &proof->limits,
        .verdicts = proof->verdicts,
    };

    clock_gettime(CLOCK_REALTIME, &statement.date);
    return statement;
}

/* --- for people ----------------------------------------------------------------------------- */

static void add_line(struct table *table, const char *name, char *value)
{
    table_add(table, name);
    table_add(table, value);
    free(value);
}

static void show_limits(const struct limits *limits, struct table *table)
{
    const char *name = "limits";

    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_choice *choice = &limits->items[i];
        autotext struct text shown = TEXT_NONE;

        if (!choice->max)
            continue;
        limit_show(i, choice->max, &shown);
        add_line(table, name, text_format("%s (%s)", text_string(&shown), limit_way_words(choice->way)));
        name = "";
    }
}

static void show_subject(const struct statement *statement, struct text *out)
{
    autotable struct table table = { .columns = 2 };
    char date[DATE_SIZE];

    date_write(statement->date, date);
    add_line(&table, "date", text_copy(date));
    add_line(&table, "cove", text_format("%s (%s)", statement->version, statement->build));
    add_line(&table, "host",
             text_format("%s %s %s", statement->system, statement->release, statement->machine));
    add_line(&table, "user",
             text_format("%s, uid %u, %s ids", statement->user, (unsigned)statement->uid, statement->ids));
    add_line(&table, "policy", text_format("sha256 %s", statement->policy));
    add_line(&table, "",
             text_format("image %s, workspace %s, profile %s", statement->image, statement->workspace,
                         statement->profile));
    show_limits(statement->limits, &table);
    table_write(&table, out);
}

static void show_layers(const struct statement *statement, struct text *out)
{
    static const char *const words[] = {
        [HELD] = "in force", [HELD_NOT] = "GAP", [HELD_UNKNOWN] = "not shown"
    };
    autotable struct table table = { .columns = 3 };

    for (unsigned i = 0; i < LAYER_COUNT; i++) {
        table_add(&table, layer_name(i));
        table_add(&table, words[statement_layer(statement, i)]);
        table_add(&table, layer_words(i));
    }
    table_write(&table, out);
}

static char *list_layers(unsigned layers)
{
    struct text text = TEXT_NONE;

    for (unsigned i = 0; i < LAYER_COUNT; i++)
        if (layers >> i & 1)
            text_addf(&text, "%s%s", text.len ? ", " : "", layer_name(i));
    return text_steal(&text);
}

static void add_row(struct table *table, const struct row *row, unsigned walls, const struct verdict *verdict)
{
    static const char *const words[] = {
        [HELD] = "held", [HELD_NOT] = "GAP", [HELD_UNKNOWN] = "cannot be shown"
    };
    autofree char *layers = list_layers(walls);
    autofree char *result = verdict->why ? text_format("%s: %s", words[verdict->held], verdict->why)
                                         : text_copy(words[verdict->held]);

    table_add(table, row->id);
    table_add(table, row->words);
    table_add(table, layers);
    table_add(table, result);
}

static void show_rows(const struct statement *statement, bool tried, struct text *out)
{
    autotable struct table table = { .columns = 4 };

    for (size_t i = 0; i < rows_len; i++)
        if (tried == (rows[i].attempt != NULL))
            add_row(&table, &rows[i], row_layers(&rows[i], statement->landlock_abi), &statement->verdicts[i]);
    table_write(&table, out);
}

static void show(const struct statement *statement, struct text *out)
{
    show_subject(statement, out);
    text_add(out, "\nWalls:\n");
    show_layers(statement, out);
    text_add(out, "\nRead from outside, what a command in the sandbox has or is:\n");
    show_rows(statement, false, out);
    text_add(out, "\nTried from inside, and must not work; any of the walls is enough:\n");
    show_rows(statement, true, out);
    text_addf(out, "\n%zu held, %zu with a gap, %zu cannot be shown here\n", statement_count(statement, HELD),
              statement_count(statement, HELD_NOT), statement_count(statement, HELD_UNKNOWN));
}

/* --- the commands --------------------------------------------------------------------------- */

static int deliver(const char *path, const struct text *json, struct error *err)
{
    autodelivery struct delivery place = DELIVERY_NONE;

    return delivery_open(path, &place, err) < 0 ? -1 : delivery_put(&place, json->data, json->len, err);
}

static int tell(const struct proof *proof, struct error *err)
{
    const struct run_options *options = &proof->context.options.run;
    struct statement statement = make_statement(proof);
    autotext struct text json = TEXT_NONE, text = TEXT_NONE;

    statement_json(&statement, &json);
    if (options->output && deliver(options->output, &json, err) < 0)
        return error_while(err, "write the statement");
    if (options->output && strcmp(options->output, "-") == 0)
        return 0;
    if (!options->json)
        show(&statement, &text);
    fputs(text_string(options->json ? &json : &text), stdout);
    return 0;
}

static bool has_gap(const struct proof *proof)
{
    for (size_t i = 0; i < rows_len; i++)
        if (proof->verdicts[i].held == HELD_NOT)
            return true;
    return false;
}

static int run(struct proof *proof, struct error *err)
{
    if (proof->context.options.words.len)
        return error_set(err, ERROR_INVALID, "`cove prove` runs no command; what it finds holds for any");
    if (prove(proof, err) < 0 || tell(proof, err) < 0)
        return -1;
    return has_gap(proof);
}

int cli_prove(struct options *options, struct error *err)
{
    struct proof proof = { .proving = PROVING_NONE, .context.options = options_take(options) };
    int code = run(&proof, err);

    proof_free(&proof);
    return code;
}

static int refuse_gap(const struct proof *proof, struct error *err)
{
    for (size_t i = 0; i < rows_len; i++)
        if (proof->verdicts[i].held == HELD_NOT) {
            error_set(err, ERROR_REFUSED, "the sandbox would have a gap: %s, \"%s\": %s", rows[i].id,
                      rows[i].words, proof->verdicts[i].why);
            return error_hint(err, "`cove prove` with the same options tells more");
        }
    return 0;
}

int prove_first(const struct options *options, struct error *err)
{
    struct proof proof = { .proving = PROVING_NONE };
    int result = options_again(options, &proof.context.options, err);

    if (result == 0)
        result = prove(&proof, err);
    if (result == 0)
        result = refuse_gap(&proof, err);
    proof_free(&proof);
    return result < 0 ? error_while(err, "--prove") : 0;
}
