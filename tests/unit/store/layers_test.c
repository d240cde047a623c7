#include "store/layers.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/layerfile.h"
#include "store/lineage.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    struct unit_scratch *scratch;
    char *state;
    int layers;
    struct error err;
};

static int setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);
    struct sandbox_dir dir;

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    world->state = text_copy(unit_scratch_path(world->scratch, "state"));
    if (store_create(world->state, &dir, &world->err) < 0 || store_remove(&dir, &world->err) < 0)
        return -1;
    world->layers = layers_open(world->state, &world->err);
    return world->layers < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    close(world->layers);
    unit_scratch_teardown((void **)&world->scratch);
    free(world->state);
    free(world);
    return 0;
}

/* A layer on `parent`, held by a snapshot of that name. */
static void make(struct world *world, const char *parent, const char *snapshot, char lid[ID_LENGTH + 1])
{
    struct layer_info layer = { .sandbox = "aaaaaaaaaaaaaaaaaaaa", .weight = 1, .step = 3 };
    autofree char *holder = text_format("snapshot.%s", snapshot);

    memcpy(layer.parent, parent, strlen(parent) + 1);
    autoclose int dir = layers_begin(world->layers, &layer, holder, &world->err);

    assert_true(dir >= 0);
    assert_int_equal(mkdirat(dir, "u0", 0755), 0);
    assert_int_equal(layers_finish(world->layers, layer.id, &world->err), 0);
    memcpy(lid, layer.id, sizeof layer.id);
}

