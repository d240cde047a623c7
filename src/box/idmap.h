#pragma once

#include <sys/types.h>

struct error;
struct ids;

/* Writes the maps of the process `pid`, which has just got a user namespace of its own. */
int idmap_write(const struct ids *ids, pid_t pid, struct error *err);

/* Writes our own maps, just after we got a user namespace: one row, our own id, which the kernel lets an
 * ordinary user write. */
int idmap_own(const struct ids *ids, struct error *err);

/* Calls `act` in a child that has these ids and every right over their files, and waits for it. */
int idmap_run(const struct ids *ids, int (*act)(void *argument), void *argument, struct error *err);
