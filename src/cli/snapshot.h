#pragma once

#include "cli/options.h"

struct error;

/* `cove snapshot` and `cove fork`. */
extern const struct option_row options_of_snapshot[], options_of_fork[];
int cli_snapshot(struct options *options, struct error *err);
int cli_fork(struct options *options, struct error *err);
