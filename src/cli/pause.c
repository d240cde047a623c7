#include "cli/pause.h"

#include "base/error.h"
#include "cli/staying.h"

#include <stdio.h>

const struct option_row options_of_pause[] = { { NULL } };

static int set_one(const char *word, const void *owner, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const bool *paused = owner;

    if (which_read_for(&which, word, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, word, err);

    if (!kept || staying_pause(&which, kept, *paused, err) < 0)
        return -1;
    printf("%s\n", kept->id);
    return 0;
}

int cli_pause(struct options *options, struct error *err)
{
    return which_each(&options->words, "pause", set_one, &(bool){ true }, err);
}

int cli_resume(struct options *options, struct error *err)
{
    return which_each(&options->words, "resume", set_one, &(bool){ false }, err);
}
