#pragma once

/* What lies between two points of a sandbox's life: `cove diff ID A..B` and `--step N`. */

#include "cli/changed.h"

struct options;

/* Whether the words, or --step, ask for that. */
bool between_is_asked(const struct options *options);

/* As changed_read(), from the layers of both points: `base` shows the first, `upper` the second, both as whole
 * trees to read.  What the owner has changed since is not judged. */
int between_read(const struct options *options, struct changed *out, struct error *err);
