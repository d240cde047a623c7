#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_policy[];

/* `cove policy show [OPTIONS]`: what holds for a run with these options, and which layer said it. */
int cli_policy(struct options *options, struct error *err);
