/* Snapshots, also when whoever makes or removes one is killed before any of its system calls. */

#include "keeper/snapshots.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/layers.h"
#include "store/stack.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/store/dying.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALLS_MAX = 2000 };

struct world {
    struct unit_scratch *scratch;
    char *state;
    struct sandbox_dir dir;
    struct stack_place place;
    struct record record;
    struct error err;
    char layers[2][ID_LENGTH + 1]; /* older first */
};

#define MUST(call)                                                                                             \
    do {                                                                                                       \
        if ((call) < 0)                                                                                        \
            fail_msg("%s: %s", #call, world->err.text);                                                        \
    } while (0)

static void freeze(struct world *world, int which)
{
    autostrings struct strings chain = STRINGS_NONE;

    MUST(stack_freeze(&world->place, (uint64_t)which + 1, &chain, &world->err));
    snprintf(world->layers[which], ID_LENGTH + 1, "%s", chain.items[0]);
}

static int setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    world->state = text_copy(unit_scratch_path(world->scratch, "state"));
    MUST(store_create(world->state, &world->dir, &world->err));
    world->place = (struct stack_place){ layers_open(world->state, &world->err), world->dir.fd, world->dir.id };
    assert_int_equal(mkdirat(world->dir.fd, "u0", 0755), 0);
    freeze(world, 0);
    freeze(world, 1);
    MUST(store_write_file(world->dir.fd, STORE_SPEC, "{}", 2, &world->err));
    world->record = RECORD_NONE;
    world->record.id = text_copy(world->dir.id);
    world->record.workspace = text_copy("/w");
    world->record.mode = text_copy("cow");
    world->record.cwd = text_copy("/w");
    world->record.image = text_copy("host");
    world->record.spec_hash = text_copy("0");
    strings_add(&world->record.argv, "true");
    strings_add(&world->record.uids, "0 1000 1");
    strings_add(&world->record.gids, "0 1000 1");
    world->record.created.tv_sec = 1;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    MUST(store_remove(&world->dir, &world->err));
    MUST(store_remove_tree(world->scratch->dir, "state", &world->err));
    close(world->place.layers);
    unit_scratch_teardown((void **)&world->scratch);
    record_free(&world->record);
    free(world->state);
    free(world);
    return 0;
}

static int make(struct world *world, int which)
{
    return snapshot_make(world->state, "one", world->dir.fd, &world->record, world->layers[which], &world->err);
}

static int make_first(void *argument)
{
    return make(argument, 0);
}

static int remove_it(void *argument)
{
    struct world *world = argument;

    return snapshot_remove(world->state, "one", &world->err);
}

static bool is_held(const struct world *world, int which)
{
    autofree char *path = text_format("%s/refs/" LAYERS_SNAPSHOT "one", world->layers[which]);

    return faccessat(world->place.layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_there(struct world *world, int which)
{
    autosnapshot struct snapshot found = SNAPSHOT_NONE;

    if (snapshot_read(world->state, "one", &found, &world->err) < 0)
        return false;
    assert_string_equal(found.layer, world->layers[which]);
    assert_string_equal(found.record.workspace, "/w");
    assert_true(is_held(world, which));
    return true;
}

static size_t directories(const struct world *world)
{
    autofree char *path = text_format("%s/snapshots/one", world->state);

    return access(path, F_OK) == 0;
}

/* Whatever was left of it, the name can be taken, and holds what it then stands for and nothing else. */
static void must_be_taken_again(struct world *world)
{
    if (is_there(world, 0))
        MUST(snapshot_remove(world->state, "one", &world->err));
    MUST(make(world, 1));
    assert_true(is_there(world, 1));
    assert_false(is_held(world, 0));
    MUST(snapshot_remove(world->state, "one", &world->err));
    assert_false(is_held(world, 1));
    assert_int_equal(directories(world), 0);
}

/* It is there and whole, or gone with all that it held. */
static void must_be_swept(struct world *world)
{
    layers_sweep(world->state);

    bool there = is_there(world, 0);

    assert_int_equal(directories(world), there);
    assert_int_equal(is_held(world, 0), there);
}

static void each_way(void (*judge)(struct world *world), bool removing)
{
    for (unsigned call = 0;; call++) {
        struct world *world = NULL;

        assert_true(call < CALLS_MAX);
        assert_int_equal(setup((void **)&world), 0);
        if (removing)
            MUST(make(world, 0));

        bool died = dying_at(call, removing ? remove_it : make_first, world);

        judge(world);
        teardown((void **)&world);
        if (died)
            continue;
        assert_true(call > 10); /* it did something */
        return;
    }
}

static void the_name_of_one_whose_maker_died_is_free(void **state)
{
    (void)state;
    each_way(must_be_taken_again, false);
}

static void one_whose_maker_died_is_swept(void **state)
{
    (void)state;
    each_way(must_be_swept, false);
}

static void the_name_of_one_whose_remover_died_is_free(void **state)
{
    (void)state;
    each_way(must_be_taken_again, true);
}

static void one_whose_remover_died_is_swept(void **state)
{
    (void)state;
    each_way(must_be_swept, true);
}

static void a_name_that_is_taken_or_about_to_be_is_refused(void **state)
{
    struct world *world = *state;
    autofree char *path = text_format("%s/snapshots/one", world->state);

    MUST(make(world, 0));
    assert_int_equal(make(world, 1), -1);
    assert_contains(world->err.text, "there is a snapshot one already");
    assert_true(is_there(world, 0));
    assert_false(is_held(world, 1));
    MUST(snapshot_remove(world->state, "one", &world->err));

    assert_int_equal(mkdir(path, 0700), 0);

    autoclose int somebody = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(flock(somebody, LOCK_EX), 0);
    assert_int_equal(make(world, 1), -1);
    assert_contains(world->err.text, "already");
    close(steal_fd(&somebody));
    MUST(make(world, 1));
    MUST(snapshot_remove(world->state, "one", &world->err));
}

/* Who makes one keeps sweeps out. */
static void one_that_is_being_made_is_not_swept(void **state)
{
    struct world *world = *state;
    autofree char *path = text_format("%s/snapshots/one", world->state);
    autoclose int alone = -1;

    MUST(make(world, 0));
    MUST(snapshot_remove(world->state, "one", &world->err));
    assert_int_equal(mkdir(path, 0700), 0);
    alone = layers_keep_out_sweeps(world->place.layers, &world->err);
    layers_sweep(world->state);
    assert_int_equal(directories(world), 1);
    close(steal_fd(&alone));
    layers_sweep(world->state);
    assert_int_equal(directories(world), 0);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_name_that_is_taken_or_about_to_be_is_refused),
        IN_WORLD(one_that_is_being_made_is_not_swept),
        cmocka_unit_test(the_name_of_one_whose_maker_died_is_free),
        cmocka_unit_test(one_whose_maker_died_is_swept),
        cmocka_unit_test(the_name_of_one_whose_remover_died_is_free),
        cmocka_unit_test(one_whose_remover_died_is_swept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
