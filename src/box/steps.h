#pragma once

/* Inside box/ only: the steps of a plan, carried out, and what they share.  Which step is done by which
 * function says the table in execute.c. */

#include "box/execute.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* --- inside.c: paths beneath the new root, and the mounts that were made ----------------------- */

int inside_open(const struct executor *x, const char *path, uint64_t flags);
/* What is made inside by a process with the host's ids must belong to root inside. */
int inside_own(const struct executor *x, int dir, const char *name);
/* Opens the directory that `path` lies in and points *name at its last component. */
int inside_parent(const struct executor *x, const char *path, const char **name);
/* Opens a directory, after mkdir -p where it is missing. */
int inside_directory(const struct executor *x, const char *path, mode_t mode);
int inside_make_file(const struct executor *x, const char *path);

/* Remember a mount, for the comparison at the end. */
int mount_remember_id(struct executor *x, uint64_t id, uint64_t flags);
int mount_remember(struct executor *x, const char *path, uint64_t flags);

typedef int step_doer(struct executor *x, const struct step *step, struct error *err);

/* --- steps_trees.c: the root and trees of the host, as overlays ---------------------------------- */

step_doer do_root, do_tree;

/* The directory of the host, if it is still what was looked at. */
int tree_open_source(const struct tree *tree, struct error *err);
bool tree_needs_id_map(const struct executor *x, const struct step *step);
/* Whether it makes an overlay with a writable layer. */
bool step_is_writable(const struct plan *plan, const struct step *step);
/* Whether its layer is among these: bit K stands for uK, 0 for all. */
bool step_is_of(const struct step *step, uint64_t trees);
/* Mounts the overlay of a step on `target`. */
int overlay_mount(struct executor *x, const struct step *step, int target, struct error *err);
/* A message from the mounter to the clone, or back. */
int executor_tell(const struct executor *x, const int *fds, size_t count, struct error *err);

/* --- steps_mounts.c: files, file systems, devices, masks ----------------------------------------- */

step_doer do_file, do_text, do_directory, do_link, do_mount, do_device, do_sysfs, do_mask, do_seal, do_readonly,
    do_protect, do_cover;

/* The same as step->flags in the words of mount_setattr(2). */
uint64_t step_attributes(const struct step *step);
bool step_may_be_missing(const struct step *step);
