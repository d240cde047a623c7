#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_show[];

/* `cove show [ID]`: all that is known of one sandbox. */
int cli_show(struct options *options, struct error *err);
