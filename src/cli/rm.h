#pragma once

#include "cli/options.h"

struct error;

extern const struct option_row options_of_rm[];

/* `cove rm ID...`: removes sandboxes with what they changed. */
int cli_rm(struct options *options, struct error *err);

/* Removes one, of this id, whatever it does; one that is not there is no error. */
int rm_forced(const char *id, struct error *err);
