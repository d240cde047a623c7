/* Upper directories made by hand: what the kernel would write, and what it never would. */

#include "base/own.h"
#include "changes/prints.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void what_was_made_is_added(void **state)
{
    struct world *world = *state;

    world_run(world, "cd upper && echo a > f && mkdir -p d/e empty && echo b > d/e/g && ln -s f l");
    world_expect(world, "A d\nA d/e\nA d/e/g\nA empty EMPTY\nA f\nA l\n");
    assert_int_equal(world_change(world, "f")->new.type, SIDE_FILE);
    assert_int_equal(world_change(world, "f")->new.size, 2);
    assert_int_equal(world_change(world, "f")->new.mode, 0644);
    assert_int_equal(world_change(world, "f")->old.type, SIDE_NONE);
    assert_string_equal(world_change(world, "l")->new.target, "f");
    assert_int_equal(world_change(world, "d")->new.type, SIDE_DIRECTORY);
}

static void only_content_mode_type_and_target_count(void **state)
{
    struct world *world = *state;

    world_run(world,
              "cd base && mkdir d && echo one > same && echo one > other && echo one > longer &&"
              "echo one > mode && echo one > both && echo one > tofile && ln -s x link && ln -s x samelink &&"
              "ln -s x tolink && mkdir todir tomode");
    world_run(world,
              "cp -a base/. upper && cd upper && touch -d 2001-01-01 same && echo two > other &&"
              "echo more >> longer && chmod +x mode both && echo two > both && ln -sfn y link &&"
              "rm tofile && mkdir tofile && rm tolink && echo x > tolink && rmdir todir && ln -s d todir &&"
              "chmod 700 tomode && touch d");
    world_expect(world,
                 "C both\nC link\nC longer\nM mode\nC other\nT todir\nT tofile EMPTY\nT tolink\nM tomode\n");
    assert_int_equal(world_change(world, "both")->old.mode, 0644);
    assert_int_equal(world_change(world, "both")->new.mode, 0755);
    assert_string_equal(world_change(world, "link")->old.target, "x");
    assert_string_equal(world_change(world, "link")->new.target, "y");
    assert_int_equal(world_change(world, "todir")->old.type, SIDE_DIRECTORY);
    assert_int_equal(world_change(world, "todir")->new.type, SIDE_LINK);
}

static void a_whiteout_removes_what_is_there(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p base/d/e && echo a > base/d/e/f && ln -s f base/d/l && echo b > base/g && mkdir "
                     "upper/k base/k");
    world_whiteout(world, "upper/d");
    world_whiteout(world, "upper/g");
    world_whiteout(world, "upper/never");
    world_whiteout(world, "upper/k/never");
    world_expect(world, "R d\nR d/e\nR d/e/f\nR d/l\nR g\n");
    assert_int_equal(world_change(world, "d/l")->old.type, SIDE_LINK);
    assert_string_equal(world_change(world, "d/l")->old.target, "f");
}

static void a_whiteout_can_be_an_attribute(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir base/d upper/d && echo a > base/d/f && touch upper/d/f base/d/g upper/d/new");
    world_mark(world, "upper/d", "opaque", "x");
    world_mark(world, "upper/d/f", "whiteout", "y");
    world_expect(world, "R d/f\nA d/new\n");
}

static void an_opaque_directory_removes_what_it_does_not_have(void **state)
{
    struct world *world = *state;

    world_run(world,
              "mkdir -p base/d/e/k base/d/x && echo a > base/d/same && echo a > base/d/gone &&"
              "echo a > base/d/other && touch base/d/e/k/f base/d/e/g base/d/x/y &&"
              "mkdir -p upper/d/e && echo a > upper/d/same && echo b > upper/d/other && touch upper/d/e/g");
    world_mark(world, "upper/d", "opaque", "y");
    world_expect(world, "R d/e/k\nR d/e/k/f\nR d/gone\nC d/other\nR d/x\nR d/x/y\n");
}

/* The command can set these where they are not the kernel's own. */
static void marks_of_the_other_kind_mean_nothing(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir base/d upper/d && echo a > base/d/f && touch upper/d/g");
    world_mark(world, "upper/d", "opaque", "y");
    world_mark(world, "upper/d/g", "whiteout", "y");
    world->source.marks = CHANGES_MARKS_TRUSTED;
    world_expect(world, "A d/g\n");
}

