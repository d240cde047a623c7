#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_create[];
int cli_create(struct options *options, struct error *err);
