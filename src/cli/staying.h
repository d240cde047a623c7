#pragma once

/* A sandbox with a keeper of its own in the background. */

#include "cli/which.h"

#include <stdbool.h>
#include <stdint.h>

struct error;
struct options;
struct record;
struct sandbox_dir;
struct strings;
struct trust_ahead;

/* Makes a new one; `options` are taken.  Gives its id when commands can be run in it.  1: they can, but a
 * service does not run: `err`. */
int staying_create(struct options *options, char id[ID_LENGTH + 1], struct error *err);

/* Starts one that has stopped, with what it is and has.  1: as above. */
int staying_start(const struct which *which, const struct kept *kept, struct error *err);

/* The same, but it does not start unless each of these paths inside is a read-only tree or file of its own:
 * what its spec asks for, a policy may have taken away. */
int staying_start_with(const struct which *which, const struct kept *kept, const struct strings *readonly,
                       struct error *err);

/* As soon as its directory is there: a start needs certificates, and they take longer than what else there is
 * to do until it waits for them (keeper/trust.h). */
void staying_ahead(const struct record *record, int dir, struct trust_ahead *out);

/* The same of one that was just made, and whose directory we hold with its lock; that is taken, and `ahead`. */
int staying_start_new(const struct host *host, const struct record *record, struct sandbox_dir *dir,
                      struct trust_ahead *ahead, struct error *err);

/* Takes the directory of one that does not run, with its lock, ready for another start.  `kept` is read anew:
 * somebody else may have been at work on it until now. */
int staying_open(const struct which *which, const struct kept *kept, struct sandbox_dir *out,
                 struct error *err);

/* A connection to the keeper of one that runs. */
int staying_connect(const struct which *which, const struct kept *kept, struct error *err);

/* Whether a keeper answers.  One that was killed may be connected to for a moment yet. */
bool staying_is_kept(const struct which *which, const struct kept *kept);

/* Has it go on with other rules of the network: descriptors as repolicy() takes them. */
int staying_policy(const struct which *which, const struct kept *kept, const int fds[2], struct error *err);

/* Stops all its processes where they are, or lets them go on. */
int staying_pause(const struct which *which, const struct kept *kept, bool paused, struct error *err);

/* Ends its processes, and goes back to the frozen layer that shows it as it was after a step. */
int staying_rollback(const struct which *which, const struct kept *kept, const char *layer, uint64_t step,
                     struct error *err);

/* Goes back there under its processes, which stay alive; `undone` is the first step that is taken back. */
int staying_undo(const struct which *which, const struct kept *kept, const char *layer, uint64_t step,
                 uint64_t undone, struct error *err);

/* Has its keeper freeze what was written by now; `layer`, unless NULL, shows that. */
int staying_checkpoint(const struct which *which, const struct kept *kept, char layer[ID_LENGTH + 1],
                       struct error *err);

/* Ends it, and waits until nothing of it runs; its commands have so long to end by themselves. */
int staying_stop(const struct which *which, const struct kept *kept, uint64_t patience_ms, struct error *err);

/* The same at once, of one that is going to be removed: it does not wait for the disk. */
int staying_discard(const struct which *which, const struct kept *kept, struct error *err);
