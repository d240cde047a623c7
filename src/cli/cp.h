#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_cp[];

/* `cove cp`: files into a sandbox that runs, and out of it. */
int cli_cp(struct options *options, struct error *err);
