#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_prove[];

/* `cove prove [OPTIONS]`: whether a sandbox with these options holds on this machine. */
int cli_prove(struct options *options, struct error *err);

/* The same, silently, for the command line of `cove run --prove`: -1 if there is a gap, or nothing could be
 * tried. */
int prove_first(const struct options *options, struct error *err);
