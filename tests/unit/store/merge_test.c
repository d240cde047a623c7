/* Merged layers on real overlays, as an ordinary user in a user namespace ("user") or as root ("root"): by
 * chance many layers are written, and whatever is merged must show the same tree as before. */

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/merge.h"
#include "sys/sys.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { SOMEBODY = 54321 };

static bool as_root;

static bool enter_namespaces(void)
{
    if (!as_root && geteuid() == 0 &&
        (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) || setresuid(SOMEBODY, SOMEBODY, SOMEBODY)))
        return false;

    autofree char *uids = text_format("0 %u 1", geteuid()), *gids = text_format("0 %u 1", getegid());

    prctl(PR_SET_DUMPABLE, 1); /* who changed ids does not own its own /proc files until it says so */
    if (unshare(CLONE_NEWNS | (as_root ? 0 : CLONE_NEWUSER)) < 0)
        return false;
    if (!as_root && (sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
                     sys_write_file(AT_FDCWD, "/proc/self/uid_map", uids) < 0 ||
                     sys_write_file(AT_FDCWD, "/proc/self/gid_map", gids) < 0))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* --- a sandbox's directories, without a sandbox ------------------------------------------------- */

struct world {
    struct unit_scratch *scratch;
    struct sandbox_dir dir;
    struct stack_place place;
    struct error err;
};

#define MUST(call)                                                                                             \
    do {                                                                                                       \
        if ((call) < 0)                                                                                        \
            fail_msg("%s: %s", #call, world->err.text);                                                        \
    } while (0)

static void freeze_as(struct world *world, uint64_t step, char lid[ID_LENGTH + 1])
{
    autostrings struct strings chain = STRINGS_NONE;

    MUST(stack_freeze(&world->place, step, &chain, &world->err));
    snprintf(lid, ID_LENGTH + 1, "%s", chain.items[0]);
}

static int setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    unit_scratch_dir(world->scratch, "base", 0755);
    unit_scratch_dir(world->scratch, "merged", 0755);
    MUST(store_create(unit_scratch_path(world->scratch, "state"), &world->dir, &world->err));
    world->place = (struct stack_place){ layers_open(unit_scratch_path(world->scratch, "state"), &world->err),
                                         world->dir.fd, world->dir.id };
    assert_int_equal(mkdirat(world->dir.fd, "u0", 0755), 0);
    return chdir(world->scratch->path);
}

static int teardown(void **state)
{
    struct world *world = *state;

    assert_int_equal(chdir("/"), 0);
    umount2(unit_scratch_path(world->scratch, "merged"), MNT_DETACH);
    MUST(store_remove(&world->dir, &world->err));
    MUST(store_remove_tree(world->scratch->dir, "state", &world->err));
    close(world->place.layers);
    unit_scratch_teardown((void **)&world->scratch);
    free(world);
    return 0;
}

static void mount_over(struct world *world, const char *lowers, bool writable)
{
    const char *more = ",redirect_dir=nofollow,index=off,metacopy=off"; /* as root's sandboxes have it */
    autotext struct text options = TEXT_NONE;

    text_addf(&options, "%slowerdir=%s", as_root ? "" : "userxattr,", lowers);
    if (writable) {
        MUST(stack_renew_work(&world->place, &world->err));
        assert_int_equal(mkdirat(world->dir.fd, "w0", 0700), 0);
        text_addf(&options, ",upperdir=state/sandboxes/%s/u0,workdir=state/sandboxes/%s/w0,volatile%s",
                  world->dir.id, world->dir.id, as_root ? more : "");
    }
    if (mount("overlay", "merged", "overlay", 0, text_string(&options)) < 0)
        fail_msg("mount an overlay (%s): %s", text_string(&options), strerror(errno));
}

static void unmount(void)
{
    if (umount2("merged", 0) < 0)
        fail_msg("unmount: %s", strerror(errno));
}

/* "layers/A/u0:layers/B/u0:base" */
static char *lowers(struct world *world)
{
    autostrings struct strings chain = STRINGS_NONE;
    struct text all = TEXT_NONE;
    char top[ID_LENGTH + 1];

    MUST(stack_top(world->dir.fd, top, &world->err));
    MUST(layers_chain(world->place.layers, top, &chain, &world->err));
    for (size_t i = 0; i < chain.len; i++)
        text_addf(&all, "state/layers/%s/u0:", chain.items[i]);
    text_add(&all, "base");
    return text_steal(&all);
}

/* --- what is seen ---------------------------------------------------------------------------------- */

