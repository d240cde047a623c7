#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_allow[];

/* `cove allow HOST[:PORT]...`: one more rule each in the owner's policy file. */
int cli_allow(struct options *options, struct error *err);
