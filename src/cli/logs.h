#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_logs[];

/* `cove logs`: what a command in a sandbox wrote. */
int cli_logs(struct options *options, struct error *err);