static struct strings *listing;

static int list_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    autotext struct text line = TEXT_NONE;
    char content[4096] = "", note[64] = "";
    bool directory = S_ISDIR(status->st_mode);

    (void)at;
    if (type == FTW_NS)
        fail_msg("%s is listed and not there", path);
    if (S_ISLNK(status->st_mode) && readlink(path, content, sizeof content - 1) < 0)
        fail_msg("read the link %s", path);
    if (S_ISREG(status->st_mode)) {
        autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || read(fd, content, sizeof content - 1) < 0)
            fail_msg("read %s", path);
    }
    if (!S_ISLNK(status->st_mode))
        (void)!lgetxattr(path, "user.note", note, sizeof note - 1);
    text_addf(&line, "%s %o %u %u %lld %lld.%09ld %s [%s]\n", path, status->st_mode, status->st_uid,
              status->st_gid, directory ? 0LL : (long long)status->st_size, (long long)status->st_mtim.tv_sec,
              status->st_mtim.tv_nsec, content, note);
    strings_add(listing, text_string(&line));
    return 0;
}

static char *look(void)
{
    autostrings struct strings lines = STRINGS_NONE;
    struct text all = TEXT_NONE;

    listing = &lines;
    nftw("merged", list_one, 16, FTW_PHYS);
    strings_sort(&lines);
    for (size_t i = 0; i < lines.len; i++)
        text_add(&all, lines.items[i]);
    return text_steal(&all);
}

static char *look_at(struct world *world, const char *layers)
{
    autofree char *doubled = text_format("%s%s", layers, strchr(layers, ':') ? "" : ":state/images/empty");

    mount_over(world, doubled, false);

    char *seen = look();

    unmount();
    return seen;
}

/* --- many operations by chance ------------------------------------------------------------------ */

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *dice, unsigned sides)
{
    dice->state ^= dice->state << 13;
    dice->state ^= dice->state >> 7;
    dice->state ^= dice->state << 17;
    return (unsigned)(dice->state >> 33) % sides;
}

static void some_path(struct dice *dice, char path[32])
{
    size_t len = 0;

    for (unsigned depth = 1 + roll(dice, 4); depth--; path[len++] = '/')
        path[len++] = (char)('a' + roll(dice, 3));
    path[len - 1] = '\0';
}

static void put(const char *path, const char *content, int flags)
{
    autoclose int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0644);

    if (fd >= 0 && write(fd, content, strlen(content)) < 0)
        fail_msg("write %s", path);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

/* Whatever fails, fails: as it would inside. */
static void act(struct dice *dice)
{
    static const mode_t modes[] = { 0644, 0755, 0700, 0500 };
    char path[32], other[32], content[16];
    int failed = 0;

    some_path(dice, path);
    some_path(dice, other);
    snprintf(content, sizeof content, "%u", roll(dice, 1000));
    switch (roll(dice, 14)) {
    case 0:
    case 1:
        put(path, content, O_CREAT | O_TRUNC);
        break;
    case 2:
        put(path, content, O_APPEND);
        break;
    case 3:
        failed = chmod(path, modes[roll(dice, 4)]);
        break;
    case 4:
        failed = unlink(path);
        break;
    case 5:
        nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        break;
    case 6:
        nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        failed = mkdir(path, 0755);
        break;
    case 7:
    case 8:
        failed = mkdir(path, 0755);
        break;
    case 9:
        failed = rename(path, other);
        break;
    case 10:
        failed = renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
        break;
    case 11:
        failed = symlink(content, path);
        break;
    case 12:
        failed = setxattr(path, "user.note", content, strlen(content), 0);
        break;
    default:
        failed = link(path, other);
        break;
    }
    (void)failed;
}

static void act_often(struct dice *dice, const char *where, unsigned times)
{
    assert_int_equal(chdir(where), 0);
    while (times--)
        act(dice);
    assert_int_equal(chdir(".."), 0);
}

/* Leaves something in u0 too: `frozen` layers, and what came after. */
static void write_layers(struct world *world, struct dice *dice, unsigned frozen)
{
    char lid[ID_LENGTH + 1];

    act_often(dice, "base", 50);
    for (unsigned step = 0; step <= frozen; step++) {
        autofree char *below = lowers(world);

        mount_over(world, below, true);
        act_often(dice, "merged", 5 + roll(dice, 25));
        unmount();
        if (step < frozen)
            freeze_as(world, step, lid);
    }
}

