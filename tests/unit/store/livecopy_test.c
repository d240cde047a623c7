/* Copies of directories that are in use, without overlays: white-outs and marks are what they are to a file
 * system. As an ordinary user in a user namespace ("user") or as root ("root"). */

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/layers.h"
#include "store/livecopy.h"
#include "store/stack.h"
#include "sys/sys.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/store/dying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

enum { SOMEBODY = 54321 };

static bool as_root;

static bool become(void)
{
    if (as_root)
        return true;
    if (geteuid() == 0 && (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) || setresuid(SOMEBODY, SOMEBODY, SOMEBODY)))
        return false;
    prctl(PR_SET_DUMPABLE, 1);
    return sys_own_user_namespace() == 0;
}

struct world {
    struct unit_scratch *scratch;
    int uppers, one, two;
};

static int open_dir(struct world *world, const char *name)
{
    unit_scratch_dir(world->scratch, name, 0700);
    return openat(world->scratch->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    world->uppers = open_dir(world, "sandbox");
    world->one = open_dir(world, "one");
    world->two = open_dir(world, "two");
    return mkdirat(world->uppers, "u0", 0755) | mkdirat(world->uppers, "w0", 0755);
}

static int teardown(void **state)
{
    struct world *world = *state;
    static const char *const names[] = { "sandbox", "one", "two" };
    struct error ignored;

    close(world->uppers);
    close(world->one);
    close(world->two);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)store_remove_tree(world->scratch->dir, names[i], &ignored);
    unit_scratch_teardown((void **)&world->scratch);
    free(world);
    return 0;
}

static void put(int dir, const char *path, const char *text, mode_t mode)
{
    autoclose int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
}

