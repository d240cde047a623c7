#include "cli/rm.h"

#include "base/error.h"
#include "cli/which.h"

#include <stddef.h>
#include <stdio.h>

const struct option_row options_of_rm[] = {
    { "force", 'f', NULL, "A sandbox that is not there is no error; one that runs still is", OPTION_BOOL,
      offsetof(struct run_options, force) },
    { NULL },
};

/* What is there is read anew for every word: the one before may have been the same sandbox. */
static int remove_one(const char *word, bool force, struct error *err)
{
    autowhich struct which which = WHICH_NONE;

    if (which_read(&which, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, word, err);

    if (!kept)
        return force && err->kind == ERROR_MISSING ? 0 : -1;
    if (kept_remove(&which.all, kept, err) < 0)
        return -1;
    printf("%s\n", kept->id);
    return 0;
}

int cli_rm(struct options *options, struct error *err)
{
    int worst = 0;

    if (!options->words.len) {
        error_set(err, ERROR_INVALID, "`cove rm` needs a sandbox: cove rm ID...");
        return error_hint(err, "`cove ls` lists them");
    }
    for (size_t i = 0; i < options->words.len; i++) {
        int code = remove_one(options->words.items[i], options->run.force, err) < 0 ? which_error(err) : 0;

        worst = code > worst ? code : worst;
    }
    return worst;
}
