#include "git/refs.h"

#include "base/error.h"
#include "base/own.h"
#include "git/merged.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"
#define THREE "3333333333333333333333333333333333333333"

static void names_are_those_that_git_allows(void **state)
{
    static const char *const good[] = { "refs/heads/main", "refs/heads/a/b-c_d.e", "refs/heads/@",
                                        "refs/heads/-x",   "refs/heads/$(x)",      "refs/heads/\303\274" };
    static const char *const bad[] = { "",
                                       "main",
                                       "refs/",
                                       "refs/heads/",
                                       "refs/heads//a",
                                       "refs/heads/../a",
                                       "refs/heads/.a",
                                       "refs/heads/a.",
                                       "refs/heads/a..b",
                                       "refs/heads/a.lock",
                                       "refs/heads/a.lock/b",
                                       "refs/heads/a b",
                                       "refs/heads/a\nb",
                                       "refs/heads/a\x7f",
                                       "refs/heads/a~1",
                                       "refs/heads/a^",
                                       "refs/heads/a:b",
                                       "refs/heads/a?",
                                       "refs/heads/a*",
                                       "refs/heads/a[b",
                                       "refs/heads/a\\b",
                                       "refs/heads/a@{b" };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!ref_is_name(good[i]))
            fail_msg("'%s' is a name", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (ref_is_name(bad[i]))
            fail_msg("'%s' is no name", bad[i]);
}

static void a_plain_name_does_nothing_in_a_shell(void **state)
{
    autofree char *plain = ref_plain_name("a/b$(x) \303\274;%");

    (void)state;
    assert_string_equal(plain, "a/b%24%28x%29%20%C3%BC%3B%25");
}

static void a_reference_is_a_hash_and_nothing_else(void **state)
{
    char hash[HASH_MAX + 1];

    (void)state;
    assert_true(ref_parse(ONE "\n", 41, 40, hash));
    assert_string_equal(hash, ONE);
    assert_true(ref_parse(ONE, 40, 40, hash));
    assert_false(ref_parse(ONE "x", 41, 40, hash));
    assert_false(ref_parse(ONE "\0", 41, 40, hash));
    assert_false(ref_parse("ref: refs/heads/main\n", 21, 40, hash));
    assert_false(ref_parse("0000000000000000000000000000000000000000\n", 41, 40, hash));
    assert_false(ref_parse(ONE, 39, 40, hash));
    assert_false(ref_parse(ONE "\n", 41, 64, hash));
}

static const char *hash_of(const struct refs *refs, const char *name)
{
    const struct ref *ref = refs_find(refs, name);

    return ref ? ref->hash : "none";
}

/* An upper and a base as overlayfs leaves them. */
static void make_sides(const struct unit_scratch *scratch, struct merged *out)
{
    unit_scratch_dir(scratch, "base", 0755);
    unit_scratch_dir(scratch, "base/refs", 0755);
    unit_scratch_dir(scratch, "base/refs/heads", 0755);
    unit_scratch_dir(scratch, "upper", 0755);
    unit_scratch_dir(scratch, "upper/refs", 0755);
    unit_scratch_dir(scratch, "upper/refs/heads", 0755);
    unit_scratch_file(scratch, "base/refs/heads/same", ONE "\n");
    unit_scratch_file(scratch, "base/refs/heads/moved", ONE "\n");
    unit_scratch_file(scratch, "base/packed-refs", TWO " refs/heads/packed\n" TWO " refs/heads/moved\n");
    unit_scratch_file(scratch, "upper/refs/heads/moved", THREE "\n");
    *out = (struct merged){ openat(scratch->dir, "upper", O_RDONLY | O_DIRECTORY),
                            openat(scratch->dir, "base", O_RDONLY | O_DIRECTORY), CHANGES_MARKS_USER };
}

static void what_is_loose_and_above_counts(void **state)
{
    automerged struct merged dir = MERGED_NONE;
    autorefs struct refs refs = REFS_NONE;
    struct error err;

    make_sides(*state, &dir);
    assert_int_equal(refs_read(&dir, "refs/heads", 40, &refs, &err), 0);
    assert_int_equal(refs.len, 3);
    assert_int_equal(refs.odd, 0);
    assert_string_equal(hash_of(&refs, "refs/heads/same"), ONE);
    assert_string_equal(hash_of(&refs, "refs/heads/moved"), THREE);
    assert_string_equal(hash_of(&refs, "refs/heads/packed"), TWO);
}

static void what_is_no_reference_is_counted_and_not_followed(void **state)
{
    const struct unit_scratch *scratch = *state;
    automerged struct merged dir = MERGED_NONE;
    autorefs struct refs refs = REFS_NONE;
    struct error err;

    make_sides(scratch, &dir);
    assert_int_equal(
        symlink("../../../base/refs/heads/same", unit_scratch_path(scratch, "upper/refs/heads/link")), 0);
    assert_int_equal(symlink("/etc", unit_scratch_path(scratch, "upper/refs/heads/dir")), 0);
    assert_int_equal(mkfifo(unit_scratch_path(scratch, "upper/refs/heads/fifo"), 0600), 0);
    unit_scratch_file(scratch, "upper/refs/heads/words", "words\n");
    unit_scratch_file(scratch, "upper/refs/heads/symbolic", "ref: refs/heads/same\n");
    unit_scratch_file(scratch, "upper/refs/heads/a..b", ONE "\n");
    unit_scratch_file(scratch, "upper/refs/heads/left.lock", ONE "\n");
    assert_int_equal(refs_read(&dir, "refs/heads", 40, &refs, &err), 0);
    assert_int_equal(refs.len, 3);
    assert_int_equal(refs.odd, 5);
}

static void a_name_in_the_way_is_noticed(void **state)
{
    struct ref items[] = { { .name = (char[]){ "refs/heads/a/b" }, .hash = ONE } };
    struct refs refs = { .items = items, .len = 1 };

    (void)state;
    assert_non_null(refs_in_way(&refs, "refs/heads/a/b"));
    assert_non_null(refs_in_way(&refs, "refs/heads/a"));
    assert_non_null(refs_in_way(&refs, "refs/heads/a/b/c"));
    assert_null(refs_in_way(&refs, "refs/heads/a/c"));
    assert_null(refs_in_way(&refs, "refs/heads/a/bc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_that_git_allows),
        cmocka_unit_test(a_plain_name_does_nothing_in_a_shell),
        cmocka_unit_test(a_reference_is_a_hash_and_nothing_else),
        cmocka_unit_test_setup_teardown(what_is_loose_and_above_counts, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_reference_is_counted_and_not_followed, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test(a_name_in_the_way_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
