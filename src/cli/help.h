#pragma once

#include "cli/docs.h"

struct command;
struct error;
struct options;
struct text;

/* `cove help`: what the program is and its commands. */
void help_program(struct text *out);

/* `cove NAME --help`. */
void help_command(const struct command *command, struct text *out);

/* `cove help [COMMAND]`, with the signature of command.run. */
int help_main(struct options *options, struct error *err);
