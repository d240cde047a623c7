/* Bringing home path by path, in whatever order the paths are told of. */

#include "keeper/live_bring.h"

#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/world.h"

#include <time.h>

/* What was written just now is always looked at again. */
static void let_it_age(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static struct bring bring_in(const struct world *world)
{
    const struct changes_source *source = &world->source;

    return (struct bring){ .sides = { .upper = source->upper,
                                      .base = source->base,
                                      .marks = source->marks,
                                      .inside = source->inside,
                                      .since = { .tv_sec = time(NULL) + 1000 } },
                           .prints = -1 };
}

static void what_came_before_its_directory_is_looked_at_again(void **state)
{
    struct world *world = *state;
    struct bring bring = bring_in(world);

    world_run(world, "mkdir -p upper/n/m && echo 1 >upper/n/m/1");
    let_it_age();
    assert_int_equal(bring_path(&bring, "n/m/1", false, true), BRING_DONE);
    world_run(world, "test ! -e base/n");
    assert_true(bring_is_due(&bring, known_find(&bring.known, "n/m/1")));
    (void)bring_path(&bring, "n", false, false);
    (void)bring_path(&bring, "n/m", false, false);
    (void)bring_path(&bring, "n/m/1", false, false);
    world_run(world, "test \"$(cat base/n/m/1)\" = 1");
    assert_false(bring_is_due(&bring, known_find(&bring.known, "n/m/1")));
    known_free(&bring.known);
}

static void a_directory_replaces_one_that_the_host_has(void **state)
{
    struct world *world = *state;
    struct bring bring = bring_in(world);

    world_run(world, "mkdir -p base/d/deep base/merged upper/d/deep upper/merged upper/new && touch "
                     "base/d/deep/old upper/file");
    world_mark(world, "upper/d", "opaque", "y");
    world_mark(world, "upper/new", "opaque", "y");
    assert_true(bring_replaces(&bring, "d"));
    assert_false(bring_replaces(&bring, "merged"));
    assert_false(bring_replaces(&bring, "new"));
    assert_false(bring_replaces(&bring, "file"));
    assert_false(bring_replaces(&bring, "none"));
    (void)bring_path(&bring, "d", false, false);
    world_run(world, "test -e base/d/deep/old"); /* the control arm: it alone says nothing of what it lacks */
    (void)bring_path(&bring, "d", true, false);
    world_run(world, "test ! -e base/d/deep/old && test -d base/d/deep");
    known_free(&bring.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_came_before_its_directory_is_looked_at_again, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(a_directory_replaces_one_that_the_host_has, world_setup,
                                        world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
