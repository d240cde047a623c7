#pragma once

/* What a sandbox wrote into one of its trees, as one directory, whatever layers it lies on. */

#include <stdbool.h>
#include <stdint.h>

struct error;
struct ids;
struct record;

/* `dir` is the sandbox's directory.  With frozen layers it is a merged one of hard links (store/merge.h), and
 * then `*linked`, unless NULL, is set: how many names a file has says nothing there.  What was interrupted is
 * brought to its end first, if the sandbox does not run. */
int upper_open(int dir, const struct record *record, uint64_t number, bool *linked, struct error *err);

/* Removes the merged directories that this process has made: when nobody reads them any more. */
void upper_tidy(void);

/* Calls `act` in a process that may open everything in layers of these ids, and waits for it. */
int upper_act(const struct ids *ids, int (*act)(void *argument), void *argument, struct error *err);

/* The same for a process that was made for it: it becomes one that may, where that is possible. */
int upper_act_here(const struct ids *ids, int (*act)(void *argument), void *argument, struct error *err);
