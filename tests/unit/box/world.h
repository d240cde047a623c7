#pragma once

#include "base/error.h"
#include "box/host.h"
#include "box/tree.h"
#include "spec/spec.h"
#include "tests/support/unit_scratch.h"

/* A small machine for one test, below a scratch directory: a user with home/, state/ and run/.
 * Use world_setup and world_teardown with cmocka_unit_test_setup_teardown(). */
struct world {
    struct unit_scratch *scratch;
    struct host host;
    struct spec spec;
    struct trees trees;
    struct error err;
};

int world_setup(void **state);
int world_teardown(void **state);

/* Runs a shell command in the scratch directory, as a user without configuration; it must succeed. */
void world_run(const struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether this process can give a file to somebody else: root can, unless its uid 0 is borrowed. */
bool world_can_chown(const struct world *world);

/* The path of `name` below the scratch directory, as unit_scratch_path(). */
const char *world_path(const struct world *world, const char *name);

/* The tree at this path below the scratch directory, or NULL. */
const struct tree *world_tree(const struct world *world, const char *name);
