#pragma once

/* A sandbox's directories, without a sandbox, and overlays on its layers; for tests that are in namespaces of
 * their own (tests/support/unit_chance.h).  The working directory is the scratch directory, with `base` and
 * `merged`. */

#include "base/error.h"
#include "store/stack.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

struct world {
    struct unit_scratch *scratch;
    struct sandbox_dir dir;
    struct stack_place place;
    struct error err;
};

/* Whose sandboxes they are; before anything else. */
extern bool overlays_as_root;

#define MUST(call)                                                                                             \
    do {                                                                                                       \
        if ((call) < 0)                                                                                        \
            fail_msg("%s: %s", #call, world->err.text);                                                        \
    } while (0)

int overlays_setup(void **state);
int overlays_teardown(void **state);

void overlays_freeze(struct world *world, uint64_t step, char lid[ID_LENGTH + 1]);

/* On merged/; `writable`: with the sandbox's own u0 above. */
void overlays_mount(struct world *world, const char *lowers, bool writable);
void overlays_unmount(void);

/* "layers/A/u0:layers/B/u0:base".  The caller frees. */
char *overlays_lowers(struct world *world);

/* A line for everything in merged/: modes, owners, times, contents, an extended attribute.  The caller frees.
 */
char *overlays_look(void);

/* The same of what these layers show. */
char *overlays_look_at(struct world *world, const char *layers);

/* For main(): the identity that it was asked for.  False: it cannot be had here, which was said. */
bool overlays_begin(int argc, char **argv);
