/* Real overlays, as an ordinary user in a user namespace ("user") or as root ("root"), against a
 * comparison of the whole trees. */

#include "base/memory.h"
#include "base/own.h"
#include "changes/apply.h"
#include "changes/digest.h"
#include "tests/support/unit.h"
#include "tests/support/unit_chance.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/oracle.h"
#include "tests/unit/changes/world.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static bool as_root;

/* --- an overlay in a scratch directory -------------------------------------------------------- */

static void start(struct world *world, const char *mask)
{
    autofree char *options =
        text_format("%slowerdir=%s%sbase,upperdir=upper,workdir=work,volatile%s", as_root ? "" : "userxattr,",
                    mask ? mask : "", mask ? ":" : "", CHANCE_OPTIONS(as_root));

    assert_int_equal(chdir(world->scratch->path), 0);
    if (mount("overlay", "merged", "overlay", 0, options) < 0)
        fail_msg("mount an overlay: %s", strerror(errno));
}

static int overlay_setup(void **state)
{
    if (world_setup(state) < 0)
        return -1;

    struct world *world = *state;

    world->source.marks = as_root ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER;
    unit_scratch_dir(world->scratch, "work", 0755);
    unit_scratch_dir(world->scratch, "merged", 0755);
    return 0;
}

static int overlay_teardown(void **state)
{
    struct world *world = *state;

    assert_int_equal(chdir("/"), 0);
    umount2(unit_scratch_path(world->scratch, "merged"), MNT_DETACH);
    return world_teardown(state);
}

/* --- operations with a name -------------------------------------------------------------------- */

static const struct example {
    const char *base, *inside, *want;
} examples[] = {
    { "echo a > f", "echo b > g && mkdir d && echo c > d/h", "A d\nA d/h\nA g\n" },
    { "echo a > f", "echo b >> f", "C f\n" },
    { "echo a > f", "chmod 700 f", "M f\n" },
    { "echo a > f; mkdir d", "touch f d", "" },
    { "echo a > f", "echo a > f", "" },
    { "echo a > f", "rm f", "R f\n" },
    { "mkdir -p d/e; echo a > d/e/f; echo b > d/g", "rm -rf d", "R d\nR d/e\nR d/e/f\nR d/g\n" },
    { "mkdir -p d/e; echo a > d/e/f; echo b > d/g; echo c > d/h",
      "rm -rf d; mkdir -p d/e; echo b > d/g; echo x > d/n", "R d/e/f\nR d/h\nA d/n\n" },
    { "echo abc > f", "mv f g", "N g < f\n" },
    { "echo abc > f; echo g > g", "mv f g", "R f\nC g\n" },
    { "mkdir d e; echo abc > d/f", "mv d/f e/f", "N e/f < d/f\n" },
    { "mkdir d; echo abc > d/f", "mv d e", "R d\nA e\nN e/f < d/f\n" },
    { "mkdir d; echo abc > d/f", "mv d e; mkdir d; echo n > d/f", "C d/f\nA e\nA e/f\n" },
    { "mkdir -p d/s; echo abc > d/s/f; echo g > d/g", "mv d e; mv e/s s; rm e/g; echo x > s/x",
      "R d\nR d/g\nR d/s\nA e EMPTY\nA s\nN s/f < d/s/f\nA s/x\n" },
    { "mkdir -p d/s; echo abc > d/s/f", "mv d/s s; rm -r d", "R d\nR d/s\nA s\nN s/f < d/s/f\n" },
    { "mkdir d; echo abc > d/f", "mv d e; mv e d", "" },
    { "mkdir -p p/d; echo abc > p/d/f", "mv p q; mv q/d q/e; echo x >> q/e/f",
      "R p\nR p/d\nR p/d/f\nA q\nA q/e\nA q/e/f\n" },
    { "mkdir d e; echo abc > d/f; echo x > e/y", "rm e/y; rmdir e; mv d e", "R d\nN e/f < d/f\nR e/y\n" },
    { "echo a > f", "ln -s f l; ln -s ../.. o; rm f; ln -s x f", "T f\nA l\nA o LINK_OUT\n" },
    { "mkdir d; echo a > d/f", "rm -r d; echo x > d", "T d\nR d/f\n" },
    { "echo a > f", "rm f; mkdir f; echo x > f/x", "T f\nA f/x\n" },
    { "echo a > f", "ln f g; ln f h", "A g HARDLINK\nA h HARDLINK\n" },
    { "echo a > f", "mkfifo p; mkdir e", "A e EMPTY\nA p SPECIAL\n" },
    { "mkdir d; echo a > d/f", "rm d/f", "R d/f\n" },
    { "mkdir d; echo a > d/f", "chmod 700 d", "M d\n" },
    { "echo a > f", "echo n > f.new; mv f.new f", "C f\n" },
    { "echo a > f", "echo n > t; rm t; mkdir x; rmdir x", "" },
    { "echo a > Makefile", "echo b > makefile; mv Makefile MAKEFILE",
      "N MAKEFILE < Makefile TWIN\nA makefile TWIN\n" },
};

