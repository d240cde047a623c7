#pragma once

#include "cli/options.h"

struct command;

extern const struct option_row options_of_prune[];

/* `cove prune`: removes the sandboxes that nobody came back to. */
int cli_prune(const struct command *command, int argc, char **argv);
