/* What a gateway gets of the package cache that somebody has broken into: the part of the gateway is played
 * here. */

#include "keeper/larder.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/packages.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
    struct unit_scratch *scratch;
    struct larder larder;
    int sandbox;
};

static int setup(void **state)
{
    struct world *world = memory_zero(sizeof *world);

    *state = world;
    if (unit_scratch_setup((void **)&world->scratch) < 0)
        return -1;
    unit_scratch_dir(world->scratch, "sandboxes", 0700);
    unit_scratch_dir(world->scratch, "sandboxes/x", 0700);
    world->sandbox = openat(world->scratch->dir, "sandboxes/x", O_PATH | O_CLOEXEC);
    larder_open(&world->larder, world->sandbox, 1 << 30);
    return world->larder.dir >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *world = *state;

    larder_close(&world->larder);
    close(world->sandbox);
    unit_scratch_teardown((void **)&world->scratch);
    free(world);
    return 0;
}

static struct checksum name_of(const char *content)
{
    struct checksumming *sum = checksumming_new(CHECKSUM_SHA256);
    struct checksum name;

    checksumming_add(sum, content, strlen(content));
    checksumming_end(sum, &name);
    return name;
}

static int want(struct world *world, const char *content, uint64_t tag, enum gateway_given wanted)
{
    struct checksum name = name_of(content);
    uint64_t size;
    int fd;

    assert_int_equal(larder_want(&world->larder, &name, tag, &fd, &size), wanted);
    return fd;
}

/* Everything that was given to the stower is done when it has ended. */
static void settle(struct world *world)
{
    larder_close(&world->larder);
    larder_open(&world->larder, world->sandbox, 1 << 30);
}

static void what_was_written_is_kept_if_it_is_what_was_said(void **state)
{
    struct world *world = *state;
    autoclose int right = want(world, "right", 7, GATEWAY_SPOOL),
                  wrong = want(world, "wrong", 8, GATEWAY_SPOOL),
                  dropped = want(world, "dropped", 9, GATEWAY_SPOOL);

    assert_int_equal(write(right, "right", 5), 5);
    assert_int_equal(write(wrong, "evil!", 5), 5);
    assert_int_equal(write(dropped, "dropped", 7), 7);
    larder_keep(&world->larder, 7);
    larder_keep(&world->larder, 8);
    larder_drop(&world->larder, 9);
    settle(world);
    autoclose int read_again = want(world, "right", 10, GATEWAY_FILE),
                  again = want(world, "wrong", 11, GATEWAY_SPOOL),
                  once_more = want(world, "dropped", 12, GATEWAY_SPOOL);
    char bytes[8] = "";

    assert_int_equal(read(read_again, bytes, sizeof bytes), 5);
    assert_string_equal(bytes, "right");
    assert_true(again >= 0 && once_more >= 0);
}

static void what_is_given_to_write_to_can_only_grow(void **state)
{
    autoclose int fd = want(*state, "x", 7, GATEWAY_SPOOL);
    char byte;

    assert_int_equal(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND), O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "ab", 2), 2);
    assert_true(read(fd, &byte, 1) < 0 && pread(fd, &byte, 1, 0) < 0);
}

static void names_and_tags_of_any_kind_lead_nowhere(void **state)
{
    static const char *const names[] = {
        "", "..", "../sandboxes/x", "/etc/passwd", "sha256-", "sha256-../../x", "sha512-00"
    };
    struct world *world = *state;
    struct checksum name = name_of("x"), zero = CHECKSUM_NONE;
    uint64_t size;
    int fd;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(zero.text, sizeof zero.text, "%s", names[i]);
        assert_int_equal(larder_want(&world->larder, &zero, 7, &fd, &size), GATEWAY_NOTHING);
        assert_int_equal(fd, -1);
        larder_check(&world->larder, &zero);
    }
    assert_int_equal(larder_want(&world->larder, &name, 0, &fd, &size), GATEWAY_NOTHING);
    for (uint64_t tag = 0; tag < 3; tag++) {
        larder_keep(&world->larder, tag);
        larder_drop(&world->larder, tag);
    }
}

static int want_numbered(struct world *world, uint64_t number, enum gateway_given wanted)
{
    autofree char *content = text_format("%d", (int)number);

    return want(world, content, number, wanted);
}

