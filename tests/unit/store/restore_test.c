/* Files brought back in place on real overlays, as an ordinary user in a user namespace ("user") or as root
 * ("root"): whatever was done since a copy was made, the same is seen as then. */

#include "store/restore.h"

#include "base/own.h"
#include "base/text.h"
#include "store/livecopy.h"
#include "sys/sys.h"
#include "tests/support/unit_chance.h"
#include "tests/unit/store/overlays.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { COPIES = 4 };

/* A sandbox that is mounted and in use, and copies of it as they are made beside living processes. */
struct scene {
    struct world *world;
    char *lowers;        /* what it lies on */
    char *looks[COPIES]; /* what was seen when each was made */
    int copies[COPIES];  /* copy0 copy1 ... */
    size_t len;
};

static void scene_begin(struct scene *scene, struct world *world)
{
    *scene = (struct scene){ .world = world, .lowers = overlays_lowers(world) };
    overlays_mount(world, scene->lowers, true);
}

static void scene_end(struct scene *scene)
{
    struct world *world = scene->world;

    overlays_unmount();
    for (size_t i = 0; i < scene->len; i++) {
        autofree char *name = text_format("copy%zu", i);

        close(scene->copies[i]);
        free(scene->looks[i]);
        MUST(store_remove_tree(world->scratch->dir, name, &world->err));
    }
    free(scene->lowers);
}

/* What is there now; the same as the one before if nothing has changed. */
static size_t copy(struct scene *scene)
{
    struct world *world = scene->world;
    autofree char *name = text_format("copy%zu", scene->len);
    struct livecopy what = { .uppers = world->dir.fd,
                             .before = scene->len ? scene->copies[scene->len - 1] : -1 };
    struct livecopy_done done;

    unit_scratch_dir(world->scratch, name, 0755);
    what.out = openat(world->scratch->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MUST(livecopy_run(&what, &done, &world->err));
    if (done.outcome == LIVECOPY_SAME) {
        close(what.out);
        MUST(store_remove_tree(world->scratch->dir, name, &world->err));
        return scene->len - 1;
    }
    scene->copies[scene->len] = what.out;
    scene->looks[scene->len] = overlays_look();
    return scene->len++;
}

/* The state that copy `number` shows, mounted aside. */
static void mount_wanted(const struct scene *scene, size_t number)
{
    autofree char *options = text_format("%slowerdir=copy%zu/u0:%s%s", overlays_as_root ? "" : "userxattr,",
                                         number, scene->lowers, CHANCE_OPTIONS(overlays_as_root));

    unit_scratch_dir(scene->world->scratch, "wanted", 0755);
    if (mount("overlay", "wanted", "overlay", MS_RDONLY, options) < 0)
        fail_msg("mount an overlay (%s): %s", options, strerror(errno));
}

static void unmount_wanted(const struct scene *scene)
{
    assert_int_equal(umount2("wanted", 0), 0);
    assert_int_equal(unlinkat(scene->world->scratch->dir, "wanted", AT_REMOVEDIR), 0);
}

/* Back to copy `number`, from what copy `now` shows.  Gives how much was touched. */
static uint64_t go_back(struct scene *scene, size_t number, size_t now)
{
    struct world *world = scene->world;
    autofree char *its = text_format("copy%zu/u0", number), *ours = text_format("copy%zu/u0", now);
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
    automap struct map opaque = MAP_NONE;
    uint64_t changed = 0;

    mount_wanted(scene, number);
    {
        autoclose int wanted = open("wanted", FLAGS), live = open("merged", FLAGS), one = open(ours, FLAGS),
                      other = open(its, FLAGS);
        const int layers[] = { one, other };
        struct restore restore = {
            .wanted = wanted, .live = live, .layers = layers, .count = 2, .pair = true, .opaque = &opaque
        };

        MUST(restore_find_opaque(layers, 2, overlays_as_root ? MERGE_TRUSTED : MERGE_USER, &opaque,
                                 &world->err));
        MUST(restore_run(&restore, &changed, &world->err));
    }
    unmount_wanted(scene);
    return changed;
}

static void must_look(const char *wanted, const char *what)
{
    autofree char *now = overlays_look();

    if (strcmp(now, wanted) != 0)
        fail_msg("%s: wanted\n%sgot\n%s", what, wanted, now);
}

/* --- by chance ------------------------------------------------------------------------------------ */

static void check_seed(struct world *world, unsigned seed)
{
    struct dice dice = chance_dice(seed);
    char lid[ID_LENGTH + 1];
    struct scene scene;

    chance_act(&dice, "base", 50);
    for (unsigned frozen = chance_roll(&dice, 3); frozen; frozen--) {
        autofree char *below = overlays_lowers(world);

        overlays_mount(world, below, true);
        chance_act(&dice, "merged", 20);
        overlays_unmount();
        overlays_freeze(world, 1, lid);
    }
    scene_begin(&scene, world);
    for (unsigned i = 0; i < 3; i++) {
        chance_act(&dice, "merged", 5 + chance_roll(&dice, 30));
        (void)copy(&scene);
    }

    size_t now = scene.len - 1, number = chance_roll(&dice, (unsigned)scene.len);
    autofree char *what = text_format("COVE_SEED=%u: from %zu to %zu", seed, now, number);
    uint64_t changed = go_back(&scene, number, now);

    must_look(scene.looks[number], what);
    if (number == now && changed)
        fail_msg("%s: %llu were touched, and nothing differed", what, (unsigned long long)changed);
    now = copy(&scene); /* and again, from there on, with what was brought back */
    go_back(&scene, 0, now);
    must_look(scene.looks[0], what);
    scene_end(&scene);
}

static void check(unsigned seed)
{
    void *world = NULL;

    assert_int_equal(overlays_setup(&world), 0);
    check_seed(world, seed);
    overlays_teardown(&world);
}

static void whatever_was_done_the_same_is_seen_as_then(void **state)
{
    (void)state;
    chance_each_seed(150, check);
}

/* --- one by one ------------------------------------------------------------------------------------ */

static ino_t inode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_ino;
}

