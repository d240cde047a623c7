#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_policy[];

extern const char *const policy_verbs[];

/* `cove policy show [OPTIONS]`: what holds for a run with these options, and which layer said it; `explain
 * URL`: what that means for a URL; `check FILE`: whether files can be read. */
int cli_policy(struct options *options, struct error *err);
