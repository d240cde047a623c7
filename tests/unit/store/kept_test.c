#include "keeper/kept.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct kept sample[] = {
    { .id = "abcdefghijklmnopqrst", .record = { .workspace = (char[]){ "/w" } } },
    { .id = "abcxxxxxxxxxxxxxxxxx", .record = { .name = (char[]){ "fix" }, .workspace = (char[]){ "/v" } } },
    { .id = "bcdefghijklmnopqrstu", .record = { .name = (char[]){ "abcd" }, .workspace = (char[]){ "/w" } } },
    { .id = "fixxxxxxxxxxxxxxxxxx", .state = KEPT_BROKEN },
};
static const struct kept_list list = { .parent = -1, .items = sample, .len = 4 };

static void a_word_names_one_sandbox_by_name_or_by_the_beginning_of_its_id(void **state)
{
    static const struct {
        const char *word;
        size_t want;
    } cases[] = { { "abcdefghijklmnopqrst", 0 },
                  { "abcde", 0 },
                  { "abcx", 1 },
                  { "fix", 1 },
                  { "bcd", 2 },
                  { "abcd", 2 },
                  { "fixx", 3 } };
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_ptr_equal(kept_find(&list, cases[i].word, &err), &sample[cases[i].want]);
}

static void a_word_that_names_none_or_many_is_one_error(void **state)
{
    struct error err;

    (void)state;
    assert_null(kept_find(&list, "zzz", &err));
    assert_int_equal(err.kind, ERROR_MISSING);
    assert_contains(err.text, "there is no sandbox 'zzz'");
    assert_null(kept_find(&list, "abcdefghijklmnopqrstu", &err));
    assert_int_equal(err.kind, ERROR_MISSING);

    assert_null(kept_find(&list, "abc", &err));
    assert_int_equal(err.kind, ERROR_INVALID);
    assert_contains(err.text, "beginning of 2 ids: abcdefghijkl, abcxxxxxxxxx (fix)");

    assert_null(kept_find(&list, "bc", &err)); /* unique, and too short all the same */
    assert_contains(err.text, "3 characters");
    assert_null(kept_find(&list, "", &err));
    assert_contains(err.text, "3 characters");
}

static void the_candidates_are_bounded(void **state)
{
    static struct kept many[100];
    struct kept_list long_list = { .parent = -1, .items = many, .len = 100 };
    struct error err;

    (void)state;
    for (size_t i = 0; i < 100; i++)
        snprintf(many[i].id, sizeof many[i].id, "aaaaaaaaaa%010zu", i);
    assert_null(kept_find(&long_list, "aaa", &err));
    assert_contains(err.text, "beginning of 100 ids");
    assert_contains(err.text, "and others");
}

static void the_newest_of_a_work_tree_is_the_first_of_the_list(void **state)
{
    struct stat other = { .st_dev = 1, .st_ino = 2 }, moved = { .st_dev = 1, .st_ino = 3 };

    (void)state;
    assert_ptr_equal(kept_newest_of(&list, "/w", &other), &sample[0]);
    assert_ptr_equal(kept_newest_of(&list, "/v", &other), &sample[1]);
    assert_null(kept_newest_of(&list, "/w/d", &other));
    sample[1].record.workspace_device = moved.st_dev;
    sample[1].record.workspace_inode = moved.st_ino;
    assert_ptr_equal(kept_newest_of(&list, "/w", &moved), &sample[1]);
    assert_ptr_equal(kept_newest_of(&list, "/elsewhere", &moved), &sample[1]);
}

/* --- a state directory --- */

static struct record a_record(const char *id, time_t created, enum record_state record_state)
{
    struct record record = RECORD_NONE;

    record.id = text_copy(id);
    record.created = (struct timespec){ created, 0 };
    record.state = record_state;
    record.workspace = text_copy("/w");
    record.mode = text_copy("cow");
    record.cwd = text_copy("/w");
    record.image = text_copy("host");
    record.spec_hash = text_copy("");
    return record;
}

static void make(const struct unit_scratch *scratch, const char *id, time_t created,
                 enum record_state record_state)
{
    autofree char *name = text_format("state/sandboxes/%s", id);
    autorecord struct record record = a_record(id, created, record_state);
    struct error err;

