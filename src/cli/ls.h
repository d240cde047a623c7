#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_ls[];

/* `cove ls`: the sandboxes that are there. */
int cli_ls(struct options *options, struct error *err);
