#include "store/copytree.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct outcome {
    struct strings notes;
    struct error err;
    int result;
};

static void outcome_free(struct outcome *outcome)
{
    strings_free(&outcome->notes);
}

#define autooutcome __attribute__((cleanup(outcome_free)))

static void run(const struct unit_scratch *scratch, struct copytree copy, struct outcome *out)
{
    autoclose int from = openat(scratch->dir, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = -1;

    unit_scratch_dir(scratch, "to", 0700);
    to = openat(scratch->dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(from >= 0 && to >= 0);
    copy.from = from;
    copy.to = to;
    *out = (struct outcome){ .result = 0 };
    out->result = copytree_run(&copy, &out->notes, &out->err);
}

static struct stat look(const struct unit_scratch *scratch, const char *name)
{
    struct stat status;

    if (fstatat(scratch->dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        fail_msg("%s: %s", name, strerror(errno));
    return status;
}

static bool is_there(const struct unit_scratch *scratch, const char *name)
{
    return faccessat(scratch->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void modes_times_and_links_are_kept(void **state)
{
    const struct unit_scratch *scratch = *state;
    const struct timespec times[2] = { { 1000, 1 }, { 2000, 999999999 } };
    static const char *const names[] = { "file", "dir", "dir/inner", "link" };
    autooutcome struct outcome outcome;
    char target[16];

    unit_scratch_dir(scratch, "from", 0755);
    unit_scratch_dir(scratch, "from/dir", 0755);
    unit_scratch_file(scratch, "from/file", "content");
    unit_scratch_file(scratch, "from/dir/inner", "");
    assert_int_equal(symlinkat("nowhere", scratch->dir, "from/link"), 0);
    assert_int_equal(fchmodat(scratch->dir, "from/file", 04751, 0), 0);
    assert_int_equal(fchmodat(scratch->dir, "from/dir", 0510, 0), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        autofree char *name = text_format("from/%s", names[i]);

        assert_int_equal(utimensat(scratch->dir, name, times, AT_SYMLINK_NOFOLLOW), 0);
    }

    run(scratch, (struct copytree){ 0 }, &outcome);
    if (outcome.result < 0)
        fail_msg("%s", outcome.err.text);
    assert_int_equal(outcome.notes.len, 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        autofree char *old = text_format("from/%s", names[i]), *new = text_format("to/%s", names[i]);
        struct stat a = look(scratch, old), b = look(scratch, new);

        assert_int_equal(a.st_mode, b.st_mode);
        assert_int_equal(a.st_mtim.tv_sec, b.st_mtim.tv_sec);
        assert_int_equal(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
    }
    assert_int_equal(readlinkat(scratch->dir, "to/link", target, sizeof target), 7);
    assert_int_equal(fchmodat(scratch->dir, "from/dir", 0755, 0), 0); /* for the tear-down */
    assert_int_equal(fchmodat(scratch->dir, "to/dir", 0755, 0), 0);
}

static void names_of_one_file_stay_names_of_one_file(void **state)
{
    const struct unit_scratch *scratch = *state;
    autooutcome struct outcome outcome;

    unit_scratch_dir(scratch, "from", 0755);
    unit_scratch_dir(scratch, "from/d", 0755);
    unit_scratch_file(scratch, "from/a", "one");
    unit_scratch_file(scratch, "from/other", "one");
    assert_int_equal(linkat(scratch->dir, "from/a", scratch->dir, "from/d/b", 0), 0);
    assert_int_equal(linkat(scratch->dir, "from/a", scratch->dir, "from/c", 0), 0);
    run(scratch, (struct copytree){ 0 }, &outcome);
    assert_int_equal(outcome.result, 0);
    assert_int_equal(look(scratch, "to/a").st_nlink, 3);
    assert_int_equal(look(scratch, "to/a").st_ino, look(scratch, "to/d/b").st_ino);
    assert_int_equal(look(scratch, "to/a").st_ino, look(scratch, "to/c").st_ino);
    assert_int_equal(look(scratch, "to/other").st_nlink, 1);
}

/* Data at the beginning, in the middle and nowhere at the end. */
static void holes_stay_holes_and_data_is_the_same(void **state)
{
    enum { SIZE = 32 << 20, MIDDLE = 9 << 20 };
    const struct unit_scratch *scratch = *state;
    autooutcome struct outcome outcome;
    char byte[3];

    unit_scratch_dir(scratch, "from", 0755);
    unit_scratch_file(scratch, "from/holes", "first");
    autoclose int file = openat(scratch->dir, "from/holes", O_RDWR | O_CLOEXEC);
    assert_int_equal(ftruncate(file, SIZE), 0);
    assert_int_equal(pwrite(file, "mid", 3, MIDDLE), 3);
    run(scratch, (struct copytree){ 0 }, &outcome);
    assert_int_equal(outcome.result, 0);

    struct stat copy = look(scratch, "to/holes");
    autoclose int again = openat(scratch->dir, "to/holes", O_RDONLY | O_CLOEXEC);

    assert_int_equal(copy.st_size, SIZE);
    assert_true(copy.st_blocks * 512 < SIZE / 4);
    assert_int_equal(pread(again, byte, 3, MIDDLE), 3);
    assert_memory_equal(byte, "mid", 3);
    assert_int_equal(pread(again, byte, 3, 0), 3);
    assert_memory_equal(byte, "fir", 3);
}

static void what_is_no_file_or_not_wanted_is_left_out(void **state)
{
    const struct unit_scratch *scratch = *state;
    autostrings struct strings leave = STRINGS_NONE;
    autooutcome struct outcome outcome;

    unit_scratch_dir(scratch, "from", 0755);
    unit_scratch_dir(scratch, "from/d", 0755);
    unit_scratch_dir(scratch, "from/hidden", 0755);
    unit_scratch_file(scratch, "from/hidden/x", "");
    unit_scratch_file(scratch, "from/d/secret", "");
    unit_scratch_file(scratch, "from/d/secretive", "");
    assert_int_equal(mkfifoat(scratch->dir, "from/d/fifo", 0600), 0);
    strings_add(&leave, "d/secret");
    strings_add(&leave, "hidden");
    run(scratch, (struct copytree){ .leave = &leave }, &outcome);
    assert_int_equal(outcome.result, 0);
    assert_false(is_there(scratch, "to/hidden"));
    assert_false(is_there(scratch, "to/d/secret"));
    assert_true(is_there(scratch, "to/d/secretive"));
    assert_false(is_there(scratch, "to/d/fifo"));
    assert_int_equal(outcome.notes.len, 1);
    assert_contains(outcome.notes.items[0], "d/fifo");
}

static void one_name_can_be_copied_alone(void **state)
{
    const struct unit_scratch *scratch = *state;
    autooutcome struct outcome outcome;

    unit_scratch_dir(scratch, "from", 0755);
    unit_scratch_dir(scratch, "from/d", 0755);
    unit_scratch_file(scratch, "from/d/x", "x");
    unit_scratch_file(scratch, "from/e", "e");
    run(scratch, (struct copytree){ .only = "d" }, &outcome);
    assert_int_equal(outcome.result, 0);
    assert_true(is_there(scratch, "to/d/x"));
    assert_false(is_there(scratch, "to/e"));
}

static bool stop_at_third(void *owner, uint64_t files, uint64_t bytes)
{
    int *asked = owner;

    (void)files, (void)bytes;
    return ++*asked < 3;
}

static void whoever_is_asked_can_stop_it(void **state)
{
    const struct unit_scratch *scratch = *state;
    autooutcome struct outcome outcome;
    int asked = 0;

    unit_scratch_dir(scratch, "from", 0755);
    for (int i = 0; i < 8; i++) {
        autofree char *name = text_format("from/f%d", i);

        unit_scratch_file(scratch, name, "x");
    }
    run(scratch, (struct copytree){ .go_on = stop_at_third, .owner = &asked }, &outcome);
    assert_int_equal(outcome.result, -1);
    assert_int_equal(outcome.err.sys_errno, EINTR);
    assert_int_equal(asked, 3);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(modes_times_and_links_are_kept),
        ON_SCRATCH(names_of_one_file_stay_names_of_one_file),
        ON_SCRATCH(holes_stay_holes_and_data_is_the_same),
        ON_SCRATCH(what_is_no_file_or_not_wanted_is_left_out),
        ON_SCRATCH(one_name_can_be_copied_alone),
        ON_SCRATCH(whoever_is_asked_can_stop_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