static bool there(struct world *world, const char *lid)
{
    return faccessat(world->layers, lid, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void a_layer_goes_with_its_last_holder(void **state)
{
    struct world *world = *state;
    char a[ID_LENGTH + 1], b[ID_LENGTH + 1], c[ID_LENGTH + 1];

    make(world, "", "a", a);
    make(world, a, "b", b);
    make(world, a, "c", c);
    assert_int_equal(layers_release(world->layers, a, "snapshot.a", &world->err), 0);
    assert_true(there(world, a));
    assert_int_equal(layers_hold(world->layers, b, "other", &world->err), 0);
    assert_int_equal(layers_hold(world->layers, b, "other", &world->err), 0);
    assert_int_equal(layers_release(world->layers, b, "snapshot.b", &world->err), 0);
    assert_int_equal(layers_release(world->layers, b, "never held it", &world->err), 0);
    assert_true(there(world, b));
    assert_int_equal(layers_release_all(world->layers, "other", &world->err), 0);
    assert_false(there(world, b));
    assert_true(there(world, a));
    assert_int_equal(layers_release(world->layers, c, "snapshot.c", &world->err), 0);
    assert_false(there(world, a) || there(world, c));
    assert_int_equal(layers_hold(world->layers, a, "late", &world->err), -1);
    assert_int_equal(world->err.kind, ERROR_MISSING);
}

static void a_long_chain_goes_at_once(void **state)
{
    struct world *world = *state;
    autostrings struct strings all = STRINGS_NONE;
    char below[ID_LENGTH + 1] = "", lid[ID_LENGTH + 1];

    for (int i = 0; i < 300; i++) {
        make(world, below, "s", lid);
        if (*below)
            assert_int_equal(layers_release(world->layers, below, "snapshot.s", &world->err), 0);
        memcpy(below, lid, sizeof lid);
    }
    assert_int_equal(layers_chain(world->layers, lid, &all, &world->err), -1);
    assert_contains(world->err.text, "more than 16");
    strings_free(&all);
    assert_int_equal(layers_release(world->layers, lid, "snapshot.s", &world->err), 0);
    assert_int_equal(layers_list(world->layers, &all, &world->err), 0);
    assert_int_equal(all.len, 0);
}

static void a_sweep_takes_what_nobody_needs(void **state)
{
    struct world *world = *state;
    char kept[ID_LENGTH + 1], lost[ID_LENGTH + 1], bare[ID_LENGTH + 1];
    struct layer_info layer = { .sandbox = "aaaaaaaaaaaaaaaaaaaa", .weight = 1 };
    autofree char *refs = NULL;

    unit_scratch_dir(world->scratch, "state/snapshots", 0700);
    unit_scratch_file(world->scratch, "state/snapshots/kept", "");
    make(world, "", "kept", kept);
    make(world, kept, "lost", lost);
    make(world, "", "lost", bare);
    refs = text_format("%s/refs/snapshot.lost", bare);
    assert_int_equal(unlinkat(world->layers, refs, 0), 0);
    memcpy(layer.parent, kept, sizeof kept);

    autoclose int begun = layers_begin(world->layers, &layer, "snapshot.kept", &world->err);
    autofree char *begun_name = text_format("new.%s", layer.id);
    autoclose int alone = layers_keep_out_sweeps(world->layers, &world->err);

    assert_true(begun >= 0 && alone >= 0);
    layers_sweep(world->state);
    assert_true(there(world, kept) && there(world, lost) && there(world, bare) && there(world, begun_name));
    close(steal_fd(&alone));
    layers_sweep(world->state);
    assert_true(there(world, kept));
    assert_false(there(world, lost) || there(world, bare) || there(world, begun_name));
    assert_int_equal(unlinkat(world->layers, "../snapshots/kept", 0), 0);
    layers_sweep(world->state);
    assert_false(there(world, kept));
}

/* As who measures it writes that down, though all the time: what is put there comes after everything was seen.
 */
static _Noreturn void write_on(int dir)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not come back to it */
    for (;;)
        close(openat(dir, "late", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void what_is_let_go_while_somebody_writes_there_goes_with_the_next_sweep(void **state)
{
    struct world *world = *state;
    autostrings struct strings all = STRINGS_NONE;
    char lid[ID_LENGTH + 1];

    for (int round = 0; round < 50; round++) {
        make(world, "", "one", lid);

        autoclose int dir = openat(world->layers, lid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        pid_t child = fork();

        if (child == 0)
            write_on(dir);
        while (faccessat(dir, "late", F_OK, 0) < 0)
            continue;
        assert_int_equal(layers_release(world->layers, lid, "snapshot.one", &world->err), 0);
        assert_false(there(world, lid));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    layers_sweep(world->state);
    assert_int_equal(layers_list(world->layers, &all, &world->err), 0);
    assert_int_equal(all.len, 0);
}

static void put(int dir, const char *name, size_t size)
{
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    autofree char *bytes = memory_zero(size);

    assert_true(fd >= 0);
    memset(bytes, 'x', size);
    assert_int_equal(write(fd, bytes, size), size);
    fsync(fd);
}

static void only_what_it_alone_holds_counts(void **state)
{
    struct world *world = *state;
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];
    uint64_t bytes, files;
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

    make(world, "", "one", one);
    make(world, "", "two", two);

    autofree char *first = text_format("%s/u0", one), *second = text_format("%s/u0", two);
    autoclose int a = openat(world->layers, first, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int b = openat(world->layers, second, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    put(a, "own", 100 << 10);
    assert_int_equal(linkat(a, "own", a, "again", 0), 0);
    put(a, "shared", 1 << 20);
    assert_int_equal(linkat(a, "shared", b, "shared", 0), 0);
    assert_int_equal(layers_size(world->layers, one, &bytes, &files, &world->err), 0);
    assert_int_equal(files, 3);
    assert_in_range(bytes, 100 << 10, 200 << 10);
    assert_int_equal(unlinkat(b, "shared", 0), 0);
    assert_int_equal(layers_measure(world->layers, one, &world->err), 0);
    assert_int_equal(layers_read(world->layers, one, &layer, &world->err), 0);
    assert_true(layer.measured);
    assert_in_range(layer.bytes, 1124 << 10, 1300 << 10);
    assert_int_equal(layer.step, 3);
}

static void a_file_says_what_was_written(void **state)
{
    struct layer_info wrote = { .parent = "bbbbbbbbbbbbbbbbbbbb",
                                .sandbox = "aaaaaaaaaaaaaaaaaaaa",
                                .step = 1ULL << 40,
                                .weight = 4,
                                .ids = 0x70010000,
                                .made = { 1700000000, 5000000 } };
    autolayerinfo struct layer_info read = LAYER_INFO_NONE;
    autotext struct text json = TEXT_NONE;
    struct error err;

    (void)state;
    strings_add(&wrote.merged, "cccccccccccccccccccc");
    strings_add(&wrote.merged, "dddddddddddddddddddd");
    wrote.copy = true;
    layerfile_write(&wrote, &json);
    assert_int_equal(layerfile_read(json.data, json.len, "it", &read, &err), 0);
    assert_string_equal(read.parent, wrote.parent);
    assert_string_equal(read.sandbox, wrote.sandbox);
    assert_true(read.step == wrote.step && read.weight == 4 && read.ids == 0x70010000 && !read.measured);
    assert_int_equal(read.made.tv_sec, 1700000000);
    assert_true(read.copy);
    assert_int_equal(read.merged.len, 2);
    strings_free(&wrote.merged);
}

static void a_damaged_file_is_one_clear_error(void **state)
{
    static const char *const damaged[] = {
        "",
        "{",
        "[]",
        "{}",
        "7",
        "{\"made\":\"2026-01-31T12:00:00.000Z\",\"ids\":0,\"merged\":[],\"parent\":\"../../../../"
        "etc\",\"sandbox\":\"aaaaaaaaaaaaaaaaaaaa\",\"step\":1,\"weight\":1}",
        "{\"copy\":1,\"made\":\"2026-01-31T12:00:00.000Z\",\"ids\":0,\"merged\":[],\"parent\":null,\"sandbox\":"
        "\"aaaaaaaaaaaaaaaaaaaa\",\"step\":1,\"weight\":1}",
        "{\"made\":\"2026-01-31T12:00:00.000Z\",\"ids\":0,\"merged\":[1],\"parent\":null,\"sandbox\":"
        "\"aaaaaaaaaaaaaaaaaaaa\",\"step\":1,\"weight\":1}",
        "{\"made\":\"2026-01-31T12:00:00.000Z\",\"ids\":0,\"merged\":[],\"parent\":null,\"sandbox\":"
        "\"aaaaaaaaaaaaaaaaaaaa\",\"step\":-1,\"weight\":1}",
        "{\"made\":\"2026-01-31T12:00:00.000Z\",\"ids\":0,\"merged\":[],\"parent\":null,\"sandbox\":"
        "\"aaaaaaaaaaaaaaaaaaaa\",\"step\":99999999999999999999,\"weight\":1}",
        "{\"made\":\"yesterday\",\"ids\":0,\"merged\":[],\"parent\":null,\"sandbox\":\"aaaaaaaaaaaaaaaaaaaa\","
        "\"step\":1,"
        "\"weight\":1}",
        "{\"made\":\"2026-01-31T12:00:00.000Z\",\"ids\":0,\"merged\":[],\"parent\":null,\"sandbox\":"
        "\"aaaaaaaaaaaaaaaaaaaa\",\"step\":1,\"weight\":1,\"bytes\":5}",
    };
    struct world *world = *state;
    char lid[ID_LENGTH + 1];

    make(world, "", "s", lid);
    autofree char *path = text_format("%s/" LAYER_FILE, lid);

    for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
        autoclose int fd = openat(world->layers, path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

        assert_int_equal(write(fd, damaged[i], strlen(damaged[i])), strlen(damaged[i]));
        if (layers_read(world->layers, lid, &layer, &world->err) == 0)
            fail_msg("%s was read", damaged[i]);
        assert_int_equal(world->err.kind, ERROR_INVALID);
    }
    /* It can still be removed. */
    assert_int_equal(layers_release(world->layers, lid, "snapshot.s", &world->err), 0);
    assert_false(there(world, lid));
}

static void stands_for(struct world *world, const char *lid, const char *newer, const char *older)
{
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

    assert_int_equal(layers_read(world->layers, lid, &layer, &world->err), 0);
    strings_add(&layer.merged, newer);
    strings_add(&layer.merged, older);
    assert_int_equal(layers_write(world->layers, &layer, &world->err), 0);
}

/* `wanted` is the layers by their letters: a is one[0]. */
static void part(struct world *world, char (*all)[ID_LENGTH + 1], char a, char b, const char *wanted)
{
    autostrings struct strings apart = STRINGS_NONE;

    if (lineage_apart(world->layers, a ? all[a - 'a'] : "", all[b - 'a'], &apart, &world->err) < 0)
        fail_msg("%s", world->err.text);
    assert_int_equal(apart.len, strlen(wanted));
    for (size_t i = 0; i < apart.len; i++)
        assert_string_equal(apart.items[i], all[wanted[i] - 'a']);
}

/* a <- b <- c, b and c merged as d, on which e lies; f is another branch on b. */
static void stacks_part_where_their_steps_do(void **state)
{
    struct world *world = *state;
    char all[6][ID_LENGTH + 1];
    autostrings struct strings steps = STRINGS_NONE;

    make(world, "", "a", all[0]);
    make(world, all[0], "b", all[1]);
    make(world, all[1], "c", all[2]);
    make(world, all[0], "d", all[3]);
    stands_for(world, all[3], all[2], all[1]);
    make(world, all[3], "e", all[4]);
    make(world, all[1], "f", all[5]);
    part(world, all, 'a', 'a', "");
    part(world, all, 'a', 'c', "cb");
    part(world, all, 'c', 'e', "e");
    part(world, all, 'b', 'e', "ed");
    part(world, all, 'f', 'c', "fc");
    part(world, all, 'c', 'd', "");
    part(world, all, 0, 'b', "ba");
    assert_int_equal(lineage_steps(world->layers, all[4], &steps, &world->err), 0);
    assert_int_equal(steps.len, 4);
    assert_string_equal(steps.items[1], all[2]);

    assert_int_equal(layers_release(world->layers, all[2], "snapshot.c", &world->err), 0);
    assert_false(there(world, all[2]));
    part(world, all, 'b', 'e', "bed"); /* what it stands for is not known any more, so they part earlier */
    part(world, all, 'a', 'e', "ed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_layer_goes_with_its_last_holder, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_chain_goes_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sweep_takes_what_nobody_needs, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_let_go_while_somebody_writes_there_goes_with_the_next_sweep,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(only_what_it_alone_holds_counts, setup, teardown),
        cmocka_unit_test(a_file_says_what_was_written),
        cmocka_unit_test_setup_teardown(stacks_part_where_their_steps_do, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_one_clear_error, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