/* One of each kind, with hostile names, and what its owner cannot open. */
static void fill(struct world *world)
{
    int dir = world->uppers;
    autoclose int hole = -1;
    autoclose int opaque = -1;

    put(dir, "u0/plain", "plain", 0640);
    put(dir, "u0/shut", "shut", 0);
    put(dir, "u0/-rf \n\033[31m\xff", "odd", 04755);
    put(dir, "w0/ours", "no part of it", 0600);
    assert_int_equal(linkat(dir, "u0/plain", dir, "u0/hard", 0), 0);
    assert_int_equal(symlinkat("/etc/shadow", dir, "u0/link"), 0);
    assert_int_equal(symlinkat("..", dir, "u0/up"), 0);
    assert_int_equal(mknodat(dir, "u0/gone", S_IFCHR, makedev(0, 0)), 0);
    assert_int_equal(mknodat(dir, "u0/pipe", S_IFIFO | 0600, 0), 0);
    assert_int_equal(mknodat(dir, "u0/socket", S_IFSOCK | 0600, 0), 0);
    assert_int_equal(mkdirat(dir, "u0/opaque", 0755), 0);
    opaque = openat(dir, "u0/opaque", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fsetxattr(opaque, as_root ? "trusted.overlay.opaque" : "user.overlay.opaque", "y", 1, 0),
                     0);
    put(dir, "u0/opaque/in", "in", 0644);
    assert_int_equal(mkdirat(dir, "u0/closed", 0700), 0);
    put(dir, "u0/closed/in", "in", 0600);
    assert_int_equal(fchmodat(dir, "u0/closed", 0, 0), 0);
    hole = openat(dir, "u0/hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(hole, 1 << 24), 0);
    assert_int_equal(pwrite(hole, "x", 1, 1 << 20), 1);
}

static struct livecopy_done copy(struct world *world, int before, int out, uint64_t bytes, uint64_t files)
{
    struct livecopy what = { world->uppers, before, out, bytes, files, false };
    struct livecopy_done done;
    struct error err;

    if (livecopy_run(&what, &done, &err) < 0)
        fail_msg("%s", err.text);
    return done;
}

static struct stat look(int dir, const char *path)
{
    struct stat status;

    if (fstatat(dir, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
        fail_msg("%s: %s", path, strerror(errno));
    return status;
}

static const char *const names[] = {
    "u0",      "u0/plain",  "u0/hard",      "u0/shut",   "u0/-rf \n\033[31m\xff",
    "u0/link", "u0/up",     "u0/gone",      "u0/pipe",   "u0/socket",
    "u0/hole", "u0/closed", "u0/closed/in", "u0/opaque", "u0/opaque/in"
};

static void expect_same(int a, int b)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct stat one = look(a, names[i]), other = look(b, names[i]);

        if (one.st_mode != other.st_mode || one.st_uid != other.st_uid || one.st_rdev != other.st_rdev ||
            (!S_ISDIR(one.st_mode) && one.st_size != other.st_size) ||
            (!S_ISCHR(one.st_mode) &&
             (one.st_mtim.tv_sec != other.st_mtim.tv_sec || one.st_mtim.tv_nsec != other.st_mtim.tv_nsec)))
            fail_msg("%s is another", names[i]);
    }
}

static void everything_is_copied(void **state)
{
    struct world *world = *state;
    char text[32] = "";

    fill(world);
    assert_int_equal(copy(world, -1, world->one, 0, 0).outcome, LIVECOPY_MADE);
    expect_same(world->uppers, world->one);
    assert_int_equal(faccessat(world->one, "w0", F_OK, 0), -1);
    assert_int_equal(look(world->one, "u0/plain").st_ino, look(world->one, "u0/hard").st_ino);
    assert_int_not_equal(look(world->one, "u0/plain").st_ino, look(world->uppers, "u0/plain").st_ino);
    assert_true(look(world->one, "u0/hole").st_blocks < 1 << 10);
    assert_int_equal(readlinkat(world->one, "u0/link", text, sizeof text - 1), 11);
    assert_string_equal(text, "/etc/shadow");

    autoclose int opaque = openat(world->one, "u0/opaque", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(fgetxattr(opaque, as_root ? "trusted.overlay.opaque" : "user.overlay.opaque", text, 8), 1);
}

static void what_did_not_change_is_taken_over(void **state)
{
    struct world *world = *state;
    struct livecopy_done done;

    fill(world);
    (void)copy(world, -1, world->one, 0, 0);
    assert_int_equal(copy(world, world->one, world->two, 0, 0).outcome, LIVECOPY_SAME);
    assert_int_equal(faccessat(world->two, "u0", F_OK, 0), -1);
    put(world->uppers, "u0/opaque/in", "on", 0644); /* as long as before */
    done = copy(world, world->one, world->two, 0, 0);
    assert_int_equal(done.outcome, LIVECOPY_MADE);
    assert_int_equal(done.files, 1);
    assert_int_equal(done.bytes, 2);
    expect_same(world->uppers, world->two);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!S_ISDIR(look(world->one, names[i]).st_mode))
            assert_int_equal(look(world->one, names[i]).st_ino == look(world->two, names[i]).st_ino,
                             strcmp(names[i], "u0/opaque/in") != 0);
}

static void a_name_that_went_is_a_change(void **state)
{
    struct world *world = *state;

    fill(world);
    (void)copy(world, -1, world->one, 0, 0);
    assert_int_equal(unlinkat(world->uppers, "u0/pipe", 0), 0);
    assert_int_equal(copy(world, world->one, world->two, 0, 0).outcome, LIVECOPY_MADE);
    assert_int_equal(faccessat(world->two, "u0/pipe", F_OK, 0), -1);
    assert_int_equal(faccessat(world->two, "u0/plain", F_OK, 0), 0);
}

static void expect_text(int dir, const char *path, const char *wanted)
{
    char text[64] = "";
    autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, text, sizeof text - 1), (ssize_t)strlen(wanted));
    assert_string_equal(text, wanted);
}

static void attributes_and_contents_come_along(void **state)
{
    struct world *world = *state;
    char text[8] = "";

    put(world->uppers, "u0/marked", "some words", 0664);
    autoclose int marked = openat(world->uppers, "u0/marked", O_RDWR | O_CLOEXEC);

    assert_int_equal(fsetxattr(marked, "user.note", "1", 1, 0), 0);
    assert_int_equal(copy(world, -1, world->one, 0, 0).outcome, LIVECOPY_MADE);
    expect_text(world->one, "u0/marked", "some words");
    assert_int_equal(look(world->one, "u0/marked").st_mode, S_IFREG | 0664);

    autoclose int copied = openat(world->one, "u0/marked", O_RDONLY | O_CLOEXEC);

    assert_int_equal(fgetxattr(copied, "user.note", text, sizeof text), 1);
    assert_string_equal(text, "1");
}