static int trusted_setup(void **state)
{
    if (world_setup(state) < 0)
        return -1;
    ((struct world *)*state)->source.marks = CHANGES_MARKS_TRUSTED;
    return 0;
}

static bool needs_root(void)
{
    if (geteuid() == 0)
        return false;
    print_message("trusted.* attributes need root\n");
    return true;
}

static void the_same_holds_for_trusted_marks(void **state)
{
    struct world *world = *state;

    if (needs_root())
        skip();
    an_opaque_directory_removes_what_it_does_not_have(state);
    world_run(world, "rm -rf base/* upper/*");
    a_whiteout_can_be_an_attribute(state);
}

/* As the kernel sees it: sandboxes' overlays are mounted with redirect_dir=nofollow. */
static void the_mark_of_a_renamed_directory_says_nothing(void **state)
{
    static const char *const values[] = { "d", "/d", "/none", "/../base", "..", "/link" };
    struct world *world = *state;

    if (needs_root())
        skip();
    world_run(world, "mkdir -p base/d base/e upper/e upper/n && touch base/d/x base/e/y upper/e/x upper/n/x &&"
                     "ln -s d base/link");
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        world_mark(world, "upper/e", "redirect", values[i]);
        world_mark(world, "upper/n", "redirect", values[i]);
        world_expect(world, "A e/x\nA n\nA n/x\n");
    }
}

static void links_and_special_files_are_flagged(void **state)
{
    struct world *world = *state;

    world_run(world, "cd upper && ln -s ../x out && ln -s /etc abs && ln -s /some/tree/f in && ln -s f plain &&"
                     "mkfifo fifo && echo a > h1 && ln h1 h2 && echo s > suid && chmod 4755 suid");
    world_expect(world, "A abs LINK_OUT\nA fifo SPECIAL\nA h1 HARDLINK\nA h2 HARDLINK\nA in LINK_ABSOLUTE\n"
                        "A out LINK_OUT\nA plain\nA suid SETID\n");
}

static void names_are_flagged(void **state)
{
    struct world *world = *state;

    world_run(world,
              "cd upper && touch -- -rf 'b ' && mkdir d && touch d/ok && printf x > \"$(printf 'n\\nl')\"");
    world_expect(world, "A -rf NAME_ODD\nA b  NAME_ODD\nA d\nA d/ok\nA n\\x0al NAME_ODD\n");
}

static void twins_are_flagged_beside_upper_and_base(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p base/d base/.git && touch base/Makefile base/Both base/both base/Old base/d/a &&"
                     "cd upper && mkdir d && touch makefile new NEW old d/A other && echo x > both &&"
                     "touch \"$(printf '.g\\342\\200\\214it')\"");
    world_whiteout(world, "upper/Old");
    world_expect(world,
                 "A .g\xe2\x80\x8cit TWIN NAME_ODD\nA NEW TWIN\nR Old\nC both\nA d/A TWIN\nA makefile TWIN\n"
                 "A new TWIN\nA old\nA other\n");
}

static void what_was_hidden_is_not_compared(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p base/d/secret base/k && echo a > base/.env && echo k > base/d/secret/key && "
                     "echo f > base/d/f &&"
                     "echo a > base/k/.env && mkdir upper/k && echo a > upper/.env && echo n > upper/moved && "
                     "echo k > upper/key");
    strings_add(&world->hide, "d/secret");
    strings_add(&world->hide, ".env");
    strings_add(&world->hide, "k/.env");
    world_whiteout(world, "upper/d");
    world_whiteout(world, "upper/k/.env");
    world_expect(world, "A .env HIDDEN\nR d\nR d/f\nR d/secret HIDDEN\nA key\nA moved\n");
    assert_int_equal(world_change(world, ".env")->old.type, SIDE_NONE);
}

static void what_the_owner_did_meanwhile_is_flagged(void **state)
{
    struct world *world = *state;

    world_run(world, "cd base && mkdir d && echo a > before && echo a > after && echo a > removed && echo a > "
                     "removed2 && echo a > d/f");
    world_tick(world);
    world_run(world,
              "echo b > base/after && echo c > base/removed && echo n > base/appeared && echo n > base/d/late");
    world_run(world, "cd upper && echo x > before && echo x > after && echo x > appeared");
    world_whiteout(world, "upper/removed");
    world_whiteout(world, "upper/removed2");
    world_whiteout(world, "upper/d");
    world_expect(world,
                 "C after BASE_CHANGED\nC appeared BASE_CHANGED\nC before\nR d\nR d/f\nR d/late BASE_CHANGED\n"
                 "R removed BASE_CHANGED\nR removed2\n");
}

