#pragma once

struct error;
struct ids;
struct plan;

/* In the clone, while it waits for the mounter and is still the host's user: what holds for PID 1 and everybody
 * below it, for good.  What is still to be mounted stays possible. */
int confine_early(const struct plan *plan, struct error *err);

/* Just before it becomes PID 1's program: the user and the rights of that, and no others. */
int confine_rights(const struct ids *ids, struct error *err);
