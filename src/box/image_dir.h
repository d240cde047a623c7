#pragma once

struct error;
struct host;
struct trees;

/* Adds the directory `path` as a root (target "/"), copy on write, after checking that it can be
 * one; `why` is for the plan. */
int image_dir_add(const char *path, const char *why, const struct host *host, struct trees *trees,
                  struct error *err);

/* `--image DIR`: a root directory of the user's. */
int image_dir_trees(const char *path, const struct host *host, struct trees *trees, struct error *err);
