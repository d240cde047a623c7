#include "cli/policy.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/say.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const struct option_row options_of_policy[] = {
    { .name = "json", .help = "Print JSON", .type = OPTION_BOOL, .at = offsetof(struct run_options, json) },
    { .name = NULL },
};

static int show(struct context *context, struct error *err)
{
    autotext struct text text = TEXT_NONE;

    if (context_read(context, err) < 0)
        return -1;
    if (context->options.run.json)
        spec_origins_json(&context->origins, &context->spec, &text);
    else
        spec_origins_show(&context->origins, &context->spec, &text);
    if (!text_ends(text_string(&text), "\n"))
        text_add(&text, "\n");
    fputs(text_string(&text), stdout);
    return 0;
}

static int policy(const struct command *command, int argc, char **argv, struct context *context,
                  struct error *err)
{
    /* The verb stands first, so that options keep their place behind it. */
    bool verb = argc > 1 && strcmp(argv[1], "show") == 0;

    if (options_parse(command, argc - verb, argv + verb, &context->options, err) < 0)
        return -1;
    if (context->options.run.help) {
        say_help(command);
        return 0;
    }
    if (context->options.words.len)
        return error_set(err, ERROR_INVALID, "`cove policy` has the verb `show` only");
    return show(context, err);
}

int cli_policy(const struct command *command, int argc, char **argv)
{
    struct context context = CONTEXT_NONE;
    struct error err;
    int code = policy(command, argc, argv, &context, &err) < 0 ? say_error(&err) : 0;

    context_free(&context);
    return code;
}
