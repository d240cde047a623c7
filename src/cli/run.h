#pragma once

#include <stdbool.h>

struct error;
struct options;
struct plan;

int cli_run(struct options *options, struct error *err);

/* A run for ourselves: `sh -c COMMAND` as `cove run --rm` in that workspace would run it, under the same
 * policy, without input.  But in the place of the workspace it sees `tree`, a copy of ours, copy on write. */
struct run_on {
    const char *workspace, *tree;
    const char *image;
    const char *timeout; /* as it is written; NULL: none */
    const char *command;
};

/* -1 if it could not be run; else its exit code as `cove run` gives it.  Signals are held by the caller. */
int run_on(const struct run_on *wish, int *code, struct error *err);

#ifdef COVE_UNSAFE
/* Test builds only: leaves out the guards that $COVE_UNSAFE_WITHOUT names, comma-separated, to
 * show that an attack works without them. */
void unsafe_apply(struct plan *plan);

/* Whether the guard of this name is left out. */
bool unsafe_without(const char *guard);
#endif
