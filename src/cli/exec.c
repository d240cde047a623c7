#include "cli/exec.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/point.h"
#include "cli/say.h"
#include "cli/staying.h"
#include "keeper/client.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct run_options, member)

#define ROWS_OF_BOTH                                                                                           \
    { "env",         'e',                                                                                      \
      "KEY[=VALUE]", "Set a variable; without a value, that of the host; may be given again",                  \
      OPTION_LIST,   AT(env) },                                                                                \
        { "workdir",     'w',        "DIR", "Enter this directory, inside; otherwise that of the sandbox",     \
          OPTION_STRING, AT(workdir) },                                                                        \
    {                                                                                                          \
        "user", 'u', "USER", "Be another user: root, a number or number:number", OPTION_STRING, AT(user)       \
    }

const struct option_row options_of_exec[] = {
    ROWS_OF_BOTH,
    { "interactive", 'i', NULL,
      "With --detach: keep its input open, for cove attach; else input is always connected", OPTION_BOOL,
      AT(interactive) },
    { "tty", 't', NULL, "Give it a terminal; that comes by itself where input and output are one", OPTION_BOOL,
      AT(tty) },
    { "no-tty", 'T', NULL, "Give it none", OPTION_BOOL, AT(no_tty) },
    { "detach", 'd', NULL, "Let it run in the background, and print the number of its step", OPTION_BOOL,
      AT(detach) },
    { "timeout", 0, "TIME", "End it after this time (30s, 5m)", OPTION_STRING, AT(timeout) },
    { NULL },
};

const struct option_row options_of_shell[] = { ROWS_OF_BOTH, { NULL } };

/* What the program that draws has to know of our terminal, and what was asked for. */
static void add_environment(const struct run_options *options, bool tty, struct strings *out)
{
    const char *term = getenv("TERM");

    if (tty && term)
        strings_take(out, text_format("TERM=%s", term));
    for (size_t i = 0; i < options->env.len; i++) {
        const char *entry = options->env.items[i], *value = strchr(entry, '=') ? NULL : getenv(entry);

        if (strchr(entry, '='))
            strings_add(out, entry);
        else if (value)
            strings_take(out, text_format("%s=%s", entry, value));
    }
}

static bool wants_terminal(const struct run_options *options)
{
    if (options->tty)
        return true;
    return !options->no_tty && !options->detach && say_wants_terminal(TERMINAL_AUTO);
}

/* A command that ended may still have something to say: that its time was up, or that a limit was reached. */
static int finish(const struct client *client, uint64_t step, const struct result *result)
{
    if (client->detach && result->reason == RESULT_EXITED)
        printf("%llu\n", (unsigned long long)step);
    if (result->reason == RESULT_TIMED_OUT)
        fputs("cove: the time was up (--timeout), and the command was ended\n", stderr);
    else if (result->error.kind != ERROR_NONE)
        say_error(&result->error);
    return result->exit_code;
}

static int run_in(const char *word, struct client *client, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    struct result result;
    uint64_t step;

    if (which_read_for(&which, word, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, word, err);

    if (!kept)
        return -1;

    autoclose int keeper = staying_connect(&which, kept, err);

    if (keeper < 0)
        return -1;
    client->keeper = keeper;
    if (client_run(client, &step, &result, err) < 0)
        return -1;
    return finish(client, step, &result);
}

static int exec_command(const struct run_options *options, const char *word, const char *const *argv,
                        struct error *err)
{
    autostrings struct strings env = STRINGS_NONE;
    struct client client = { .cwd = options->workdir,
                             .argv = argv,
                             .user = options->user,
                             .tty = wants_terminal(options),
                             .detach = options->detach,
                             .input = options->interactive,
                             .in = STDIN_FILENO,
                             .out = STDOUT_FILENO,
                             .err = STDERR_FILENO };

    if (options->timeout && options_duration("timeout", options->timeout, &client.timeout_ms, err) < 0)
        return -1;
    add_environment(options, client.tty, &env);
    client.envp = (const char *const *)env.items;
    return run_in(word, &client, err);
}

int cli_exec(struct options *options, struct error *err)
{
    if (options->words.len < 2)
        return error_set(
            err, ERROR_INVALID,
            "`cove exec` needs a sandbox and a command: cove exec ID -- COMMAND; `cove shell ID` is "
            "a shell in it");
    return exec_command(&options->run, options->words.items[0], (const char *const *)options->words.items + 1,
                        err);
}

/* The shell that the sandbox was made with is in its environment. */
static const char *const shell[] = { "/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -l", NULL };

int exec_once(const struct which *which, const struct kept *kept, const struct strings *command,
              struct error *err)
{
    enum { PATIENCE_MS = 2000 };
    struct run_options usual = { 0 };
    bool alive = kept_is_alive(kept);
    struct error ignored;

    int started = alive ? 0 : staying_start(which, kept, err);

    if (started < 0)
        return -1;
    if (started > 0)
        say_warning("%s", err->text);

    int code = exec_command(&usual, kept->id, command->len ? (const char *const *)command->items : shell, err);

    if (!alive)
        (void)staying_stop(which, kept, PATIENCE_MS, &ignored);
    return code;
}

int cli_shell(struct options *options, struct error *err)
{
    if (options->words.len > 1)
        return error_set(err, ERROR_INVALID, "`cove shell` takes one sandbox, and no command: cove exec does");
    return exec_command(&options->run, options->words.len ? options->words.items[0] : NULL, shell, err);
}

const struct option_row options_of_attach[] = {
    { "step", 0, "N", "Attach to the command of this step; otherwise to the last one that runs", OPTION_STRING,
      AT(step) },
    { NULL },
};

int cli_attach(struct options *options, struct error *err)
{
    struct client client = { .in = STDIN_FILENO, .out = STDOUT_FILENO, .err = STDERR_FILENO };

    if (options->words.len > 1)
        return error_set(err, ERROR_INVALID,
                         "`cove attach` takes one sandbox; a step of it: cove attach ID@STEP");
    if (point_take_step(options, err) < 0)
        return -1;

    const char *step = options->run.step;
    char *rest = NULL;

    if (step)
        client.step = strtoull(step, &rest, 10);
    if (step && (*rest || !client.step))
        return error_set(err, ERROR_INVALID, "--step %.40s: must be a number from 1 on", step);
    client.tty = say_wants_terminal(TERMINAL_AUTO);
    return run_in(options->words.len ? options->words.items[0] : NULL, &client, err);
}
