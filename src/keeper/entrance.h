#pragma once

/* From a plan to a sandbox that sets itself up. */

struct box;
struct error;
struct host;
struct plan;
struct sandbox_dir;

struct entrance {
    const struct host *host;
    struct plan *plan;
    /* Called with `owner` when there is a directory, before anything is mounted; may be NULL. */
    int (*prepare)(void *owner, struct sandbox_dir *dir, struct error *err);
    void *owner;
};

/* In `dir`, if that is one already and locked, else in a new one; in a box that was opened for it, or in a new
 * one.  While the sandbox sets itself up it is looked at whether its image was still right; if not, all is done
 * once more, with the plan renewed.  On failure nothing is left but a directory that was there before. */
int entrance_enter(const struct entrance *entrance, struct sandbox_dir *dir, struct box *box,
                   struct error *err);
