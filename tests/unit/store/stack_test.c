/* Freezing and turning, also when they are interrupted before any system call.  As an ordinary user ("user"),
 * whom modes can stop, and as root ("root"). */

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "store/merge.h"
#include "sys/sys.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/store/dying.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { SOMEBODY = 54321 };

struct world {
    struct unit_scratch *scratch;
    char *state;
    struct sandbox_dir dir;
    struct stack_place place;
    struct error err;
    char target[ID_LENGTH + 1]; /* of what is tried */
};

#define MUST(call)                                                                                             \
    do {                                                                                                       \
        if ((call) < 0)                                                                                        \
            fail_msg("%s: %s", #call, world->err.text);                                                        \
    } while (0)

static void put(int dir, const char *name, const char *content)
{
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
}

static void freeze_as(struct world *world, uint64_t step, char lid[ID_LENGTH + 1])
{
    autostrings struct strings chain = STRINGS_NONE;

    MUST(stack_freeze(&world->place, step, &chain, &world->err));
    snprintf(lid, ID_LENGTH + 1, "%s", chain.items[0]);
}

static void turn_to(struct world *world, const char *lid)
{
    autostrings struct strings chain = STRINGS_NONE;

    MUST(stack_turn(&world->place, lid, &chain, &world->err));
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
    assert_int_equal(mkdirat(world->dir.fd, "u0", 0755) + mkdirat(world->dir.fd, "u3", 0755), 0);
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    MUST(store_remove(&world->dir, &world->err));
    MUST(store_remove_tree(world->scratch->dir, "state", &world->err));
    close(world->place.layers);
    unit_scratch_teardown((void **)&world->scratch);
    free(world->state);
    free(world);
    return 0;
}

/* What a command has written, a closed directory at the top included. */
static void write_some(struct world *world, const char *content)
{
    put(world->dir.fd, "u0/root", content);
    assert_int_equal(fchmodat(world->dir.fd, "u3", 0755, 0), 0);
    put(world->dir.fd, "u3/work", content);
    assert_int_equal(fchmodat(world->dir.fd, "u3", 0511, 0), 0);
}

static mode_t mode_of(int dir, const char *path)
{
    struct stat status;

    assert_int_equal(fstatat(dir, path, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_mode & 07777;
}

/* What would be seen of a file: in the sandbox's own directory, or else in the first layer that has it. */
static char *seen(struct world *world, const char *tree, const char *name)
{
    autostrings struct strings chain = STRINGS_NONE;
    autofree char *own = text_format("%s/%s", tree, name);
    char top[ID_LENGTH + 1], *found = file_text(world->dir.fd, own, 100);

    MUST(stack_top(world->dir.fd, top, &world->err));
    MUST(layers_chain(world->place.layers, top, &chain, &world->err));
    for (size_t i = 0; !found && i < chain.len; i++) {
        autofree char *path = text_format("%s/%s/%s", chain.items[i], tree, name);

        found = file_text(world->place.layers, path, 100);
    }
    return found ? found : text_copy("nothing");
}

static void must_show(struct world *world, const char *want)
{
    autofree char *root = seen(world, "u0", "root"), *work = seen(world, "u3", "work");

    assert_string_equal(root, want);
    assert_string_equal(work, want);
    assert_int_equal(mode_of(world->dir.fd, "u0"), 0755);
    if (strcmp(want, "nothing") != 0)
        assert_int_equal(mode_of(world->dir.fd, "u3"), 0511);
}

/* --- without accidents ------------------------------------------------------------------------- */

static void freezing_moves_and_makes_anew(void **state)
{
    struct world *world = *state;
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;
    autofree char *upper = NULL;
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    write_some(world, "one");
    if (setxattr(unit_scratch_path(world->scratch, "state"), "user.note", "x", 1, 0) == 0) {
        upper = text_format("/proc/self/fd/%d/u0", world->dir.fd);
        assert_int_equal(setxattr(upper, "user.note", "kept", 4, 0), 0);
        assert_int_equal(setxattr(upper, "user.overlay.opaque", "y", 1, 0), 0);
    }
    freeze_as(world, 7, one);
    must_show(world, "one");
    assert_int_equal(faccessat(world->dir.fd, "u0/root", F_OK, 0), -1);
    if (upper) {
        char note[8] = "";

        assert_int_equal(getxattr(upper, "user.note", note, sizeof note), 4);
        assert_int_equal(getxattr(upper, "user.overlay.opaque", note, sizeof note), -1);
    }
    MUST(layers_read(world->place.layers, one, &layer, &world->err));
    assert_int_equal(layer.step, 7);
    assert_string_equal(layer.parent, "");
    assert_string_equal(layer.sandbox, world->dir.id);
    layer_info_free(&layer);

    write_some(world, "two");
    freeze_as(world, 8, two);
    must_show(world, "two");
    MUST(layers_read(world->place.layers, two, &layer, &world->err));
    assert_string_equal(layer.parent, one);

    write_some(world, "three");
    turn_to(world, one);
    must_show(world, "one");
    turn_to(world, two);
    must_show(world, "two");
    turn_to(world, "");

    autofree char *root = seen(world, "u0", "root");

    assert_string_equal(root, "nothing");
    stack_clean(world->dir.fd);
}

static void strange_links_are_refused(void **state)
{
    struct world *world = *state;
    char top[ID_LENGTH + 1];

    assert_int_equal(symlinkat("../../../etc", world->dir.fd, STORE_STACK), 0);
    assert_int_equal(stack_top(world->dir.fd, top, &world->err), -1);
    assert_contains(world->err.text, "not what we write");
    assert_int_equal(stack_turn(&world->place, "aaaaaaaaaaaaaaaaaaaa", &(struct strings){ 0 }, &world->err),
                     -1);
    assert_int_equal(world->err.kind, ERROR_MISSING);
}

/* --- with them ------------------------------------------------------------------------------------ */

/* Temporary names in layers/, but not those that somebody waits for. */
static size_t count_leftovers(struct world *world)
{
    DIR *entries = opendir(unit_scratch_path(world->scratch, "state/layers"));
    size_t count = 0;

    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.' && !store_is_id(entry->d_name);
    closedir(entries);
    return count;
}

static size_t count_layers(struct world *world)
{
    autostrings struct strings all = STRINGS_NONE;

    MUST(layers_list(world->place.layers, &all, &world->err));
    return all.len;
}

/* Tries `work` once for each of its system calls, from a fresh world each time. */
static void at_every_call(void (*before)(struct world *world), int (*work)(void *argument),
                          void (*after)(struct world *world, bool died))
{
    bool died = true;

    for (unsigned call = 0; died; call++) {
        struct world *world;

        assert_int_equal(setup((void **)&world), 0);
        before(world);
        died = dying_at(call, work, world);
        layers_sweep(world->state);
        after(world, died);
        layers_sweep(world->state);
        assert_int_equal(count_leftovers(world), 0);
        teardown((void **)&world);
        assert_true(call < 1000);
    }
}

static void one_frozen_and_two_written(struct world *world)
{
    write_some(world, "one");
    freeze_as(world, 1, world->target);
    write_some(world, "two");
}

static int freeze(void *argument)
{
    struct world *world = argument;
    autostrings struct strings chain = STRINGS_NONE;

    return stack_freeze(&world->place, 2, &chain, &world->err);
}

static void nothing_is_lost(struct world *world, bool died)
{
    char lid[ID_LENGTH + 1];

    MUST(stack_repair(&world->place, &world->err));
    must_show(world, "two");
    assert_int_equal(faccessat(world->dir.fd, STORE_FREEZING, F_OK, AT_SYMLINK_NOFOLLOW), -1);
    if (!died)
        assert_int_equal(count_layers(world), 2);
    turn_to(world, world->target);
    must_show(world, "one");
    write_some(world, "three");
    freeze_as(world, 3, lid);
    must_show(world, "three");
}

static void an_interrupted_freeze_loses_nothing(void **state)
{
    (void)state;
    at_every_call(one_frozen_and_two_written, freeze, nothing_is_lost);
}

static int turn(void *argument)
{
    struct world *world = argument;

    return stack_turn(&world->place, world->target, &(struct strings){ 0 }, &world->err);
}

static void all_or_nothing(struct world *world, bool died)
{
    MUST(stack_repair(&world->place, &world->err));

    autofree char *now = seen(world, "u0", "root");

    if (!died)
        assert_string_equal(now, "one");
    must_show(world, strcmp(now, "two") == 0 ? "two" : "one");
    stack_clean(world->dir.fd);
}

static void an_interrupted_turn_is_done_or_not(void **state)
{
    (void)state;
    at_every_call(one_frozen_and_two_written, turn, all_or_nothing);
}

/* --- a part of the trees --- */

static void write_work(struct world *world, const char *content)
{
    assert_int_equal(fchmodat(world->dir.fd, "u3", 0755, 0), 0);
    put(world->dir.fd, "u3/work", content);
    assert_int_equal(fchmodat(world->dir.fd, "u3", 0511, 0), 0);
}

static void must_show_parts(struct world *world, const char *root, const char *work)
{
    autofree char *in_root = seen(world, "u0", "root"), *in_work = seen(world, "u3", "work");

    assert_string_equal(in_root, root);
    assert_string_equal(in_work, work);
    assert_int_equal(mode_of(world->dir.fd, "u0"), 0755);
    assert_int_equal(mode_of(world->dir.fd, "u3"), 0511);
}

static void one_frozen_and_a_part_written(struct world *world)
{
    write_some(world, "one");
    freeze_as(world, 1, world->target);
    write_work(world, "two");
    world->place.trees = 1 << 3;
}

static void the_part_is_not_lost(struct world *world, bool died)
{
    char two[ID_LENGTH + 1];

    world->place.trees = 0;
    MUST(stack_repair(&world->place, &world->err));
    must_show_parts(world, "one", "two");
    if (!died)
        assert_int_equal(count_layers(world), 2);
    MUST(stack_top(world->dir.fd, two, &world->err));
    if (strcmp(two, world->target) == 0) /* not even begun */
        freeze_as(world, 2, two);
    turn_to(world, world->target);
    must_show(world, "one");
    turn_to(world, two);
    must_show_parts(world, "one", "two");
}

static void an_interrupted_freeze_of_a_part_loses_nothing(void **state)
{
    (void)state;
    at_every_call(one_frozen_and_a_part_written, freeze, the_part_is_not_lost);
}

static void a_part_frozen(struct world *world)
{
    one_frozen_and_a_part_written(world);
    freeze(world);
}

static void the_part_is_turned_or_not(struct world *world, bool died)
{
    world->place.trees = 0;
    MUST(stack_repair(&world->place, &world->err));

    autofree char *now = seen(world, "u3", "work");

    if (!died)
        assert_string_equal(now, "one");
    must_show_parts(world, "one", strcmp(now, "two") == 0 ? "two" : "one");
    stack_clean(world->dir.fd);
}

static void an_interrupted_turn_of_a_part_is_done_or_not(void **state)
{
    (void)state;
    at_every_call(a_part_frozen, turn, the_part_is_turned_or_not);
}

/* What is left out is not touched, and what is known is believed. */
static void a_part_leaves_the_rest_alone(void **state)
{
    struct world *world = *state;
    autostrings struct strings known = STRINGS_NONE, chain = STRINGS_NONE;
    struct stat before, after;
    char one[ID_LENGTH + 1];

    write_some(world, "one");
    freeze_as(world, 1, one);
    strings_add(&known, one);
    write_work(world, "two");
    assert_int_equal(fstatat(world->dir.fd, "u0", &before, AT_SYMLINK_NOFOLLOW), 0);
    world->place.trees = 1 << 3;
    world->place.known = &known;
    MUST(stack_freeze(&world->place, 2, &chain, &world->err));
    assert_int_equal(chain.len, 2);
    assert_string_equal(chain.items[1], one);
    turn_to(world, one);
    world->place.trees = 0;
    world->place.known = NULL;
    assert_int_equal(fstatat(world->dir.fd, "u0", &after, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    must_show(world, "one");

    autofree char *lacks = text_format("%s/u0", chain.items[0]);

    assert_int_equal(faccessat(world->place.layers, lacks, F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

/* Of a repair that is interrupted itself, the next one takes care. */
static void half_frozen(struct world *world)
{
    one_frozen_and_two_written(world);
    for (unsigned call = 1; faccessat(world->dir.fd, STORE_FREEZING, F_OK, AT_SYMLINK_NOFOLLOW) < 0; call++)
        if (!dying_at(call, freeze, world))
            fail_msg("nothing was begun");
}

static int repair(void *argument)
{
    struct world *world = argument;

    return stack_repair(&world->place, &world->err);
}

static void still_nothing_is_lost(struct world *world, bool died)
{
    (void)died;
    MUST(stack_repair(&world->place, &world->err));
    must_show(world, "two");
}

static void an_interrupted_repair_loses_nothing(void **state)
{
    (void)state;
    at_every_call(half_frozen, repair, still_nothing_is_lost);
}

static void three_frozen(struct world *world)
{
    char lids[3][ID_LENGTH + 1];

    for (int i = 0; i < 3; i++) {
        write_some(world, "x");
        freeze_as(world, 1, lids[i]);
    }
    for (int i = 0; i < 2; i++) /* the one above holds it */
        MUST(layers_release(world->place.layers, lids[i], world->dir.id, &world->err));
    memcpy(world->target, lids[2], sizeof lids[2]);
}

static int release(void *argument)
{
    struct world *world = argument;

    return layers_release(world->place.layers, world->target, world->dir.id, &world->err);
}

/* The sandbox does not say any more that it lies on them. */
static void all_go_or_all_stay(struct world *world, bool died)
{
    size_t count = count_layers(world);

    (void)died;
    assert_true(count == 0 || count == 3);
    if (!died)
        assert_int_equal(count, 0);
    turn_to(world, "");
}

static void an_interrupted_release_is_finished_by_the_sweep(void **state)
{
    (void)state;
    at_every_call(three_frozen, release, all_go_or_all_stay);
}

static void three_kept(struct world *world)
{
    for (int i = 0; i < 3; i++) {
        write_some(world, "x");
        freeze_as(world, 1, world->target);
    }
}

static int merge(void *argument)
{
    struct world *world = argument;
    char lid[ID_LENGTH + 1];

    if (merge_layers(world->place.layers, world->target, 2, MERGE_USER, world->dir.id, lid, &world->err) < 0)
        return -1;
    return merge_adopt(&world->place, lid, &world->err);
}

static void same_before_and_after(struct world *world, bool died)
{
    size_t count = count_layers(world);

    must_show(world, "x");
    assert_true(count == 3 || count == 4);
    if (!died)
        assert_int_equal(count, 4);
}

static int merge_with_all_rights(void *argument)
{
    return sys_own_user_namespace() < 0 ? -1 : merge(argument);
}

/* It never comes to its `call`: only the end of the child counts. */
static void a_closed_directory_can_be_merged(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < 3; i++) {
        write_some(world, "x");
        assert_int_equal(mkdirat(world->dir.fd, "u0/closed", 0700), 0);
        put(world->dir.fd, "u0/closed/f", "x");
        assert_int_equal(fchmodat(world->dir.fd, "u0/closed", 0, 0), 0);
        freeze_as(world, 1, world->target);
    }
    if (geteuid() != 0)
        assert_int_equal(merge(world), -1);
    assert_false(dying_at(1000000, merge_with_all_rights, world));
    layers_sweep(world->state);
    assert_int_equal(count_leftovers(world), 0);
    assert_int_equal(count_layers(world), 4);
}

static void an_interrupted_merge_changes_nothing(void **state)
{
    (void)state;
    at_every_call(three_kept, merge, same_before_and_after);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(freezing_moves_and_makes_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(strange_links_are_refused, setup, teardown),
        cmocka_unit_test(an_interrupted_freeze_loses_nothing),
        cmocka_unit_test(an_interrupted_turn_is_done_or_not),
        cmocka_unit_test(an_interrupted_freeze_of_a_part_loses_nothing),
        cmocka_unit_test(an_interrupted_turn_of_a_part_is_done_or_not),
        cmocka_unit_test_setup_teardown(a_part_leaves_the_rest_alone, setup, teardown),
        cmocka_unit_test(an_interrupted_repair_loses_nothing),
        cmocka_unit_test(an_interrupted_release_is_finished_by_the_sweep),
        cmocka_unit_test_setup_teardown(a_closed_directory_can_be_merged, setup, teardown),
        cmocka_unit_test(an_interrupted_merge_changes_nothing),
    };
    bool root = argc == 2 && strcmp(argv[1], "root") == 0;

    if (root ? geteuid() != 0
             : geteuid() == 0 && (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ||
                                  setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)) {
        printf("1..0 # SKIP cannot be %s here\n", argc > 1 ? argv[1] : "nobody");
        return 0;
    }
    umask(022);
    prctl(PR_SET_DUMPABLE, 1); /* who changed ids does not own its own /proc files until it says so */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
