#pragma once

#include "cli/options.h"

struct command;

extern const struct option_row options_of_ls[];

/* `cove ls`: the sandboxes that are there. */
int cli_ls(const struct command *command, int argc, char **argv);
