#include "cli/export.h"

#include "base/error.h"
#include "cli/changed.h"
#include "cli/commands.h"
#include "cli/say.h"

#include <stddef.h>

const struct option_row options_of_export[] = {
    { "patch", 0, NULL, "Write the commits as mails that git am takes", OPTION_BOOL,
      offsetof(struct run_options, patch) },
    { "output", 'o', "DIR", "Write files into DIR, which is made if it is not there", OPTION_STRING,
      offsetof(struct run_options, output) },
    { NULL },
};

int cli_export(const struct command *command, int argc, char **argv)
{
    autooptions struct options options = OPTIONS_NONE;
    autochanged struct changed changed = CHANGED_NONE;
    struct error err = { 0 };

    if (options_parse(command, argc, argv, &options, &err) < 0)
        return say_error(&err);
    if (options.run.help) {
        say_help(command);
        return 0;
    }
    if (!options.run.patch) {
        error_set(&err, ERROR_INVALID, "`cove export` needs to know what to write: --patch");
        return say_error(&err);
    }
    if (changed_read(&options.words, &changed, &err) < 0)
        return which_error(&err);
    return export_patch(&changed, &options.run, &err) < 0 ? say_error(&err) : 0;
}
