#pragma once

#include "cli/options.h"

struct command;

extern const struct option_row options_of_rm[];

/* `cove rm ID...`: removes sandboxes with what they changed. */
int cli_rm(const struct command *command, int argc, char **argv);