static void each_operation_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        const struct example *example = &examples[i];
        void *made = NULL;

        assert_int_equal(overlay_setup(&made), 0);

        struct world *world = made;

        world_run(world, "umask 022; cd base; %s", example->base);
        world_tick(world);
        start(world, NULL);
        world_run(world, "umask 022; cd merged; %s", example->inside);
        world_scan(world);

        autotext struct text got = TEXT_NONE;

        for (size_t k = 0; k < world->changes.len; k++)
            world_add_line(&got, &world->changes.items[k]);
        if (strcmp(text_string(&got), example->want) != 0)
            print_message("%s: wanted\n%sgot\n%s", example->inside, example->want, text_string(&got));
        assert_string_equal(text_string(&got), example->want);
        oracle_check(world, example->inside);
        overlay_teardown(&made);
    }
}

static void a_mask_hides_and_is_told(void **state)
{
    struct world *world = *state;

    world_run(world,
              "mkdir -p base/d mask/d && echo s > base/.env && echo s > base/d/key && echo f > base/d/f &&"
              "mknod mask/.env c 0 0 && mknod mask/d/key c 0 0");
    strings_add(&world->hide, ".env");
    strings_add(&world->hide, "d/key");
    start(world, "mask");
    world_run(world, "cd merged && ! cat .env 2>/dev/null && echo n > .env && echo n > d/key && rm d/key");
    world_expect(world, "A .env HIDDEN\n");
    world_run(world, "cd merged && rm -r d && rm .env");
    world_expect(world, "R d\nR d/f\nR d/key HIDDEN\n");
}

/* A copy without its original: moved inside, or removed by the owner. */
static void who_removed_the_original_is_known(void **state)
{
    struct world *world = *state;

    world_run(
        world,
        "cd base && mkdir -p d k/g && echo a > moved && echo b > k/gone && echo c > d/x && echo e > old &&"
        "echo y > k/g/y");
    world_tick(world);
    start(world, NULL);
    world_run(
        world,
        "cd merged && mv moved here && echo x >> here && echo x >> k/gone && mv d/x x && echo more >> x &&"
        "mv old new && echo fresh > old && echo z >> new && echo z >> k/g/y && ln k/gone k/link");
    world_expect(world,
                 "R d/x\nA here\nC k/g/y\nC k/gone HARDLINK\nA k/link HARDLINK\nR moved\nA new\nC old\nA x\n");
    world_run(world, "rm merged/k/link base/k/gone && rm -r base/k/g");
    world_expect(world,
                 "R d/x\nA here\nA k/g BASE_CHANGED\nA k/g/y BASE_CHANGED\nA k/gone BASE_CHANGED\nR moved\n"
                 "A new\nC old\nA x\n");
}

static void a_command_cannot_forge_marks(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir base/d && echo a > base/d/f");
    start(world, NULL);
    world_run(world, "cd merged && mkdir n && for v in user trusted; do for a in opaque whiteout redirect; do "
                     "python3 -c 'import os,sys\ntry: os.setxattr(\"d\", sys.argv[1].encode(), b\"y\")\nexcept "
                     "OSError: pass' "
                     "$v.overlay.$a; done; done; mknod d/w c 0 0 2>/dev/null || true; touch d/.wh.f");
    world_expect(world, "A d/.wh.f\nA n EMPTY\n");
}