static void a_moved_file_is_renamed(void **state)
{
    struct world *world = *state;

    world_run(world, "cd base && mkdir d && echo same > d/a && echo some > d/b && echo size > c && touch empty "
                     "&& echo twice > t");
    world_run(world,
              "cd upper && mkdir e && echo same > e/x && chmod 755 e/x && echo some > e/b && echo diff > c2 &&"
              "touch empty2 && echo twice > t1 && echo twice > t2");
    world_whiteout(world, "upper/d");
    world_whiteout(world, "upper/c");
    world_whiteout(world, "upper/empty");
    world_whiteout(world, "upper/t");
    world_expect(world, "R c\nA c2\nR d\nA e\nN e/b < d/b\nN e/x < d/a\nR empty\nA empty2\nN t1 < t\nA t2\n");
    assert_int_equal(world_change(world, "e/x")->old.mode, 0644);
    assert_int_equal(world_change(world, "e/x")->new.mode, 0755);
}

static void holes_are_not_read(void **state)
{
    struct world *world = *state;

    world_run(world, "truncate -s 4T base/same upper/same base/other upper/other &&"
                     "printf x | dd of=upper/other bs=1 seek=3000000000000 conv=notrunc status=none");
    world_expect(world, "C other\n");
}

/* Root can read everything, so for this it is somebody else. */
static void what_cannot_be_read_is_said_so(void **state)
{
    struct world *world = *state;
    bool root = geteuid() == 0;

    world_run(world, "mkdir base/d base/same upper/d upper/same && echo a > base/f && echo a > upper/f &&"
                     "echo x > upper/d/x && chmod 0 upper/d upper/f");
    if (root) {
        world_run(world, "chmod 755 . && chown -R 54321 upper");
        assert_int_equal(seteuid(54321), 0);
    }
    world_scan(world);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(world->changes.len, 2);
    assert_int_equal(world_change(world, "d")->kind, CHANGE_MODE);
    assert_int_equal(world_change(world, "d")->flags, FLAG_UNREADABLE);
    assert_int_equal(world_change(world, "f")->kind, CHANGE_CHANGED);
    assert_int_equal(world_change(world, "f")->flags, FLAG_UNREADABLE);
    world_run(world, "chmod -R u+rwX upper");
}

static unsigned open_descriptors(void)
{
    autoclosedir DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(dir))
        count++;
    return count;
}

/* 1,500 levels within one path; then one more than a path can have. */
static void depth_costs_no_descriptors_and_has_a_bound(void **state)
{
    struct world *world = *state;
    unsigned before = open_descriptors();

    world_run(
        world,
        "python3 -c 'import os\nos.chdir(\"upper\")\nfor i in range(1500): os.mkdir(\"d\"); os.chdir(\"d\")'");
    world_scan(world);
    assert_int_equal(world->changes.len, 1500);
    assert_int_equal(open_descriptors(), before);
    world_run(world, "python3 -c 'import os\nos.chdir(\"upper\")\nfor i in range(1500): os.chdir(\"d\")\n"
                     "for i in range(1500): os.mkdir(\"d\"); os.chdir(\"d\")'");
    changes_free(&world->changes);
    world_run(world, "echo beside >upper/zz");
    world_scan(world);

    const struct change *last = &world->changes.items[world->changes.len - 2];

    assert_true(last->flags & FLAG_TOO_DEEP && last->new.type == SIDE_DIRECTORY);
    assert_in_range(strlen(last->path), PATH_MAX - NAME_MAX - 1, PATH_MAX - 1);
    for (size_t i = 0; i + 2 < world->changes.len; i++)
        assert_false(world->changes.items[i].flags & FLAG_TOO_DEEP);
    assert_string_equal(world->changes.items[world->changes.len - 1].path, "zz");
    assert_int_equal(open_descriptors(), before);
    world_run(world, "rm -rf upper/*");
}

static void links_in_the_base_are_not_followed(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir outside && echo same > outside/f && ln -s ../outside base/d && mkdir upper/d && "
                     "echo same > upper/d/f");
    world_expect(world, "T d\nA d/f\n");
}