/* Whatever a gateway says of those that it has: one that it keeps goes on to count. */
static void more_than_so_many_at_a_time_are_not_given(void **state)
{
    struct world *world = *state;
    int fds[LARDER_SPOOLS];
    uint64_t tag = 3;

    close(want_numbered(world, 1, GATEWAY_SPOOL));
    larder_keep(&world->larder, 1); /* there is a stower, which is a child of ours, and has none of them */
    for (size_t i = 0; i < LARDER_SPOOLS; i++)
        fds[i] = want_numbered(world, tag++, GATEWAY_SPOOL);
    assert_int_equal(want_numbered(world, tag++, GATEWAY_NOTHING), -1);
    larder_drop(&world->larder, 3);
    larder_keep(&world->larder, 4);
    larder_drop(&world->larder, 3);
    assert_int_equal(want_numbered(world, tag++, GATEWAY_NOTHING), -1);
    for (size_t i = 0; i < LARDER_SPOOLS; i++) {
        close(fds[i]);
        fds[i] = want_numbered(world, tag++, GATEWAY_SPOOL);
        assert_int_equal(want_numbered(world, tag++, GATEWAY_NOTHING), -1);
    }
    for (size_t i = 0; i < LARDER_SPOOLS; i++)
        close(fds[i]);
    larder_drop_all(&world->larder);
    for (size_t i = 0; i < LARDER_SPOOLS; i++)
        assert_false(world->larder.spools[i].given);
}

/* One that was told of is none any more, once it was closed. */
static void what_was_given_back_is_not_held(void **state)
{
    struct world *world = *state;

    for (uint64_t tag = 1; tag <= 3; tag++) {
        close(want_numbered(world, tag, GATEWAY_SPOOL));
        assert_true(larder_waits(&world->larder));
        if (tag % 2)
            larder_drop(&world->larder, tag);
        else
            larder_keep(&world->larder, tag);
        assert_false(larder_waits(&world->larder));
        for (size_t i = 0; i < LARDER_SPOOLS; i++)
            assert_false(world->larder.spools[i].given);
    }
}

static void write_and_keep(struct world *world, const char *content, uint64_t tag, off_t size)
{
    int fd = want(world, content, tag, GATEWAY_SPOOL);

    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_true(size == 0 || ftruncate(fd, size) == 0);
    close(fd);
    larder_keep(&world->larder, tag);
}

/* A gateway that writes faster than anybody hashes: the stower does not move at all here. */
static void what_waits_to_be_hashed_is_bounded(void **state)
{
    enum { FILES = 10, FILE_BYTES = 256 << 20 };
    struct world *world = *state;

    write_and_keep(world, "first", 1, 0);
    assert_int_equal(kill(world->larder.stower.pid, SIGSTOP), 0);
    for (uint64_t i = 2; i < 2 + FILES; i++) {
        autofree char *content = text_format("%d", (int)i);

        write_and_keep(world, content, i, FILE_BYTES);
        assert_true(world->larder.stower.waiting <= STOWER_WAITS_MAX);
    }
    assert_true(world->larder.stower.waiting > STOWER_WAITS_MAX - FILE_BYTES);
    assert_int_equal(kill(world->larder.stower.pid, SIGKILL), 0);
    stower_end(&world->larder.stower);
    write_and_keep(world, "enough", 22, 0); /* there is another one */
    settle(world);
    close(want(world, "enough", 24, GATEWAY_FILE));
}

static size_t files_in(int dir)
{
    struct packages_usage usage;
    struct error err;

    assert_int_equal(packages_trim(dir, UINT64_MAX, true, &usage, &err), 0);
    return usage.files;
}

/* A file of one byte takes a block. */
static void many_small_files_are_no_way_past_the_bound(void **state)
{
    enum { MOST = 1 << 20, BLOCK = 4096, SLACK = 16 };
    struct world *world = *state;

    larder_close(&world->larder);
    larder_open(&world->larder, world->sandbox, MOST);
    for (uint64_t i = 1; i <= 2 * MOST / BLOCK; i++) {
        autofree char *content = text_format("%d", (int)i);
        struct checksum name = name_of(content);
        int fd = want(world, content, i, GATEWAY_SPOOL);

        assert_int_equal(write(fd, content, strlen(content)), strlen(content));
        close(fd);
        larder_keep(&world->larder, i);
        for (int tries = 0; faccessat(world->larder.dir, name.text, F_OK, 0) < 0; tries++) {
            assert_true(tries < 5000);
            usleep(1000);
        }
        assert_true(files_in(world->larder.dir) <= MOST / BLOCK + SLACK);
    }
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_WORLD(what_was_written_is_kept_if_it_is_what_was_said),
        IN_WORLD(what_is_given_to_write_to_can_only_grow),
        IN_WORLD(names_and_tags_of_any_kind_lead_nowhere),
        IN_WORLD(more_than_so_many_at_a_time_are_not_given),
        IN_WORLD(what_was_given_back_is_not_held),
        IN_WORLD(what_waits_to_be_hashed_is_bounded),
        IN_WORLD(many_small_files_are_no_way_past_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