/* --- many operations by chance ------------------------------------------------------------------ */

/* A base, and what was done to it, by chance. */
static struct world *some_world(unsigned seed)
{
    struct dice dice = chance_dice(seed);
    void *made = NULL;

    assert_int_equal(overlay_setup(&made), 0);

    struct world *world = made;

    chance_act(&dice, unit_scratch_path(world->scratch, "base"), 60);
    world_tick(world);
    start(world, NULL);
    chance_act(&dice, "merged", chance_roll(&dice, 40));
    world_scan(world);
    return world;
}

static void (*judge)(struct world *world, const char *what);

static void check_seed(unsigned seed)
{
    autofree char *what = text_format("COVE_SEED=%u", seed);
    void *world = some_world(seed);

    judge(world, what);
    overlay_teardown(&world);
}

static void for_each_seed(void (*check)(struct world *world, const char *what))
{
    judge = check;
    chance_each_seed(300, check_seed);
}

static void check_told(struct world *world, const char *what)
{
    oracle_check(world, what);
    for (size_t i = 0; i < world->changes.len; i++)
        if (world->changes.items[i].flags & (FLAG_BASE_CHANGED | FLAG_UNREADABLE))
            fail_msg("%s: %s: the owner did nothing", what, world->changes.items[i].path);
}

static void any_sequence_is_told(void **state)
{
    (void)state;
    for_each_seed(check_told);
}

static bool everything(void *owner, const struct change *change)
{
    (void)owner;
    (void)change;
    return true;
}

static void apply_all(struct world *world, const char *what)
{
    autofree struct apply_result *results = memory_zero((world->changes.len + 1) * sizeof *results);
    autofree struct digest *contents = memory_zero((world->changes.len + 1) * sizeof *contents);
    autoclose int tree = openat(world->scratch->dir, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct apply apply = {
        .upper = world->source.upper, .tree = tree, .since = world->source.since, .contents = contents
    };

    digest_contents(world->source.upper, &world->changes, contents);
    if (apply_changes(&apply, &world->changes, everything, NULL, results, &world->err) < 0)
        fail_msg("%s: %s", what, world->err.text);
    for (size_t i = 0; i < world->changes.len; i++)
        if (results[i].outcome > APPLY_SAME)
            fail_msg("%s: %s: %s", what, world->changes.items[i].path, results[i].why.text);
}

static void check_comes_home(struct world *world, const char *what)
{
    autofree char *inside = oracle_listing(world, "merged");

    assert_int_equal(chdir("/"), 0);
    assert_int_equal(umount2(unit_scratch_path(world->scratch, "merged"), MNT_DETACH), 0);
    apply_all(world, what);

    autofree char *home = oracle_listing(world, "base");

    if (strcmp(inside, home) != 0)
        fail_msg("%s: inside\n%shome\n%s", what, inside, home);
    world_scan(world);
    if (world->changes.len)
        fail_msg("%s: still a difference at %s", what, world->changes.items[0].path);
}

static void any_sequence_comes_home(void **state)
{
    (void)state;
    for_each_seed(check_comes_home);
}

int main(int argc, char **argv)
{
    as_root = argc > 1 && strcmp(argv[1], "root") == 0;
    if (as_root && geteuid() != 0) {
        puts("1..0"); /* the other half is for everybody */
        return 0;
    }
    umask(022);
    if (!chance_enter_namespaces(as_root))
        return 1;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_is_told),
        cmocka_unit_test_setup_teardown(a_mask_hides_and_is_told, overlay_setup, overlay_teardown),
        cmocka_unit_test_setup_teardown(who_removed_the_original_is_known, overlay_setup, overlay_teardown),
        cmocka_unit_test_setup_teardown(a_command_cannot_forge_marks, overlay_setup, overlay_teardown),
        cmocka_unit_test(any_sequence_is_told),
        cmocka_unit_test(any_sequence_comes_home),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
