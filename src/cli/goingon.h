#pragma once

/* `cove run --continue`, and --name with the name of a sandbox that is there: the run goes on in it. */

#include "cli/options.h"
#include "cli/which.h"

struct goingon {
    struct which which;
    const struct kept *kept; /* NULL: it is a new one */
    struct strings words;    /* what the options are read from */
};

#define GOINGON_NONE ((struct goingon){ .which = WHICH_NONE })

void goingon_free(struct goingon *goingon);

/* Whether the options mean a sandbox that is there. */
int goingon_find(const struct options *options, struct goingon *out, struct error *err);

/* In a sandbox that stays a run is one more command, and nothing that was asked for may be passed over. */
int goingon_check_staying(const struct goingon *goingon, const struct options *options, struct error *err);

/* Takes it, if it does not run, and lets the options begin with what it is: what was typed is added to that. */
int goingon_take(struct goingon *goingon, struct options *options, struct sandbox_dir *dir, struct error *err);
