#pragma once

#include <stdbool.h>

struct box;
struct error;
struct plan;
struct record;
struct sandbox_dir;

/* What becomes of a sandbox that may be kept. */
enum guard_verdict { GUARD_REMOVE = 'r', GUARD_KEEP = 'k' };

/* Forks a small process that outlives the keeper: when PID 1 is dead, for whatever reason, it
 * removes the sandbox's directory and what other dead keepers left.  So a run is over for its user
 * when its processes are dead, not when the kernel has taken mounts apart and files are deleted;
 * and a keeper that is killed leaves nothing behind either.  The keeper
 * keeps `dir` open all the same: the lock on it must not go with a guard that dies.  With subordinate ids
 * files may belong to users that only the sandbox's user namespace knows: they are removed
 * from inside it.
 *
 * With a record the directory is removed only if the keeper says so by guard_tell() on *verdict; a
 * sandbox that is kept loses its work directories.  If the keeper dies without a word the guard
 * decides itself, and finishes the record.  Without a record *verdict stays as it is. */
int guard_start(const struct box *box, const struct plan *plan, const struct sandbox_dir *dir,
                struct record *record, int *verdict, struct error *err);

/* Of a sandbox that stays it sleeps, after a moment, in a program of its own (keeper/sleeper.c), and is made
 * anew when there is something to do: whether we were called for that, and then it. */
bool guard_is(const char *name);
_Noreturn void guard_awake(void);

/* Says it once, and closes. */
void guard_tell(int *verdict, enum guard_verdict what);
