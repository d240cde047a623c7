#pragma once

/* The directories down to the workspace, in the root's layer.  They are made before the overlay is there:
 * through it the kernel would copy every directory above, one rename and one journal entry each.  And whoever
 * ends a sandbox lays them out for the next one of the same image and workspace, under a name of their own. */

#include <stdbool.h>

struct plan;

/* Where it is inside; NULL: there is none, or it needs no directory. */
const char *laid_workspace(const struct plan *plan);

/* Lays them into `upper`, each like the one below it in `lower` if there is one; with `own` also its owner.
 * Those that are there already stay.  What does not work is made later as for any other tree. */
void laid_put(const struct plan *plan, int upper, int lower, bool own);

/* In the directory `dir` of a sandbox to come: the directories of as many layers as the plan `owner` has, and a
 * first layer with nothing but those in it.  False: it is not whole. */
bool laid_furnish(const void *owner, int dir);

/* Uses that first layer as the layer of that name, if one was made for this plan. */
void laid_take(const struct plan *plan, int dir, const char *layer);
