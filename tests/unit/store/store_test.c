#include "store/store.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "store/authorities.h"
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

static bool put_a_layer(const void *owner, int dir)
{
    (void)owner;
    return mkdirat(dir, "w0", 0755) == 0;
}

static bool put_half(const void *owner, int dir)
{
    (void)put_a_layer(owner, dir);
    return false;
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
    store_make_spare(own.parent, put_a_layer, NULL);
    unit_scratch_dir(scratch, "state/sandboxes/half", 0700);
    unit_scratch_dir(scratch, "state/sandboxes/half/w0", 0700);
    unit_scratch_file(scratch, "state/sandboxes/half/record.json", "");
    store_sweep(&own, &unfinished);
    assert_int_equal(unfinished.len, 1);
    assert_string_equal(unfinished.items[0], "half");
    assert_true(there(scratch, "state/sandboxes/half/w0"));
    assert_false(there(scratch, "state/sandboxes/dead"));
    assert_true(there(scratch, "state/sandboxes/kept/u0"));
    assert_true(there(scratch, "state/spare/w0"));
    assert_int_equal(faccessat(held.parent, held.id, F_OK, 0), 0);
    assert_int_equal(faccessat(own.parent, own.id, F_OK, 0), 0);
    let_go(&own);
    let_go(&held);
}

static const struct sandbox_dir *sweeper;

/* As whoever ends another sandbox at that moment. */
static bool furnish_while_others_sweep(const void *owner, int dir)
{
    autostrings struct strings unfinished = STRINGS_NONE;
    struct error err;

    (void)owner;
    assert_int_equal(store_write_file(dir, "first", "x", 1, &err), 0);
    store_sweep(sweeper, &unfinished);
    store_make_spare(sweeper->parent, NULL, NULL);
    assert_int_equal(store_write_file(dir, "last", "x", 1, &err), 0);
    return true;
}

static void a_spare_is_whole_whoever_sweeps_meanwhile(void **state)
{
    struct unit_scratch *scratch = *state;
    struct sandbox_dir own, next;
    struct error err;

    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &own, &err), 0);
    sweeper = &own;
    store_make_spare(own.parent, furnish_while_others_sweep, NULL);
    assert_true(there(scratch, "state/spare/first") && there(scratch, "state/spare/last"));
    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &next, &err), 0);
    assert_int_equal(faccessat(next.fd, "last", F_OK, 0), 0);
    /* What somebody began who died is cleared away by the next, and made by the one after. */
    unit_scratch_dir(scratch, "state/spare.new", 0700);
    unit_scratch_dir(scratch, "state/spare.new/half", 0700);
    store_make_spare(own.parent, put_a_layer, NULL);
    assert_false(there(scratch, "state/spare.new") || there(scratch, "state/spare"));
    store_make_spare(own.parent, put_half, NULL);
    assert_false(there(scratch, "state/spare"));
    store_make_spare(own.parent, put_a_layer, NULL);
    assert_false(there(scratch, "state/spare.new") || there(scratch, "state/spare"));
    store_make_spare(own.parent, put_a_layer, NULL);
    assert_true(there(scratch, "state/spare/w0"));
    assert_false(there(scratch, "state/spare/half"));
    let_go(&own);
    let_go(&next);
}

static bool is_in(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void authorities_are_taken_once_and_not_hoarded(void **state)
{
    struct unit_scratch *scratch = *state;
    struct sandbox_dir own;
    struct error err;

    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &own, &err), 0);
    assert_false(authorities_take(own.fd));
    assert_int_equal(authorities_wanted(own.fd), AUTHORITIES_MAX);
    for (size_t i = 0; i < AUTHORITIES_MAX + 3; i++) {
        assert_int_equal(mkdirat(own.fd, "made", 0700), 0);
        authorities_add(own.fd, "made");
        assert_false(is_in(own.fd, "made"));
    }
    assert_int_equal(authorities_wanted(own.fd), 0);
    for (size_t i = 0; i < AUTHORITIES_MAX; i++) {
        assert_true(authorities_take(own.fd));
        assert_int_equal(unlinkat(own.fd, STORE_TRUST, AT_REMOVEDIR), 0);
    }
    assert_false(authorities_take(own.fd));
    let_go(&own);
}

static void give_back(const struct sandbox_dir *dir, const char *stamp, const char *used)
{
    assert_int_equal(mkdirat(dir->fd, STORE_TRUST, 0700), 0);
    assert_int_equal(mkdirat(dir->fd, STORE_AUTHORITY, 0700), 0);
    assert_int_equal(stamp ? symlinkat("made from", dir->fd, stamp) : 0, 0);
    assert_int_equal(used ? mkdirat(dir->fd, used, 0700) : 0, 0);
    authorities_give(dir->fd);
    assert_false(is_in(dir->fd, STORE_TRUST));
}

static void only_what_nobody_has_used_is_handed_on(void **state)
{
    struct unit_scratch *scratch = *state;
    struct sandbox_dir own;
    struct error err;

    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &own, &err), 0);
    give_back(&own, STORE_TRUSTED, STORE_TRUST_USED);
    assert_false(authorities_take(own.fd));
    give_back(&own, NULL, NULL); /* a half */
    assert_false(authorities_take(own.fd));
    give_back(&own, STORE_TRUSTED, NULL);
    assert_true(authorities_take(own.fd));
    /* Of a sandbox that does not run the key is left, and of one that is removed all is handed on. */
    authorities_tidy(own.fd);
    assert_true(is_in(own.fd, STORE_AUTHORITY));
    assert_false(is_in(own.fd, STORE_TRUSTED));
    authorities_give(own.fd);
    give_back(&own, STORE_TRUSTED, NULL);
    assert_true(authorities_take(own.fd));
    assert_int_equal(store_remove(&own, &err), 0);
    assert_int_equal(store_create(unit_scratch_path(scratch, "state"), &own, &err), 0);
    assert_true(authorities_take(own.fd));
    let_go(&own);
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
        cmocka_unit_test_setup_teardown(a_spare_is_whole_whoever_sweeps_meanwhile, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(authorities_are_taken_once_and_not_hoarded, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(only_what_nobody_has_used_is_handed_on, unit_scratch_setup,
                                        unit_scratch_teardown),
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
