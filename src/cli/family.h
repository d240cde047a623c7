#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_tree[];

/* `cove tree [ID]`: the checkpoints of a sandbox, with its snapshots and forks. */
int cli_tree(struct options *options, struct error *err);
