#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_steps[];

/* `cove steps`: the commands that ran in a sandbox. */
int cli_steps(struct options *options, struct error *err);
