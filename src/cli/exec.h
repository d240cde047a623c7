#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_exec[];
int cli_exec(struct options *options, struct error *err);

/* `cove shell`: the same with the user's shell. */
extern const struct option_row options_of_shell[];
int cli_shell(struct options *options, struct error *err);

/* A command, or the shell, in a sandbox that stays, which is started for it if it does not run, and stopped
 * again then.  The exit code, or -1. */
struct kept;
struct strings;
struct which;
int exec_once(const struct which *which, const struct kept *kept, const struct strings *command,
              struct error *err);

/* `cove attach`: a command that runs already. */
extern const struct option_row options_of_attach[];
int cli_attach(struct options *options, struct error *err);
