/* Real overlays, as an ordinary user in a user namespace ("user") or as root ("root"), against a
 * comparison of the whole trees. */

#include "base/memory.h"
#include "base/own.h"
#include "changes/apply.h"
#include "changes/digest.h"
#include "tests/support/unit.h"
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

enum { SOMEBODY = 54321 };

static bool as_root;

/* --- an overlay in a scratch directory -------------------------------------------------------- */

static void write_file(const char *path, const char *content)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, content, strlen(content)) < 0) {
        perror(path);
        exit(1);
    }
}

/* A mount namespace of our own; for the user a user namespace around it, in which we are root. */
static void enter_namespaces(void)
{
    if (!as_root && geteuid() == 0 &&
        (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) || setresuid(SOMEBODY, SOMEBODY, SOMEBODY)))
        exit(1);

    autofree char *uids = text_format("0 %u 1", geteuid()), *gids = text_format("0 %u 1", getegid());

    /* Whoever changed ids does not own its own /proc files until it says so. */
    prctl(PR_SET_DUMPABLE, 1);
    if (unshare(CLONE_NEWNS | (as_root ? 0 : CLONE_NEWUSER)) < 0) {
        perror("unshare");
        exit(1);
    }
    if (!as_root) {
        write_file("/proc/self/setgroups", "deny");
        write_file("/proc/self/uid_map", uids);
        write_file("/proc/self/gid_map", gids);
    }
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static void start(struct world *world, const char *mask)
{
    const char *more = ",redirect_dir=nofollow,index=off,metacopy=off"; /* as root's sandboxes have it */
    autofree char *options =
        text_format("%slowerdir=%s%sbase,upperdir=upper,workdir=work,volatile%s", as_root ? "" : "userxattr,",
                    mask ? mask : "", mask ? ":" : "", as_root ? more : "");

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

/* Few names and few contents, so that they meet often. */
static void some_path(struct dice *dice, char path[32])
{
    size_t len = 0;

    for (unsigned depth = 1 + roll(dice, 3); depth--; path[len++] = '/')
        path[len++] = (char)('a' + roll(dice, 4));
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

static void remove_all(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put_by_memory(const char *path, char byte)
{
    autoclose int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || !status.st_size)
        return;

    char *memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return;
    memory[0] = byte;
    munmap(memory, (size_t)status.st_size);
}

/* Whatever fails, fails: as it would inside. */
static void act(struct dice *dice)
{
    static const char *const contents[] = { "", "one", "two", "three", "another" };
    static const mode_t modes[] = { 0644, 0755, 0600 };
    const char *content = contents[roll(dice, ARRAY_LEN(contents))];
    mode_t mode = modes[roll(dice, ARRAY_LEN(modes))];
    char path[32], other[32];
    int failed = 0;

    some_path(dice, path);
    some_path(dice, other);
    switch (roll(dice, 19)) {
    case 0:
    case 1:
        put(path, content, O_CREAT | O_TRUNC);
        break;
    case 2:
        put(path, content, O_APPEND);
        break;
    case 3:
        put(path, content, O_TRUNC);
        break;
    case 4:
        failed = fchmodat(AT_FDCWD, path, mode, 0);
        break;
    case 5:
        failed = unlink(path);
        break;
    case 6:
        remove_all(path);
        break;
    case 7:
        remove_all(path);
        failed = mkdir(path, mode | 0700);
        break;
    case 8:
    case 9:
        failed = mkdir(path, 0755);
        break;
    case 10:
    case 11:
    case 12:
        failed = rename(path, other);
        break;
    case 13:
        failed = renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE);
        break;
    case 14:
        failed = symlink(content, path);
        break;
    case 15:
        failed = truncate(path, 3 * 4096);
        break;
    case 16:
        put_by_memory(path, *content);
        break;
    case 17:
        failed = setxattr(path, "user.note", content, strlen(content), 0);
        break;
    default:
        failed = link(path, other);
        break;
    }
    (void)failed;
}

/* A base, and what was done to it, by chance. */
static struct world *some_world(unsigned seed)
{
    struct dice dice = { 0x9e3779b97f4a7c15u * seed };
    void *made = NULL;

    assert_int_equal(overlay_setup(&made), 0);

    struct world *world = made;

    assert_int_equal(chdir(unit_scratch_path(world->scratch, "base")), 0);
    for (unsigned i = 0; i < 60; i++)
        act(&dice);
    world_tick(world);
    start(world, NULL);
    assert_int_equal(chdir("merged"), 0);
    for (unsigned i = roll(&dice, 40); i; i--)
        act(&dice);
    world_scan(world);
    return world;
}

static void for_each_seed(void (*check)(struct world *world, const char *what))
{
    unsigned seeds = getenv("COVE_SEEDS") ? (unsigned)strtoul(getenv("COVE_SEEDS"), NULL, 10) : 300;
    unsigned first = getenv("COVE_SEED") ? (unsigned)strtoul(getenv("COVE_SEED"), NULL, 10) : 1;

    for (unsigned seed = first; seed < first + seeds; seed++) {
        autofree char *what = text_format("COVE_SEED=%u", seed);
        void *world = some_world(seed);

        check(world, what);
        overlay_teardown(&world);
    }
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
    enter_namespaces();

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
