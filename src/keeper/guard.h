#pragma once

#include <stdbool.h>

struct box;
struct error;
struct sandbox_dir;

/* Forks a small process that outlives the keeper: when PID 1 is dead, for whatever reason, it
 * removes the sandbox's directory and what other dead keepers left.  So a run is over for its user
 * when its processes are dead, not when the kernel has taken mounts apart and files are deleted;
 * and a keeper that is killed leaves nothing behind either.  The keeper
 * keeps `dir` open all the same: the lock on it must not go with a guard that dies.  With `foreign_ids`
 * (subordinate ones) files may belong to users that only the sandbox's user namespace knows: they are removed
 * from inside it. */
int guard_start(const struct box *box, const struct sandbox_dir *dir, bool foreign_ids, struct error *err);
