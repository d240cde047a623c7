#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_prune[];

/* `cove prune`: removes the sandboxes that nobody came back to. */
int cli_prune(struct options *options, struct error *err);
