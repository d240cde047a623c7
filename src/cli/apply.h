#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_apply[];

/* `cove apply`: brings what a sandbox changed home. */
int cli_apply(struct options *options, struct error *err);