/* Swaps directories with links that lead out, on both sides, until it is killed. */
static void disturb(int dir)
{
    static const char *const pairs[][2] = {
        { "upper/d", "upper/l" },
        { "base/d", "base/l" },
        { "upper/d/e", "upper/p" },
        { "base/d/e", "base/p" },
    };

    for (unsigned i = 0;; i++)
        renameat2(dir, pairs[i % 4][0], dir, pairs[i % 4][1], RENAME_EXCHANGE);
}

/* Whatever the scan sees, it sees nothing of what the links lead to, and it ends. */
static void a_tree_that_changes_meanwhile_is_survived(void **state)
{
    struct world *world = *state;
    unsigned before = open_descriptors();

    world_run(world, "mkdir outside && echo x > outside/canary &&"
                     "for t in upper base; do mkdir -p $t/d/e && ln -s ../outside $t/l && mkfifo $t/p && echo "
                     "$t > $t/d/e/f &&"
                     "echo $t > $t/d/g; done");

    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);
        disturb(world->scratch->dir);
    }
    assert_true(child > 0);
    for (unsigned i = 0; i < 500; i++) {
        world_scan(world);
        for (size_t k = 0; k < world->changes.len; k++)
            assert_null(strstr(world->changes.items[k].path, "canary"));
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(open_descriptors(), before);
}

static void owners_are_told_as_they_are_inside(void **state)
{
    struct world *world = *state;

    world_run(world, "touch upper/f");
    world_scan(world);
    assert_int_equal(world_change(world, "f")->new.uid, geteuid());
    world->source.shift = geteuid() + 1;
    world_scan(world);
    assert_int_equal(world_change(world, "f")->new.uid, (uid_t)-1);
    if (geteuid() == 0) {
        world_run(world, "chown 500007:500008 upper/f");
        world->source.shift = 500000;
        world_scan(world);
        assert_int_equal(world_change(world, "f")->new.uid, 7);
        assert_int_equal(world_change(world, "f")->new.gid, 8);
    }
}

static void expect_at(struct world *world, const char *path, unsigned how, const char *want)
{
    autotext struct text text = TEXT_NONE;
    autochanges struct changes found = CHANGES_NONE;

    assert_int_equal(changes_scan_at(&world->source, path, how, &found, &world->err), 0);
    for (size_t i = 0; i < found.len; i++)
        world_add_line(&text, &found.items[i]);
    assert_string_equal(text_string(&text), want);
}

static void one_path_can_be_asked_for(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p base/d/e base/r/s base/o && echo 1 > base/d/f && echo 1 > base/d/same && "
                     "echo 1 > base/r/s/t && echo 1 > base/o/old && echo 1 > base/d/e/g");
    world_run(world, "mkdir -p upper/d/e upper/n/m upper/o && echo 2 > upper/d/f && echo 1 > upper/d/same && "
                     "echo 3 > upper/n/m/x && echo 4 > upper/n/y && echo 5 > upper/o/new");
    world_whiteout(world, "upper/r");
    world_mark(world, "upper/o", "opaque", "y");
    expect_at(world, "d/f", 0, "C d/f\n");
    expect_at(world, "d/same", 0, "");
    expect_at(world, "d", 0, "");
    expect_at(world, "n", 0, "A n\n");
    expect_at(world, "n", CHANGES_BELOW, "A n\nA n/m\nA n/m/x\nA n/y\n");
    expect_at(world, "n/m/x", 0, "A n/m/x\n");
    expect_at(world, "r", 0, "R r\nR r/s\nR r/s/t\n");
    expect_at(world, "o/old", 0, "R o/old\n");
    expect_at(world, "o", CHANGES_BELOW, "A o/new\nR o/old\n");
    expect_at(world, "", CHANGES_BELOW,
              "C d/f\nA n\nA n/m\nA n/m/x\nA n/y\nA o/new\nR o/old\nR r\nR r/s\nR r/s/t\n");
}

static void what_the_layer_lacks_is_only_removed_if_it_is_known_to_be(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p base/d/e upper/d && echo 1 > base/d/f && echo 1 > base/d/e/g");
    expect_at(world, "d/f", 0, "");
    expect_at(world, "d/f", CHANGES_GONE, "R d/f\n");
    expect_at(world, "d/e", CHANGES_GONE, "R d/e\nR d/e/g\n");
    expect_at(world, "d/none", CHANGES_GONE, "");
    expect_at(world, "none/at/all", CHANGES_GONE, "");
    expect_at(world, "d/e/g", CHANGES_GONE, ""); /* the directory around it is not in the layer */
}

