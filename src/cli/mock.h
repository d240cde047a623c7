#pragma once

/* `cove mock`: answers that stand for a network. */

#include "cli/options.h"

extern const struct option_row options_of_mock[];
extern const char *const mock_verbs[];

int cli_mock(struct options *options, struct error *err);
