#include "cli/start.h"

#include "base/error.h"
#include "cli/staying.h"

#include <poll.h>
#include <stdio.h>

const struct option_row options_of_start[] = { { NULL } };

/* A keeper that was just killed may still be counted as one until its guard has finished. */
static int find_stopped(const char *word, struct which *which, const struct kept **out, struct error *err)
{
    enum { PATIENCE_MS = 10000, BEAT_MS = 10 };

    for (int waited = 0; waited < PATIENCE_MS; waited += BEAT_MS) {
        which_free(which);
        if (which_read_for(which, word, err) < 0)
            return -1;
        *out = which_sandbox(which, word, err);
        if (!*out || !kept_is_alive(*out))
            return *out ? 0 : -1;

        if (staying_is_kept(which, *out))
            break;
        poll(NULL, 0, BEAT_MS);
    }
    return error_set(err, ERROR_REFUSED, "sandbox %s is running", kept_word(*out).text);
}

static int start_one(const char *word, const void *owner, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const struct kept *kept = NULL;

    (void)owner;
    if (find_stopped(word, &which, &kept, err) < 0)
        return -1;
    if (kept->state == KEPT_BROKEN) {
        *err = kept->problem;
        return -1;
    }

    int started = staying_start(&which, kept, err);

    if (started < 0)
        return -1;
    printf("%s\n", kept->id);
    return started ? -1 : 0;
}

int cli_start(struct options *options, struct error *err)
{
    return which_each(&options->words, "start", start_one, NULL, err);
}
