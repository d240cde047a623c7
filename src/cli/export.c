#include "cli/export.h"

#include "base/error.h"
#include "cli/changed.h"
#include "cli/commands.h"
#include "cli/say.h"

#include <stddef.h>

const struct option_row options_of_export[] = {
    { "patch", 0, NULL, "Write the commits as mails that git am takes, instead of the files", OPTION_BOOL,
      offsetof(struct run_options, patch) },
    { "output", 'o', "FILE",
      "Write the archive to FILE, or the mails into the directory FILE; else, and with -, to standard output",
      OPTION_STRING, offsetof(struct run_options, output) },
    { "exclude", 0, "PATH", "Leave PATH and what is below it", OPTION_LIST,
      offsetof(struct run_options, exclude) },
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
    struct changed_wish wish = { .words = &options.words, .home = true };

    if (changed_read(&wish, &changed, &err) < 0)
        return which_error(&err);

    int result = (options.run.patch ? export_patch : export_tar)(&changed, &options.run, &err);

    return result < 0 ? which_error(&err) : result;
}
