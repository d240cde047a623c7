#include "changes/space.h"

#include "base/error.h"
#include "changes/changes.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <unistd.h>

static void a_file_is_made_before_the_one_it_replaces_goes(void **state)
{
    struct side none = { 0 }, small = { .type = SIDE_FILE, .stored = 10 },
                large = { .type = SIDE_FILE, .size = 999, .stored = 100 };
    struct change items[] = {
        { .path = (char[]){ "a" }, .kind = CHANGE_CHANGED, .old = large, .new = small },
        { .path = (char[]){ "b" }, .kind = CHANGE_ADDED, .old = none, .new = large },
        { .path = (char[]){ "c" }, .kind = CHANGE_RENAMED, .old = large, .new = large },
        { .path = (char[]){ "d" }, .kind = CHANGE_MODE, .old = large, .new = large },
        { .path = (char[]){ "e" }, .kind = CHANGE_REMOVED, .old = large, .new = none },
    };
    struct changes changes = { .items = items, .len = ARRAY_LEN(items) };
    static const struct {
        bool taken[ARRAY_LEN(items)];
        uint64_t wanted;
    } cases[] = {
        { { false, false, false, false, false }, 0 }, { { true, false, false, false, false }, 10 },
        { { true, true, false, false, false }, 10 },  { { false, true, false, false, false }, 100 },
        { { false, true, true, false, false }, 200 }, { { false, false, true, true, true }, 100 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(space_of_changes(&changes, cases[i].taken), cases[i].wanted);
}

static void more_than_there_is_cannot_be_counted_away(void **state)
{
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error err = { 0 };

    (void)state;
    assert_true(space_sum(UINT64_MAX - 1, 2) == UINT64_MAX);
    assert_int_equal(space_check(root, 0, &err), 0);
    assert_int_equal(space_check(root, UINT64_MAX, &err), -1);
    assert_int_equal(err.kind, ERROR_REFUSED);
    close(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_made_before_the_one_it_replaces_goes),
        cmocka_unit_test(more_than_there_is_cannot_be_counted_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
