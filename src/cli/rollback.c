#include "cli/rollback.h"

#include "base/error.h"
#include "cli/point.h"
#include "cli/staying.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option_row options_of_rollback[] = { { NULL } };

int cli_rollback(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    struct point point;

    if (options->words.len != 2) {
        error_set(err, ERROR_INVALID, "`cove rollback` needs a sandbox, and a step or snapshot");
        return error_hint(err, "`cove steps` lists them");
    }
    if (which_read_for(&which, options->words.items[0], err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, options->words.items[0], err);

    if (!kept)
        return which_error(err);
    if (point_find(&which, kept, options->words.items[1], &point, err) < 0 ||
        point_turn(&which, kept, &point, err) < 0)
        return -1;
    printf("%s\n", kept->id);
    return 0;
}

/* One word that is a number is how many; what a sandbox is called begins with a letter most of the time, so two
 * words say both. */
static int read_words(const struct strings *words, const char **id, uint64_t *count, struct error *err)
{
    const char *last = words->len ? words->items[words->len - 1] : "";
    bool number = *last && strlen(last) < 10 && !last[strspn(last, "0123456789")];

    if (words->len > 2 || (words->len == 2 && !number))
        return error_set(err, ERROR_INVALID, "`cove undo` takes a sandbox and a number of steps");
    *count = number ? strtoull(last, NULL, 10) : 1;
    *id = words->len == 2 || (words->len == 1 && !number) ? words->items[0] : NULL;
    return 0;
}

int cli_undo(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    struct point point;
    const char *id = NULL;
    uint64_t count = 1;

    if (read_words(&options->words, &id, &count, err) < 0 || which_read(&which, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, id, err);

    if (!kept)
        return which_error(err);
    /* What the last step changed is on record when its keeper answers. */
    if (kept_is_alive(kept))
        (void)staying_is_kept(&which, kept);
    if (point_before(&which, kept, count, &point, err) < 0 || point_undo(&which, kept, &point, err) < 0)
        return -1;
    printf("%llu\n", (unsigned long long)point.step);
    return 0;
}