static void what_does_not_differ_is_not_touched(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    chance_put("merged/same", "same", O_CREAT);
    chance_put("merged/other", "one", O_CREAT);
    (void)copy(&scene);
    chance_put("merged/other", "two", O_TRUNC);

    ino_t same = inode_of("merged/same");

    assert_int_equal(go_back(&scene, 0, copy(&scene)), 2); /* with its directory, whose time that changes */
    must_look(scene.looks[0], "one file");
    assert_int_equal(inode_of("merged/same"), same);
    scene_end(&scene);
}

/* Times and contents are the same: only the attributes tell. */
static void set_note(const char *path, const char *value)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    if (value)
        assert_int_equal(setxattr(path, "user.note", value, strlen(value), 0), 0);
    else
        assert_int_equal(removexattr(path, "user.note"), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){ status.st_atim, status.st_mtim }, 0), 0);
}

static void extended_attributes_alone_are_seen_and_come_back(void **state)
{
    static const struct {
        const char *before, *after;
    } cases[] = { { "old", "new" }, { NULL, "new" }, { "old", NULL }, { "old", "longer" } };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int directory = 0; directory < 2; directory++) {
            const char *path = directory ? "merged/dir" : "merged/dir/file";
            char note[16] = "";
            struct scene scene;

            scene_begin(&scene, *state);
            assert_true(mkdir("merged/dir", 0755) == 0 || errno == EEXIST);
            chance_put("merged/dir/file", "x", O_CREAT | O_TRUNC);
            set_note(path, "gone");
            set_note(path, NULL);
            if (cases[i].before)
                set_note(path, cases[i].before);
            (void)copy(&scene);
            set_note(path, cases[i].after);
            assert_int_equal(go_back(&scene, 0, copy(&scene)), directory ? 1 : 2); /* a file's directory, too */
            must_look(scene.looks[0], path);

            ssize_t len = getxattr(path, "user.note", note, sizeof note - 1);

            assert_string_equal(len < 0 ? "" : note, cases[i].before ? cases[i].before : "");
            scene_end(&scene);
        }
}

static void what_is_mounted_there_is_left_alone(void **state)
{
    struct scene scene;

    scene_begin(&scene, *state);
    (void)mkdir("merged/dir", 0755);
    chance_put("merged/file", "1", O_CREAT);
    (void)copy(&scene);
    chance_put("merged/file", "2", O_TRUNC);
    chance_put("merged/dir/below", "2", O_CREAT);

    size_t now = copy(&scene);

    assert_int_equal(mount("tmpfs", "merged/dir", "tmpfs", 0, NULL), 0);
    chance_put("merged/dir/inner", "i", O_CREAT);
    go_back(&scene, 0, now);
    assert_int_equal(access("merged/dir/inner", F_OK), 0);
    assert_int_equal(umount2("merged/dir", 0), 0);
    assert_int_equal(access("merged/dir/below", F_OK), 0); /* it could not be reached */
    scene_end(&scene);
}

int main(int argc, char **argv)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, overlays_setup, overlays_teardown)
    const struct CMUnitTest tests[] = {
        IN_WORLD(what_does_not_differ_is_not_touched),
        IN_WORLD(extended_attributes_alone_are_seen_and_come_back),
        IN_WORLD(what_is_mounted_there_is_left_alone),
        cmocka_unit_test(whatever_was_done_the_same_is_seen_as_then),
    };

    return overlays_begin(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
