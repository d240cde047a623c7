#include "cli/policy.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/context.h"

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

int cli_policy(struct options *options, struct error *err)
{
    struct context context = CONTEXT_NONE;

    if (options->words.len)
        return error_set(err, ERROR_INVALID, "`cove policy` has the verb `show` only");
    context.options = options_take(options);

    int result = show(&context, err);

    context_free(&context);
    return result;
}
