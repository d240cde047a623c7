#include "cli/export.h"

#include "cli/changed.h"

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

int cli_export(struct options *options, struct error *err)
{
    autochanged struct changed changed = CHANGED_NONE;

    struct changed_wish wish = { .words = &options->words, .home = true };

    if (changed_read(&wish, &changed, err) < 0)
        return -1;

    int result = (options->run.patch ? export_patch : export_tar)(&changed, &options->run, err);

    return result;
}
