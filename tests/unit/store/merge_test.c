/* Merged layers on real overlays, as an ordinary user in a user namespace ("user") or as root ("root"): by
 * chance many layers are written, and whatever is merged must show the same tree as before. */

#include "base/own.h"
#include "base/text.h"
#include "store/merge.h"
#include "tests/support/unit_chance.h"
#include "tests/unit/store/overlays.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Leaves something in u0 too: `frozen` layers, and what came after. */
static void write_layers(struct world *world, struct dice *dice, unsigned frozen)
{
    char lid[ID_LENGTH + 1];

    chance_act(dice, "base", 50);
    for (unsigned step = 0; step <= frozen; step++) {
        autofree char *below = overlays_lowers(world);

        overlays_mount(world, below, true);
        chance_act(dice, "merged", 5 + chance_roll(dice, 25));
        overlays_unmount();
        if (step < frozen)
            overlays_freeze(world, step, lid);
    }
}

static void must_be_same(const char *before, const char *after, unsigned seed, const char *what)
{
    if (strcmp(before, after) != 0)
        fail_msg("COVE_SEED=%u: %s: before\n%safter\n%s", seed, what, before, after);
}

static void check_seed(struct world *world, unsigned seed)
{
    struct dice dice = chance_dice(seed);
    enum merge_marks marks = overlays_as_root ? MERGE_TRUSTED : MERGE_USER;
    unsigned frozen = 2 + chance_roll(&dice, 5), newest = 1 + chance_roll(&dice, frozen);
    char top[ID_LENGTH + 1], lid[ID_LENGTH + 1];

    write_layers(world, &dice, frozen);

    autofree char *below = overlays_lowers(world), *before = overlays_look_at(world, below);
    autofree char *all = text_format("state/sandboxes/%s/u0:%s", world->dir.id, below);
    autofree char *with_upper = overlays_look_at(world, all);

    MUST(stack_top(world->dir.fd, top, &world->err));
    MUST(merge_layers(world->place.layers, top, newest, marks, world->dir.id, lid, &world->err));
    assert_int_equal(merge_adopt(&world->place, lid, &world->err), 0);

    autofree char *shorter = overlays_lowers(world), *after = overlays_look_at(world, shorter);

    must_be_same(before, after, seed, "a merged layer");

    autoclose int one = merge_upper(&world->place, 0, marks, &world->err);

    MUST(one);

    autofree char *single = text_format("/proc/self/fd/%d:base", one),
                  *merged = overlays_look_at(world, single);

    must_be_same(with_upper, merged, seed, "a merged upper directory");
    overlays_mount(world, shorter, true); /* and it can be written to */
    chance_act(&dice, "merged", 10);
    overlays_unmount();
}

static void check(unsigned seed)
{
    void *world = NULL;

    assert_int_equal(overlays_setup(&world), 0);
    check_seed(world, seed);
    overlays_teardown(&world);
}

static void whatever_is_merged_shows_the_same(void **state)
{
    (void)state;
    chance_each_seed(150, check);
}

/* The stack stays short however many steps there are, and no step is linked more than a few times. */
static void two_hundred_steps_stay_shallow(void **state)
{
    struct world *world = *state;
    char top[ID_LENGTH + 1], lid[ID_LENGTH + 1];
    uint64_t linked = 0;

    for (unsigned step = 0; step < 200; step++) {
        autofree char *file = text_format("state/sandboxes/%s/u0/f%u", world->dir.id, step);
        autostrings struct strings chain = STRINGS_NONE;
        size_t wanted;

        chance_put(file, "x", O_CREAT);
        overlays_freeze(world, step, top);
        MUST(merge_wanted(world->place.layers, top, &wanted, &world->err));
        if (wanted) {
            autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

            MUST(merge_layers(world->place.layers, top, wanted, overlays_as_root ? MERGE_TRUSTED : MERGE_USER,
                              world->dir.id, lid, &world->err));
            MUST(layers_read(world->place.layers, lid, &layer, &world->err));
            linked += layer.weight;
            assert_int_equal(merge_adopt(&world->place, lid, &world->err), 0);
            memcpy(top, lid, sizeof top);
        }
        MUST(layers_chain(world->place.layers, top, &chain, &world->err));
        assert_true(chain.len < LAYERS_DEPTH_SOFT);
    }
    assert_true(linked < 200 * 6);

    autofree char *below = overlays_lowers(world);

    overlays_mount(world, below, false);
    for (unsigned step = 0; step < 200; step++) {
        autofree char *file = text_format("merged/f%u", step);

        assert_int_equal(access(file, F_OK), 0);
    }
    overlays_unmount();
}

/* A merge that was made while the sandbox froze on: it goes in below. */
static void a_late_merge_finds_its_place(void **state)
{
    struct world *world = *state;
    enum merge_marks marks = overlays_as_root ? MERGE_TRUSTED : MERGE_USER;
    char steps[4][ID_LENGTH + 1], lid[ID_LENGTH + 1];
    autostrings struct strings chain = STRINGS_NONE;
    autofree char *before = NULL, *after = NULL;

    for (unsigned step = 0; step < 4; step++) {
        autofree char *file = text_format("state/sandboxes/%s/u0/f%u", world->dir.id, step);

        chance_put(file, "x", O_CREAT);
        overlays_freeze(world, step, steps[step]);
    }
    MUST(merge_layers(world->place.layers, steps[1], 2, marks, world->dir.id, lid, &world->err));

    autofree char *old = overlays_lowers(world);

    before = overlays_look_at(world, old);
    assert_int_equal(merge_adopt(&world->place, lid, &world->err), 0);
    MUST(layers_chain(world->place.layers, steps[3], &chain, &world->err));
    assert_int_equal(chain.len, 3);
    assert_string_equal(chain.items[2], lid);

    autofree char *new = overlays_lowers(world);

    after = overlays_look_at(world, new);
    assert_string_equal(before, after);
    /* The parts stay while somebody wants those steps, and go with the last who does. */
    MUST(layers_release(world->place.layers, steps[0], world->dir.id, &world->err));
    assert_int_equal(faccessat(world->place.layers, steps[0], F_OK, 0), 0);
    MUST(layers_release(world->place.layers, steps[1], world->dir.id, &world->err));
    assert_int_equal(faccessat(world->place.layers, steps[0], F_OK, 0), -1);
    assert_int_equal(faccessat(world->place.layers, steps[1], F_OK, 0), -1);
    assert_int_equal(merge_adopt(&world->place, lid, &world->err), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_merged_shows_the_same),
        cmocka_unit_test_setup_teardown(two_hundred_steps_stay_shallow, overlays_setup, overlays_teardown),
        cmocka_unit_test_setup_teardown(a_late_merge_finds_its_place, overlays_setup, overlays_teardown),
    };

    return overlays_begin(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
