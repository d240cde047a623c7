#pragma once

/* The state directory: one directory a sandbox, each held by an flock of its keeper.
 *
 *   sandboxes/<id>/   u0 w0 u1 w1 ...  upper and work directories of the writable layers
 *                     m0 m1 ...        layers of white-outs that hide paths
 *   spare             the next sandbox's directory, if there was time to make it
 *   images/empty      a directory that is always empty (the second lower of a read-only tree)
 *
 * A directory whose lock nobody holds belongs to a keeper that died: the next start removes it. */

#include <stddef.h>

struct error;

enum { ID_LENGTH = 20 };

struct sandbox_dir {
    int parent; /* sandboxes/ */
    int fd;     /* sandboxes/<id>, locked */
    char id[ID_LENGTH + 1];
};

#define SANDBOX_DIR_NONE ((struct sandbox_dir){ -1, -1, "" })

/* Makes state/ and what lies directly below it (0700, ours, no other's link on the way), and a
 * new sandbox directory in it. */
int store_create(const char *state, struct sandbox_dir *out, struct error *err);

/* Removes the sandbox with everything in it, whatever modes the payload left, and closes. */
int store_remove(struct sandbox_dir *dir, struct error *err);

/* Leaves a directory ready for the next store_create(), made under the name of a sandbox that is
 * gone.  Best effort. */
void store_make_spare(int parent, const char *id);

/* Removes what dead keepers left.  Best effort: a failure is left to the next start. */
void store_sweep(const struct sandbox_dir *own);

/* Removes `name` below `dir` with all its content, never following a link. */
int store_remove_tree(int dir, const char *name, struct error *err);
