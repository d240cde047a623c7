/* A scan costs the changes, not the tree: 101,000 files, of which few or all are touched. */

#include "base/own.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { DIRECTORIES = 101, FILES = 1000, ENTRIES = DIRECTORIES * (FILES + 1) };

/* base/t/dNNN/fNNN, all empty; those of a directory are one file, which is quicker to make. */
static int tree_setup(void **state)
{
    if (world_setup(state) < 0)
        return -1;

    struct world *world = *state;

    world_run(world, "mkdir base/t");
    for (unsigned i = 0; i < DIRECTORIES; i++) {
        autofree char *path = text_format("base/t/d%03u", i);

        unit_scratch_dir(world->scratch, path, 0755);

        autoclose int dir = openat(world->scratch->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        for (unsigned k = 0; k < FILES; k++) {
            autofree char *name = text_format("f%03u", k);

            assert_int_equal(k ? linkat(dir, "f000", dir, name, 0) : mknodat(dir, name, S_IFREG | 0644, 0), 0);
        }
    }
    return 0;
}

static void a_hundred_changes_cost_a_hundred(void **state)
{
    struct world *world = *state;

    world_run(world,
              "cd upper && mkdir t && for i in $(seq 10 59); do mkdir t/d0$i && echo x > t/d0$i/f500; done");
    for (unsigned i = 10; i < 60; i++) {
        autofree char *path = text_format("upper/t/d0%u/f501", i);

        world_whiteout(world, path);
    }
    world_scan(world);
    assert_int_equal(world->changes.len, 100);
    /* The directories and files of the upper, and each once in the base. */
    assert_int_equal(world->changes.looked_at, 2 * (1 + 50 + 100));
    assert_false(world->changes.twins_unsure);

    /* A new name is compared with some of those beside it. */
    world_run(world, "cd upper/t && touch d010/F777 d010/other d059/new");
    world_scan(world);
    assert_int_equal(world->changes.len, 103);
    assert_in_range(world->changes.looked_at, 300, 300 + 6 + 2 * 512 + 3 * 4 + 2 * 4);
    assert_int_equal(world_change(world, "t/d010/F777")->flags, FLAG_TWIN);
    assert_int_equal(world_change(world, "t/d010/other")->flags, 0);
    assert_true(world->changes.twins_unsure);
}

static void too_much_that_was_removed_is_counted(void **state)
{
    struct world *world = *state;

    world_run(world, "rm -rf upper/*");
    world_whiteout(world, "upper/t");
    strings_add(&world->hide, "t/d100/f999");
    world_scan(world);
    assert_int_equal(world->changes.len, 1);
    assert_int_equal(world->changes.items[0].kind, CHANGE_REMOVED);
    assert_int_equal(world->changes.items[0].count, ENTRIES);
    assert_int_equal(world->changes.items[0].flags, FLAG_HIDDEN);

    world_run(world, "rm upper/t && mkdir -p upper/t/d000 && touch upper/t/d000/f000");
    world_mark(world, "upper/t", "opaque", "y");
    world_scan(world);
    /* What fits into the bound is listed: the rest of the one that is still there. */
    assert_int_equal(world->changes.len, 1 + FILES - 1);
    assert_string_equal(world->changes.items[0].path, "t");
    assert_int_equal(world->changes.items[0].kind, CHANGE_REMOVED);
    assert_int_equal(world->changes.items[0].count, ENTRIES - FILES - 1);
    assert_int_equal(world->changes.items[0].new.type, SIDE_DIRECTORY);

    world_run(world, "rm -r upper/t && echo x > upper/t");
    world_scan(world);
    assert_int_equal(world->changes.len, 1);
    assert_int_equal(world->changes.items[0].kind, CHANGE_RETYPED);
    assert_int_equal(world->changes.items[0].count, ENTRIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_changes_cost_a_hundred),
        cmocka_unit_test(too_much_that_was_removed_is_counted),
    };

    return cmocka_run_group_tests(tests, tree_setup, world_teardown);
}
