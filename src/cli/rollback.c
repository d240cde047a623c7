#include "cli/rollback.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/point.h"
#include "cli/staying.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option_row options_of_rollback[] = { { NULL } };

int cli_rollback(struct options *options, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    const struct strings *words = &options->words;
    autofree char *id = text_copy(words->len ? words->items[0] : "");
    const char *step = words->len == 2 ? words->items[1] : words->len == 1 ? point_split(id) : NULL;
    struct point point;

    if (!step) {
        error_set(err, ERROR_INVALID,
                  "`cove rollback` needs a sandbox, and a step or snapshot: cove rollback ID STEP");
        return error_hint(err, "`cove steps` lists them");
    }
    if (which_read_for(&which, id, err) < 0)
        return -1;

    const struct kept *kept = which_sandbox(&which, id, err);

    if (!kept)
        return -1;
    if (point_find(&which, kept, step, &point, err) < 0 || point_turn(&which, kept, &point, err) < 0)
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
        return error_set(err, ERROR_INVALID,
                         "`cove undo` takes a sandbox and how many steps to take back: cove undo ID 2; "
                         "back to one step goes cove rollback ID STEP");
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
        return -1;
    /* What the last step changed is on record when its keeper answers. */
    if (kept_is_alive(kept))
        (void)staying_is_kept(&which, kept);
    if (point_before(&which, kept, count, &point, err) < 0 || point_undo(&which, kept, &point, err) < 0)
        return -1;
    printf("%llu\n", (unsigned long long)point.step);
    return 0;
}
