#pragma once

#include "cli/options.h"

struct changed;
struct error;

extern const struct option_row options_of_export[];

/* `cove export`: what a sandbox made, as files to pass on. */
int cli_export(struct options *options, struct error *err);

/* export_tar.c: 0 if the archive was written, 1 if something cannot be part of it and was named. */
int export_tar(const struct changed *changed, const struct run_options *options, struct error *err);

/* export_patch.c: the commits of a sandbox as mails. */
int export_patch(const struct changed *changed, const struct run_options *options, struct error *err);
