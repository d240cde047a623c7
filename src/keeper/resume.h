#pragma once

/* A sandbox that was there before goes on with its files. */

struct error;
struct host;
struct plan;
struct record;
struct sandbox_dir;

/* Lets the plan use what the sandbox has: each layer for the tree it was made for (keep_adopt()), and the
 * frozen ones below, after what was interrupted was brought to its end.  `dir` is locked. */
int resume_prepare(const struct host *host, const struct record *record, const struct sandbox_dir *dir,
                   struct plan *plan, struct error *err);