static void what_we_put_there_is_not_the_owners(void **state)
{
    struct world *world = *state;
    autoprints struct prints ours = PRINTS_NONE;
    struct stat status;

    world_run(world, "mkdir base/d upper/d && echo 2 > upper/d/f && echo 2 > upper/d/g && touch prints");
    world_tick(world);
    world_run(world, "echo 1 > base/d/f && echo 1 > base/d/g");
    expect_at(world, "d/f", 0, "C d/f BASE_CHANGED\n");

    autoclose int f = openat(world->source.base, "d/f", O_PATH);
    autoclose int prints = openat(world->source.base, "../prints", O_RDWR);

    assert_int_equal(fstat(f, &status), 0);

    struct print print = print_of(&status);

    prints_note(prints, 3, &print);
    prints_note(prints, PRINTS_MAX, &print);
    prints_read(prints, &ours);
    assert_int_equal(ours.len, 1);
    world->source.ours = &ours;
    expect_at(world, "d/f", 0, "C d/f\n");
    expect_at(world, "d/g", 0, "C d/g BASE_CHANGED\n");
    world_run(world, "echo 3 >> base/d/f");
    expect_at(world, "d/f", 0, "C d/f BASE_CHANGED\n");
}

static void in_an_upper_of_hard_links_only_names_within_it_count(void **state)
{
    struct world *world = *state;

    world->source.linked = true;
    world_run(world, "mkdir layer && echo a > layer/one && echo b > layer/two && echo c > layer/three && "
                     "echo c > base/three &&"
                     "ln layer/one upper/one && ln layer/two upper/two && ln layer/two upper/again && ln "
                     "layer/three upper/three &&"
                     "ln upper/three upper/four");
    world_expect(world, "A again HARDLINK\nA four HARDLINK\nA one\nA two HARDLINK\n");
}

/* Three layers, the first two as they are merged: what the oldest that is seen says counts. */
static void what_was_a_copy_from_the_first_is_known_by_its_layers(void **state)
{
    struct world *world = *state;
    struct strings line = STRINGS_NONE;

    world->source.linked = true;
    world->source.line = &line;
    world->source.line_at = world->scratch->dir;
    for (const char *const *name = (const char *const[]){ "l3", "l2", "l1", NULL }; *name; name++)
        strings_add(&line, *name);
    world_run(world, "mkdir -p l1/d l2/d l3/d && for f in copied made again; do echo 1 > l1/$f; done && "
                     "echo 2 > l2/copied &&"
                     "echo 2 > l2/made && echo 3 > l3/again && echo 1 > l1/d/in && echo 3 > l3/d/in && "
                     "echo 1 > l1/d/over &&"
                     "echo 2 > l2/d/over && mkdir upper/d && ln l2/copied l2/made l3/again upper && ln "
                     "l3/d/in l2/d/over upper/d");
    world_mark(world, "l1/copied", "origin", ""); /* a copy of the base; the copy of it, in l2, has no mark */
    world_mark(world, "l2/made", "origin", "");   /* of a file that was made inside */
    world_mark(world, "l1/again", "origin", "");
    world_mark(world, "l1/d", "origin", "");
    world_mark(world, "l1/d/in", "origin", "");
    world_mark(world, "l1/d/over", "origin", "");
    world_mark(world, "l2/d", "opaque", "y"); /* what it covers is not seen through it */
    world_whiteout(world, "l2/again");
    world_tick(world);
    world_run(world, "touch base/x && rm base/x");
    world_expect(world, "A again\nA copied BASE_CHANGED\nA d\nA d/in\nA d/over\nA made\n");
    world_run(world, "setfattr -x user.overlay.opaque l2/d 2>/dev/null || python3 -c 'import os; "
                     "os.removexattr(\"l2/d\", \"user.overlay.opaque\")'");
    world_expect(world, "A again\nA copied BASE_CHANGED\nA d BASE_CHANGED\nA d/in BASE_CHANGED\nA d/over "
                        "BASE_CHANGED\nA made\n");
    strings_free(&line);
}

