#pragma once

struct command;
struct plan;

int cli_run(const struct command *command, int argc, char **argv);

#ifdef COVE_UNSAFE
/* Test builds only: leaves out the guards that $COVE_UNSAFE_WITHOUT names, comma-separated, to
 * show that an attack works without them. */
void unsafe_apply(struct plan *plan);
#endif
