/* `cove run`: one command in a new sandbox.  The process is its sandbox's keeper. */

#include "cli/run.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/plan.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/help.h"
#include "cli/say.h"
#include "init/protocol.h"
#include "keeper/keeper.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything one run holds, released in one place. */
struct run {
    struct context context;
    struct plan plan;
    struct sandbox_dir dir;
    struct box box;
    struct result result;
};

static void run_free(struct run *run)
{
    plan_free(&run->plan);
    context_free(&run->context);
}

static int make_plan(struct run *run, struct error *err)
{
    struct context *context = &run->context;

    if (context_read(context, err) < 0)
        return -1;
    if (plan_build(&context->spec, &context->host, &context->workspace, &context->trees, &run->plan, err) < 0)
        return -1;
#ifdef COVE_UNSAFE
    unsafe_apply(&run->plan);
#endif
    return 0;
}

static void print_plan(const struct run *run)
{
    autotext struct text text = TEXT_NONE;

    if (run->context.options.run.json)
        plan_json(&run->plan, &text);
    else
        plan_print(&run->plan, &text);
    fputs(text_string(&text), stdout);
}

static int contain(struct run *run, struct error *err)
{
    struct keeper_run keeper = {
        .argv = (const char *const *)run->plan.argv.items,
        .envp = (const char *const *)run->plan.env.items,
        .cwd = run->plan.cwd,
        .uid = run->plan.ids.uid,
        .gid = run->plan.ids.gid,
        .flags = run->plan.start_flags | (run->context.options.run.explain ? START_EXPLAIN : 0),
        .tty = say_wants_terminal(run->context.spec.terminal),
        .timeout_ms = run->context.spec.timeout_ms,
        .in = STDIN_FILENO,
        .out = STDOUT_FILENO,
        .err = STDERR_FILENO,
        .pipe_owner = run->plan.ids.shifted ? run->plan.ids.base + run->plan.ids.uid : run->context.host.uid,
    };

    if (box_start(&run->plan, &run->context.host, run->dir.id, &run->box, err) < 0)
        return -1;
    return keeper_run(&run->box, &keeper, &run->result, err);
}

static int run_sandbox(struct run *run, struct error *err)
{
    struct error cleaning = { 0 };

    if (store_create(run->context.host.state, &run->dir, err) < 0)
        return -1;
    int result = contain(run, err);

    box_end(&run->box);
    if (store_remove(&run->dir, &cleaning) < 0)
        say_warning("%s; the next start removes it", cleaning.text);
    return result;
}

static int run_command(struct run *run, const struct command *command, int argc, char **argv, struct error *err)
{
    if (options_parse(command, argc, argv, &run->context.options, err) < 0)
        return -1;
    if (run->context.options.run.help) {
        say_help(command);
        return 0;
    }
    if (make_plan(run, err) < 0)
        return -1;
    if (run->context.options.run.print_plan)
        print_plan(run);
    if (run->context.options.run.print_plan || run->context.options.run.dry_run)
        return 0;
    return run_sandbox(run, err);
}

int cli_run(const struct command *command, int argc, char **argv)
{
    struct run run = { .dir = SANDBOX_DIR_NONE, .box = BOX_NONE };
    struct error err = { 0 };
    int code = run_command(&run, command, argc, argv, &err) < 0 ? say_error(&err) : run.result.exit_code;

    run_free(&run);
    return code;
}
