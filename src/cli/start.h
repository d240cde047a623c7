#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_start[];
int cli_start(struct options *options, struct error *err);
