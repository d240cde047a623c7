#pragma once

#include "cli/options.h"

struct command;

/* cove diff: what a sandbox changed in its workspace. */
extern const struct option_row options_of_diff[];

int cli_diff(const struct command *command, int argc, char **argv);
