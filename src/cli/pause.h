#pragma once

#include "cli/options.h"

struct error;

/* `cove pause` and `cove resume`. */
extern const struct option_row options_of_pause[];
int cli_pause(struct options *options, struct error *err);
int cli_resume(struct options *options, struct error *err);
