#pragma once

#include "cli/options.h"

struct command;

extern const struct option_row options_of_apply[];

/* `cove apply`: brings what a sandbox changed home. */
int cli_apply(const struct command *command, int argc, char **argv);
