#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_doctor[];

/* `cove doctor`: what this host can do.  Exits with 1 if `cove run` would refuse. */
int cli_doctor(struct options *options, struct error *err);