/* Within the tick of the one before: a time that is as coarse as that would not tell. */
static void what_is_written_right_after_a_copy_is_in_the_next(void **state)
{
    struct world *world = *state;
    struct error ignored;

    for (int i = 0; i < 50; i++) {
        put(world->uppers, "u0/file", "before", 0644);
        (void)copy(world, -1, world->one, 0, 0);
        autoclose int fd = openat(world->uppers, "u0/file", O_WRONLY | O_CLOEXEC);

        assert_int_equal(write(fd, "behind", 6), 6);
        assert_int_equal(copy(world, world->one, world->two, 0, 0).outcome, LIVECOPY_MADE);
        expect_text(world->one, "u0/file", "before");
        expect_text(world->two, "u0/file", "behind");
        for (int j = 0; j < 2; j++) {
            int layer = j ? world->two : world->one;

            assert_int_equal(store_remove_tree(layer, "u0", &ignored), 0);
            assert_int_equal(unlinkat(layer, LIVECOPY_KNOWN, 0), 0);
        }
    }
}

static void bounds_are_kept(void **state)
{
    struct world *world = *state;

    fill(world);
    assert_int_equal(copy(world, -1, world->one, 100, 0).outcome, LIVECOPY_TOO_MUCH);
    assert_int_equal(copy(world, -1, world->one, 0, 5).outcome, LIVECOPY_TOO_MUCH);
    assert_int_equal(faccessat(world->one, "u0", F_OK, 0), -1);
}

/* --- dying --- */

struct making {
    struct world *world;
    struct stack_place place;
};

static int make_layer(void *argument)
{
    const struct making *making = argument;
    struct layer_info layer = { .step = 1, .weight = 1 };
    struct livecopy_done done;
    struct error err;
    int out = layers_begin(making->place.layers, &layer, making->place.id, &err);
    struct livecopy what = { making->world->uppers, -1, out, 0, 0, false };

    if (out < 0 || livecopy_run(&what, &done, &err) < 0)
        return -1;
    return layers_finish(making->place.layers, layer.id, &err);
}

/* At each call: there is a whole layer or none, and the sweep leaves nothing of the other. */
static void whoever_dies_over_it_leaves_nothing_half(void **state)
{
    struct world *world = *state;
    const char *top = unit_scratch_path(world->scratch, "state");
    struct sandbox_dir dir;
    struct error err;
    unsigned call = 0;
    bool died = true;

    put(world->uppers, "u0/plain", "plain", 0640);
    assert_int_equal(linkat(world->uppers, "u0/plain", world->uppers, "u0/hard", 0), 0);
    assert_int_equal(mkdirat(world->uppers, "u0/d", 0755), 0);
    put(world->uppers, "u0/d/in", "in", 0644);
    assert_int_equal(store_create(top, &dir, &err), 0);

    struct making making = { world, { layers_open(top, &err), dir.fd, dir.id } };

    for (; died; call++) {
        autostrings struct strings all = STRINGS_NONE;

        died = dying_at(call, make_layer, &making);
        layers_sweep(top);
        assert_int_equal(layers_list(making.place.layers, &all, &err), 0);
        assert_true(all.len <= 1 && (died || all.len == 1)); /* who dies after the last step has done it */
        for (size_t i = 0; i < all.len; i++) {
            autofree char *path = text_format("%s/u0/d/in", all.items[i]);

            assert_int_equal(look(making.place.layers, path).st_size, 2);
        }
        assert_int_equal(layers_release_all(making.place.layers, dir.id, &err), 0);
    }
    assert_true(call > 50);
    close(making.place.layers);
    assert_int_equal(store_remove(&dir, &err), 0);
    assert_int_equal(store_remove_tree(world->scratch->dir, "state", &err), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(what_did_not_change_is_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_name_that_went_is_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(attributes_and_contents_come_along, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_right_after_a_copy_is_in_the_next, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(whoever_dies_over_it_leaves_nothing_half, setup, teardown),
    };

    as_root = argc > 1 && strcmp(argv[1], "root") == 0;
    if (as_root && geteuid() != 0) {
        printf("1..0 # SKIP not root\n");
        return 0;
    }
    if (!become())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
