#pragma once

#include <stdbool.h>

struct error;
struct plan;
struct record;
struct sandbox_dir;
struct trees;
struct workspace;

/* Takes the private copy of the workspace for a sandbox that is about to start, into its own directory, or
 * `shared`, as the lowest of its layers, so that forks and snapshots have it too (store/bottom.h).  Tells how
 * far it is if that takes long and somebody watches; ends with EINTR as soon as one of the signals that are
 * held back waits.  `notes` of what is left out go to stderr. */
int copying_take(struct plan *plan, const char *state, const struct sandbox_dir *dir, bool shared,
                 struct error *err);

/* Lets the plan lie on the copy that a sandbox has. */
int copying_use(struct plan *plan, const char *state, const struct sandbox_dir *dir, struct error *err);

/* For one that is started again, if its workspace is not there any more: its copy takes that place.  Gives 1,
 * with nothing changed, if it is there. */
int copying_recall(const struct record *record, const char *state, const struct sandbox_dir *dir,
                   struct workspace *workspace, struct trees *trees, struct error *err);

/* Of a sandbox that did not come to be. */
void copying_drop(const char *state, const char *id);
