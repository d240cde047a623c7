#pragma once

#include "cli/options.h"

struct command;

extern const struct option_row options_of_show[];

/* `cove show [ID]`: all that is known of one sandbox. */
int cli_show(const struct command *command, int argc, char **argv);