static void must_be_same(const char *before, const char *after, unsigned seed, const char *what)
{
    if (strcmp(before, after) != 0)
        fail_msg("COVE_SEED=%u: %s: before\n%safter\n%s", seed, what, before, after);
}

static void check_seed(struct world *world, unsigned seed)
{
    struct dice dice = { 0x9e3779b97f4a7c15u * seed };
    enum merge_marks marks = as_root ? MERGE_TRUSTED : MERGE_USER;
    unsigned frozen = 2 + roll(&dice, 5), newest = 1 + roll(&dice, frozen);
    char top[ID_LENGTH + 1], lid[ID_LENGTH + 1];

    write_layers(world, &dice, frozen);

    autofree char *below = lowers(world), *before = look_at(world, below);
    autofree char *all = text_format("state/sandboxes/%s/u0:%s", world->dir.id, below);
    autofree char *with_upper = look_at(world, all);

    MUST(stack_top(world->dir.fd, top, &world->err));
    MUST(merge_layers(world->place.layers, top, newest, marks, world->dir.id, lid, &world->err));
    assert_int_equal(merge_adopt(&world->place, lid, &world->err), 0);

    autofree char *shorter = lowers(world), *after = look_at(world, shorter);

    must_be_same(before, after, seed, "a merged layer");

    autoclose int one = merge_upper(&world->place, 0, marks, &world->err);

    MUST(one);

    autofree char *single = text_format("/proc/self/fd/%d:base", one), *merged = look_at(world, single);

    must_be_same(with_upper, merged, seed, "a merged upper directory");
    mount_over(world, shorter, true); /* and it can be written to */
    act_often(&dice, "merged", 10);
    unmount();
}

static void whatever_is_merged_shows_the_same(void **state)
{
    unsigned seeds = getenv("COVE_SEEDS") ? (unsigned)strtoul(getenv("COVE_SEEDS"), NULL, 10) : 150;
    unsigned first = getenv("COVE_SEED") ? (unsigned)strtoul(getenv("COVE_SEED"), NULL, 10) : 1;

    (void)state;
    for (unsigned seed = first; seed < first + seeds; seed++) {
        void *world = NULL;

        assert_int_equal(setup(&world), 0);
        check_seed(world, seed);
        teardown(&world);
    }
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

        put(file, "x", O_CREAT);
        freeze_as(world, step, top);
        MUST(merge_wanted(world->place.layers, top, &wanted, &world->err));
        if (wanted) {
            autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

            MUST(merge_layers(world->place.layers, top, wanted, as_root ? MERGE_TRUSTED : MERGE_USER,
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

    autofree char *below = lowers(world);

    mount_over(world, below, false);
    for (unsigned step = 0; step < 200; step++) {
        autofree char *file = text_format("merged/f%u", step);

        assert_int_equal(access(file, F_OK), 0);
    }
    unmount();
}

/* A merge that was made while the sandbox froze on: it goes in below. */
static void a_late_merge_finds_its_place(void **state)
{
    struct world *world = *state;
    enum merge_marks marks = as_root ? MERGE_TRUSTED : MERGE_USER;
    char steps[4][ID_LENGTH + 1], lid[ID_LENGTH + 1];
    autostrings struct strings chain = STRINGS_NONE;
    autofree char *before = NULL, *after = NULL;

    for (unsigned step = 0; step < 4; step++) {
        autofree char *file = text_format("state/sandboxes/%s/u0/f%u", world->dir.id, step);

        put(file, "x", O_CREAT);
        freeze_as(world, step, steps[step]);
    }
    MUST(merge_layers(world->place.layers, steps[1], 2, marks, world->dir.id, lid, &world->err));

    autofree char *old = lowers(world);

    before = look_at(world, old);
    assert_int_equal(merge_adopt(&world->place, lid, &world->err), 0);
    MUST(layers_chain(world->place.layers, steps[3], &chain, &world->err));
    assert_int_equal(chain.len, 3);
    assert_string_equal(chain.items[2], lid);

    autofree char *new = lowers(world);

    after = look_at(world, new);
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
        cmocka_unit_test_setup_teardown(two_hundred_steps_stay_shallow, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_merge_finds_its_place, setup, teardown),
    };

    as_root = argc == 2 && strcmp(argv[1], "root") == 0;
    if (argc != 2 || (as_root && geteuid() != 0) || !enter_namespaces()) {
        printf("1..0 # SKIP cannot be %s here\n", argc > 1 ? argv[1] : "nobody");
        return 0;
    }
    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
