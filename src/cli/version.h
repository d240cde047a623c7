#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_version[];
int cli_version(struct options *options, struct error *err);

/* Which build this is: "release", or that it must not be used. */
extern const char version_build[];
