#include "store/layer.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Both halves start equal: a directory `d` with one of its own in it. */
static void make_both(const struct unit_scratch *scratch)
{
    static const char *const names[] = { "base", "base/d", "base/d/e", "upper", "upper/d", "upper/d/e" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unit_scratch_dir(scratch, names[i], 0755);
    unit_scratch_file(scratch, "base/file", "x");
}

static bool untouched(const struct unit_scratch *scratch)
{
    autoclose int upper = openat(scratch->dir, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int base = openat(scratch->dir, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(upper >= 0 && base >= 0);
    return layer_is_untouched(upper, base);
}

static void directories_that_were_copied_up_are_no_change(void **state)
{
    struct unit_scratch *scratch = *state;

    make_both(scratch);
    assert_true(untouched(scratch));
    assert_true(untouched(scratch)); /* and a second look sees the same */
}

static void what_a_command_can_leave_is_a_change(void **state)
{
    struct unit_scratch *scratch = *state;

    make_both(scratch);

    unit_scratch_file(scratch, "upper/d/e/new", "");
    assert_false(untouched(scratch));
    assert_int_equal(unlinkat(scratch->dir, "upper/d/e/new", 0), 0);

    assert_int_equal(symlinkat("/", scratch->dir, "upper/d/link"), 0);
    assert_false(untouched(scratch));
    assert_int_equal(unlinkat(scratch->dir, "upper/d/link", 0), 0);

    /* Nobody is at its other end: whoever opened it would wait. */
    assert_int_equal(mkfifoat(scratch->dir, "upper/fifo", 0600), 0);
    assert_false(untouched(scratch));
    assert_int_equal(unlinkat(scratch->dir, "upper/fifo", 0), 0);

    unit_scratch_dir(scratch, "upper/d/fresh", 0755);
    assert_false(untouched(scratch));
    assert_int_equal(unlinkat(scratch->dir, "upper/d/fresh", AT_REMOVEDIR), 0);

    assert_int_equal(fchmodat(scratch->dir, "upper/d/e", 0700, 0), 0);
    assert_false(untouched(scratch));
    assert_int_equal(fchmodat(scratch->dir, "upper/d/e", 0755, 0), 0);

    unit_scratch_dir(scratch, "upper/file", 0755); /* in the place of a file */
    assert_false(untouched(scratch));
    assert_int_equal(unlinkat(scratch->dir, "upper/file", AT_REMOVEDIR), 0);
    assert_true(untouched(scratch));

    assert_int_equal(mknodat(scratch->dir, "upper/file", S_IFCHR, 0), 0);
    assert_false(untouched(scratch));
}

static void a_directory_made_anew_is_a_change(void **state)
{
    struct unit_scratch *scratch = *state;

    make_both(scratch);
    if (setxattr(unit_scratch_path(scratch, "upper/d"), "user.overlay.opaque", "y", 1, 0) < 0)
        skip();
    assert_false(untouched(scratch));
}

static void a_link_in_the_base_leads_nowhere(void **state)
{
    struct unit_scratch *scratch = *state;

    make_both(scratch);
    unit_scratch_dir(scratch, "upper/linked", 0755);
    assert_int_equal(symlinkat("d", scratch->dir, "base/linked"), 0);
    assert_false(untouched(scratch));
}

/* Deeper than descriptors and stack allow. */
static void make_deep(const struct unit_scratch *scratch, const char *top, unsigned levels)
{
    int at = openat(scratch->dir, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (unsigned i = 0; i < levels; i++) {
        int below;

        assert_int_equal(mkdirat(at, "x", 0755), 0);
        below = openat(at, "x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(below >= 0);
        close(at);
        at = below;
    }
    close(at);
}

static void what_lies_too_deep_is_a_change(void **state)
{
    struct unit_scratch *scratch = *state;

    make_both(scratch);
    make_deep(scratch, "upper", 300);
    make_deep(scratch, "base", 300);
    assert_false(untouched(scratch));
    assert_true(layer_space(scratch->dir) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(directories_that_were_copied_up_are_no_change, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(what_a_command_can_leave_is_a_change, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(a_directory_made_anew_is_a_change, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(a_link_in_the_base_leads_nowhere, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(what_lies_too_deep_is_a_change, unit_scratch_setup,
                                        unit_scratch_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