/* Both sides are whole trees, and of `layer` only the names count. */
static void between_two_trees_only_what_was_touched_is_looked_at(void **state)
{
    struct world *world = *state;
    autoclose int layer = -1;
    int touched[1];

    world_run(world,
              "for s in base upper; do mkdir -p $s/d/e $s/o/p; echo $s > $s/d/e/f; echo $s > $s/not; echo "
              "$s > $s/d/not; done &&"
              "echo gone > base/gone && mkdir upper/fresh && echo x > upper/fresh/in && echo b > base/o/b && "
              "echo u > upper/o/p/u &&"
              "mkdir -p layer/d/e layer/fresh layer/o && touch layer/d/e/f layer/gone layer/nowhere");
    world_mark(world, "layer/o", "opaque", "y");
    layer = openat(world->scratch->dir, "layer", O_PATH | O_DIRECTORY | O_CLOEXEC);
    touched[0] = layer;
    world->source.touched = touched;
    world->source.touched_count = 1;
    world_expect(world, "C d/e/f\nA fresh\nA fresh/in\nR gone\nR o/b\nA o/p/u\n");
    world->source.touched_count = 0;
    world_expect(world, "");
}

/* Of two copies, each on top of one of the trees: what they share is not looked at. */
static void a_file_that_two_copies_share_is_the_same(void **state)
{
    struct world *world = *state;
    autoclose int one = -1, other = -1;
    int touched[2];

    world_run(world, "mkdir -p base/d upper/d one/d other/d && for s in base upper; do echo $s > $s/d/shared; "
                     "echo $s > $s/d/apart; echo $s > $s/link; done && echo x > base/gone &&"
                     "echo c > one/d/shared && ln one/d/shared other/d/shared && touch one/d/apart "
                     "other/d/apart one/gone && ln -s x one/link && ln -P one/link other/link");
    one = openat(world->scratch->dir, "one", O_PATH | O_DIRECTORY | O_CLOEXEC);
    other = openat(world->scratch->dir, "other", O_PATH | O_DIRECTORY | O_CLOEXEC);
    touched[0] = one;
    touched[1] = other;
    world->source.touched = touched;
    world->source.touched_count = 2;
    world_expect(world, "C d/apart\nC d/shared\nR gone\nC link\n");
    world->source.beside = true;
    world_expect(world, "C d/apart\nR gone\nC link\n");
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
#define TRUSTED(test) cmocka_unit_test_setup_teardown(test, trusted_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        IN_WORLD(what_was_made_is_added),
        IN_WORLD(only_content_mode_type_and_target_count),
        IN_WORLD(a_whiteout_removes_what_is_there),
        IN_WORLD(a_whiteout_can_be_an_attribute),
        IN_WORLD(an_opaque_directory_removes_what_it_does_not_have),
        IN_WORLD(marks_of_the_other_kind_mean_nothing),
        TRUSTED(the_same_holds_for_trusted_marks),
        TRUSTED(the_mark_of_a_renamed_directory_says_nothing),
        IN_WORLD(links_and_special_files_are_flagged),
        IN_WORLD(names_are_flagged),
        IN_WORLD(twins_are_flagged_beside_upper_and_base),
        IN_WORLD(what_was_hidden_is_not_compared),
        IN_WORLD(what_the_owner_did_meanwhile_is_flagged),
        IN_WORLD(a_moved_file_is_renamed),
        IN_WORLD(holes_are_not_read),
        IN_WORLD(what_cannot_be_read_is_said_so),
        IN_WORLD(depth_costs_no_descriptors_and_has_a_bound),
        IN_WORLD(links_in_the_base_are_not_followed),
        IN_WORLD(a_tree_that_changes_meanwhile_is_survived),
        IN_WORLD(owners_are_told_as_they_are_inside),
        IN_WORLD(one_path_can_be_asked_for),
        IN_WORLD(what_the_layer_lacks_is_only_removed_if_it_is_known_to_be),
        IN_WORLD(what_we_put_there_is_not_the_owners),
        IN_WORLD(in_an_upper_of_hard_links_only_names_within_it_count),
        IN_WORLD(what_was_a_copy_from_the_first_is_known_by_its_layers),
        IN_WORLD(between_two_trees_only_what_was_touched_is_looked_at),
        IN_WORLD(a_file_that_two_copies_share_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
