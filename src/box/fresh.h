#pragma once

/* Inside box/ only: a short-lived process that mounts overlays of a sandbox which is already there, in a mount
 * namespace of its own, and hands detached copies on. */

#include "box/execute.h"

struct box;
struct host;
struct sandbox_dir;

struct fresh {
    const struct box *box;
    struct orders orders;
    struct executor x;
};

/* In the keeper: for a sandbox with this plan that lies on `stack`, which is borrowed.  What else the executor
 * has to know is set afterwards. */
void fresh_prepare(struct fresh *fresh, const struct box *box, const struct plan *plan, const struct host *host,
                   const struct sandbox_dir *dir, const struct strings *stack);

/* In the process itself, first of all. */
int fresh_enter(struct fresh *fresh, struct error *err);

/* A handle on the overlay of a step, mounted nowhere. */
int fresh_overlay(struct fresh *fresh, const struct step *step, struct error *err);
