#pragma once

#include "cli/options.h"

struct error;

/* cove diff: what a sandbox changed in its workspace. */
extern const struct option_row options_of_diff[];

int cli_diff(struct options *options, struct error *err);
