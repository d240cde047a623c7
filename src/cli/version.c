#include "cli/version.h"

#include "base/error.h"
#include "cli/commands.h"
#include "cli/say.h"

#include <stddef.h>
#include <stdio.h>

#ifdef COVE_UNSAFE
static const char build[] = "unsafe test build, do not use";
#else
static const char build[] = "release";
#endif

const struct option_row options_of_version[] = {
    { .name = "json", .help = "print JSON", .type = OPTION_BOOL, .at = offsetof(struct run_options, json) },
    { .name = NULL },
};

int cli_version(const struct command *command, int argc, char **argv)
{
    autooptions struct options options = OPTIONS_NONE;
    struct error err;

    if (options_parse(command, argc, argv, &options, &err) < 0)
        return say_error(&err);
    if (options.run.help)
        say_help(command);
    else if (options.run.json)
        printf("{\"version\":\"%s\",\"build\":\"%s\"}\n", COVE_VERSION, build);
    else
        printf("cove %s (%s)\n", COVE_VERSION, build);
    return 0;
}
