#pragma once

#include "spec/spec.h"

struct error;
struct host;
struct trees;

/* Adds the trees that are visible beside image and workspace: tool roots and package caches
 * (tables in toolroots.c), files.read, files.write and -v.  Refuses a grant that is a socket,
 * device or FIFO, a system tree such as /proc, or that encloses or lies in our state directory. */
int grants_add(const struct spec *spec, const struct host *host, struct trees *trees, struct error *err);

/* Whether files.read (TREE_RO) or files.write (TREE_COW) could name the absolute `path` too, beside the trees
 * of a plan.  Adds nothing. */
int grants_check(const struct host *host, const struct trees *trees, const char *path, enum tree_mode mode,
                 struct error *err);

/* Fills tree->hide of the workspace and of granted trees from the patterns of spec->hide, by
 * walking them (hide.h).  A granted file that a pattern matches is an error. */
int grants_hide(const struct spec *spec, const struct host *host, struct trees *trees, struct error *err);
