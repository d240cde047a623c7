#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_explore[];

/* `cove explore [FROM] -- COMMAND`: many tries from one state, the best one kept. */
int cli_explore(struct options *options, struct error *err);
