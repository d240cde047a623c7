#pragma once

#include "cli/options.h"

struct command;

/* cove export: what a sandbox made, as files. */
extern const struct option_row options_of_export[];

int cli_export(const struct command *command, int argc, char **argv);
