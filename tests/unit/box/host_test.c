#include "box/host.h"

#include "base/own.h"
#include "base/text.h"
#include "box/private_dir.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void the_user_is_read_from_the_system(void **state)
{
    struct world *world = *state;
    autohost struct host host = { 0 };

    unsetenv("COVE_HOME");
    if (host_read(&host, &world->err) < 0)
        fail_msg("%s", world->err.text);
    assert_int_equal(host.uid, geteuid());
    assert_true(host.home[0] == '/' && host.state[0] == '/' && host.cwd[0] == '/');
    assert_true(*host.name && host.shell[0] == '/');
}

static void the_state_directory_is_where_cove_home_says(void **state)
{
    struct world *world = *state;
    autohost struct host host = { 0 };

    world_run(world, "mkdir -m 700 real && ln -s real link");
    setenv("COVE_HOME", world_path(world, "link/a/b"), 1);
    assert_int_equal(host_read(&host, &world->err), 0);
    assert_string_equal(host.state, world_path(world, "real/a/b"));
    host_free(&host);

    setenv("COVE_HOME", "relative", 1);
    assert_int_equal(host_read(&host, &world->err), -1);
    assert_contains(world->err.text, "absolute");
    unsetenv("COVE_HOME");
}

static void a_private_directory_is_made_with_those_above_it(void **state)
{
    struct world *world = *state;
    struct stat found;

    assert_int_equal(private_dir_make(world_path(world, "home/a/b"), &world->err), 0);
    assert_int_equal(stat(world_path(world, "home/a/b"), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0700);
    assert_int_equal(private_dir_make(world_path(world, "home/a/b"), &world->err), 0);
}

static void a_directory_that_others_can_enter_is_refused(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir home/open && chmod 0755 home/open && touch home/file");
    assert_int_equal(private_dir_make(world_path(world, "home/open"), &world->err), -1);
    assert_contains(world->err.text, "chmod 700");
    assert_int_equal(private_dir_make(world_path(world, "home/file"), &world->err), -1);
    assert_contains(world->err.text, "not a directory");
}

static void a_way_that_others_can_change_is_refused(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/w/x home/s && chmod 0777 home/w && chmod 1777 home/s && ln -s w/x home/l");
    assert_null(private_dir_find(world_path(world, "home/w/x/cove"), &world->err));
    assert_contains(world->err.text, "chmod go-w");
    assert_null(private_dir_find(world_path(world, "home/l/cove"), &world->err));
    autofree char *sticky = private_dir_find(world_path(world, "home/s/cove"), &world->err);
    assert_string_equal(sticky, world_path(world, "home/s/cove"));
}

static void a_link_or_directory_of_another_user_is_refused(void **state)
{
    struct world *world = *state;

    if (!world_can_chown(world))
        skip(); /* only root can make one */
    world_run(world, "mkdir -m 1777 t && mkdir -m 700 t/mine && ln -s mine t/link && chown -h 12345 t/link && "
                     "mkdir -m 700 t/theirs && "
                     "chown 12345 t/theirs");
    assert_null(private_dir_find(world_path(world, "t/link/cove"), &world->err));
    assert_contains(world->err.text, "another user");
    assert_null(private_dir_find(world_path(world, "t/theirs"), &world->err));
    assert_int_equal(private_dir_make(world_path(world, "t/theirs"), &world->err), -1);
}

static void links_in_a_circle_end(void **state)
{
    struct world *world = *state;

    world_run(world, "ln -s b home/a && ln -s a home/b");
    assert_null(private_dir_find(world_path(world, "home/a/x"), &world->err));
    assert_contains(world->err.text, "too many");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_user_is_read_from_the_system),
        TEST(the_state_directory_is_where_cove_home_says),
        TEST(a_private_directory_is_made_with_those_above_it),
        TEST(a_directory_that_others_can_enter_is_refused),
        TEST(a_way_that_others_can_change_is_refused),
        TEST(a_link_or_directory_of_another_user_is_refused),
        TEST(links_in_a_circle_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
