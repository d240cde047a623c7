#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_stop[];
int cli_stop(struct options *options, struct error *err);
