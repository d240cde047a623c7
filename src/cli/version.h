#pragma once

#include "cli/options.h"

struct command;

extern const struct option_row options_of_version[];
int cli_version(const struct command *command, int argc, char **argv);