    unit_scratch_dir(scratch, name, 0700);
    int dir = openat(scratch->dir, name, O_RDONLY | O_DIRECTORY);
    assert_int_equal(record_write(dir, &record, &err), 0);
    close(dir);
}

static void make_state(const struct unit_scratch *scratch)
{
    unit_scratch_dir(scratch, "state", 0700);
    unit_scratch_dir(scratch, "state/sandboxes", 0700);
    make(scratch, "aaaaaaaaaaaaaaaaaaaa", 1000, RECORD_STOPPED);
    make(scratch, "bbbbbbbbbbbbbbbbbbbb", 3000, RECORD_RUNNING); /* nobody holds its lock */
    make(scratch, "cccccccccccccccccccc", 2000, RECORD_RUNNING);
    unit_scratch_dir(scratch, "state/sandboxes/dddddddddddddddddddd", 0700); /* without a record */
    unit_scratch_dir(scratch, "state/sandboxes/eeeeeeeeeeeeeeeeeeee", 0700);
    unit_scratch_file(scratch, "state/sandboxes/eeeeeeeeeeeeeeeeeeee/record.json", "{");
}

static void sandboxes_are_listed_newest_first_with_the_state_that_holds(void **state)
{
    struct unit_scratch *scratch = *state;
    autokept struct kept_list found = KEPT_LIST_NONE;
    struct error err;

    make_state(scratch);
    int held = openat(scratch->dir, "state/sandboxes/cccccccccccccccccccc", O_RDONLY | O_DIRECTORY);

    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(kept_read(unit_scratch_path(scratch, "state"), &found, &err), 0);
    assert_int_equal(found.len, 4);
    assert_int_equal(found.items[0].id[0], 'b');
    assert_int_equal(found.items[0].state, KEPT_KILLED);
    assert_int_equal(found.items[1].id[0], 'c');
    assert_int_equal(found.items[1].state, KEPT_RUNNING);
    assert_int_equal(found.items[2].state, KEPT_STOPPED);
    assert_int_equal(found.items[3].state, KEPT_BROKEN);
    assert_contains(found.items[3].problem.text, "record of eeeeeeeeeeee");
    assert_int_equal(kept_remove(&found, &found.items[1], &err), -1);
    assert_int_equal(err.kind, ERROR_REFUSED);
    assert_contains(err.text, "is running");
    close(held);
}

static void a_sandbox_is_removed_whatever_its_record_says(void **state)
{
    struct unit_scratch *scratch = *state;
    autokept struct kept_list found = KEPT_LIST_NONE, after = KEPT_LIST_NONE;
    struct error err;

    make_state(scratch);
    assert_int_equal(kept_read(unit_scratch_path(scratch, "state"), &found, &err), 0);
    for (size_t i = 0; i < found.len; i++)
        assert_int_equal(kept_remove(&found, &found.items[i], &err), 0);
    assert_int_equal(kept_read(unit_scratch_path(scratch, "state"), &after, &err), 0);
    assert_int_equal(after.len, 0);
    assert_int_equal(faccessat(scratch->dir, "state/sandboxes/eeeeeeeeeeeeeeeeeeee", F_OK, 0), -1);
    assert_int_equal(faccessat(scratch->dir, "state/sandboxes/dddddddddddddddddddd", F_OK, 0), 0);
}

static void without_a_state_directory_there_are_none(void **state)
{
    struct unit_scratch *scratch = *state;
    autokept struct kept_list found = KEPT_LIST_NONE;
    struct error err;

    assert_int_equal(kept_read(unit_scratch_path(scratch, "state"), &found, &err), 0);
    assert_int_equal(found.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_names_one_sandbox_by_name_or_by_the_beginning_of_its_id),
        cmocka_unit_test(a_word_that_names_none_or_many_is_one_error),
        cmocka_unit_test(the_candidates_are_bounded),
        cmocka_unit_test(the_newest_of_a_work_tree_is_the_first_of_the_list),
        cmocka_unit_test_setup_teardown(sandboxes_are_listed_newest_first_with_the_state_that_holds,
                                        unit_scratch_setup, unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(a_sandbox_is_removed_whatever_its_record_says, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(without_a_state_directory_there_are_none, unit_scratch_setup,
                                        unit_scratch_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
