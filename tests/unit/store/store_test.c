#include "store/store.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool there(const struct unit_scratch *scratch, const char *name)
{
    return faccessat(scratch->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void let_go(struct sandbox_dir *dir)
{
    close(dir->fd);
    close(dir->parent);
}

static void a_sweep_leaves_what_has_a_record_and_what_is_held(void **state)
{
    struct unit_scratch *scratch = *state;
    autostrings struct strings unfinished = STRINGS_NONE;
    struct sandbox_dir own, held;
    struct error err;

    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &own, &err), 0);
    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &held, &err), 0);
    unit_scratch_dir(scratch, "state/sandboxes/dead", 0700);
    unit_scratch_dir(scratch, "state/sandboxes/kept", 0700);
    unit_scratch_dir(scratch, "state/sandboxes/kept/u0", 0700);
    unit_scratch_file(scratch, "state/sandboxes/kept/record.json", "no matter what");
    store_make_spare(own.parent, NULL);
    unit_scratch_dir(scratch, "state/sandboxes/half", 0700);
    unit_scratch_dir(scratch, "state/sandboxes/half/w0", 0700);
    unit_scratch_file(scratch, "state/sandboxes/half/record.json", "");
    store_sweep(&own, &unfinished);
    assert_int_equal(unfinished.len, 1);
    assert_string_equal(unfinished.items[0], "half");
    assert_true(there(scratch, "state/sandboxes/half/w0"));
    assert_false(there(scratch, "state/sandboxes/dead"));
    assert_true(there(scratch, "state/sandboxes/kept/u0"));
    assert_true(there(scratch, "state/spare/w1"));
    assert_int_equal(faccessat(held.parent, held.id, F_OK, 0), 0);
    assert_int_equal(faccessat(own.parent, own.id, F_OK, 0), 0);
    let_go(&own);
    let_go(&held);
}

static void a_tidy_directory_has_its_layers_and_its_record(void **state)
{
    static const char *const names[] = { "u0", "u1", "u12", "w0", "w0/work", "m3", "ux" };
    struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unit_scratch_dir(scratch, names[i], 0700);
    assert_int_equal(fchmodat(scratch->dir, "w0/work", 0, 0), 0); /* as the kernel leaves it */
    unit_scratch_file(scratch, "record.json", "{}");
    unit_scratch_file(scratch, "record.json.new", "{");
    unit_scratch_file(scratch, "u1/file", "x");
    unit_scratch_dir(scratch, "output", 0700);
    unit_scratch_file(scratch, "output/1.0", "x");
    unit_scratch_file(scratch, "trace.jsonl", "x");
    unit_scratch_file(scratch, "trace.json", "x");
    store_tidy(scratch->dir);
    assert_true(there(scratch, "u0") && there(scratch, "u1/file") && there(scratch, "u12"));
    assert_true(there(scratch, "record.json") && there(scratch, "trace.jsonl") && there(scratch, "output/1.0"));
    assert_false(there(scratch, "trace.json"));
    assert_false(there(scratch, "w0") || there(scratch, "m3") || there(scratch, "ux"));
    assert_false(there(scratch, "record.json.new"));
}

static void a_record_is_replaced_whole_and_private(void **state)
{
    struct unit_scratch *scratch = *state;
    struct stat info;
    struct error err;

    unit_scratch_file(scratch, "record.json.new", "half of an old o"); /* somebody died over it */
    assert_int_equal(store_write_record(scratch->dir, "first", 5, &err), 0);
    assert_int_equal(store_write_record(scratch->dir, "{}", 2, &err), 0);
    assert_int_equal(fstatat(scratch->dir, "record.json", &info, 0), 0);
    assert_int_equal(info.st_size, 2);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_false(there(scratch, "record.json.new"));
}

static void a_lock_is_seen_and_waited_for(void **state)
{
    struct unit_scratch *scratch = *state;
    struct sandbox_dir dir;
    struct error err;

    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &dir, &err), 0);
    autoclose int other = store_enter(dir.parent, dir.id, &err);

    assert_true(other >= 0);
    assert_true(store_is_held(other));
    assert_int_equal(store_hold(other, 20), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    close(dir.fd);
    assert_false(store_is_held(other));
    assert_int_equal(store_hold(other, 20), 0);
    close(dir.parent);
}

static void only_ids_are_listed_and_nothing_is_made(void **state)
{
    struct unit_scratch *scratch = *state;
    autostrings struct strings ids = STRINGS_NONE;
    struct sandbox_dir dir;
    struct error err;

    assert_int_equal(store_open(unit_scratch_path(scratch, "state"), &err), -1);
    assert_int_equal(err.kind, ERROR_MISSING);
    assert_false(there(scratch, "state"));

    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &dir, &err), 0);
    unit_scratch_dir(scratch, "state/sandboxes/short", 0700);
    unit_scratch_dir(scratch, "state/sandboxes/ABCDEFGHIJKLMNOPQRST", 0700);
    assert_int_equal(store_list(dir.parent, &ids, &err), 0);
    assert_int_equal(ids.len, 1);
    assert_string_equal(ids.items[0], dir.id);
    let_go(&dir);

    assert_int_equal(fchmodat(scratch->dir, "state/sandboxes", 0755, 0), 0);
    assert_int_equal(store_open(unit_scratch_path(scratch, "state"), &err), -1);
    assert_int_equal(err.kind, ERROR_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sweep_leaves_what_has_a_record_and_what_is_held, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(a_tidy_directory_has_its_layers_and_its_record, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(a_record_is_replaced_whole_and_private, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(a_lock_is_seen_and_waited_for, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(only_ids_are_listed_and_nothing_is_made, unit_scratch_setup,
                                        unit_scratch_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
