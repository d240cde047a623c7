#pragma once

#include "cli/options.h"

struct error;

/* `cove rollback` and `cove undo`. */
extern const struct option_row options_of_rollback[];
int cli_rollback(struct options *options, struct error *err);
int cli_undo(struct options *options, struct error *err);
