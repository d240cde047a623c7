#include "cli/stop.h"

#include "base/error.h"
#include "cli/say.h"
#include "cli/staying.h"

#include <stddef.h>
#include <stdio.h>

enum { PATIENCE_MS = 10000 };

const struct option_row options_of_stop[] = {
    { "timeout", 0, "TIME", "How long its commands may take to end by themselves (10s)", OPTION_STRING,
      offsetof(struct run_options, timeout) },
    { NULL },
};

static int stop_one(const char *word, const void *owner, struct error *err)
{
    const uint64_t *patience_ms = owner;
    autowhich struct which which = WHICH_NONE;

    if (which_read_for(&which, word, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, word, err);

    if (!kept || kept_check_whole(kept, err) < 0)
        return -1;
    if (!kept_is_alive(kept))
        say_note("sandbox %s has stopped already", word);
    else if (staying_stop(&which, kept, *patience_ms, err) < 0)
        return -1;
    printf("%s\n", kept->id);
    return 0;
}

int cli_stop(struct options *options, struct error *err)
{
    uint64_t patience_ms = PATIENCE_MS;

    if (options->run.timeout && options_duration("timeout", options->run.timeout, &patience_ms, err) < 0)
        return -1;
    return which_each(&options->words, "stop", stop_one, &patience_ms, err);
}
