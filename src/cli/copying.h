#pragma once

struct error;
struct plan;
struct sandbox_dir;

/* Takes the private copy of the workspace for a sandbox that is about to start.  Tells how far it is if
 * that takes long and somebody watches; ends with EINTR as soon as one of the signals that are held back
 * waits.  `notes` of what is left out go to stderr. */
int copying_take(struct plan *plan, const char *state, const struct sandbox_dir *dir, struct error *err);
