#include "explore/admit.h"

#include "tests/support/unit.h"

static void the_first_one_always_may(void **state)
{
    struct admission admission = { .limit_kib = 1000, .first_kib = 10 };

    (void)state;
    assert_true(admit_one_more(&admission, 0, 0));
    assert_false(admit_one_more(&admission, 0, 1));
}

/* free now, running, may */
static void as_many_as_fit_into_what_was_free_and_into_what_is(void **state)
{
    static const struct {
        uint64_t limit, seen, first, now;
        size_t running;
        bool may;
    } rows[] = {
        { 100, 0, 400, 400, 3, true },
        { 100, 0, 400, 400, 4, false },
        { 100, 0, 400, 99, 1, false },
        { 100, 5000, 400, 100, 1, true }, /* what was seen says nothing where there is a limit */
        { 0, 100, 400, 300, 3, true },
        { 0, 100, 400, 300, 4, false },
        { 0, 0, ADMIT_GUESS_KIB * 2, ADMIT_GUESS_KIB * 2, 1, true },
        { 0, 0, ADMIT_GUESS_KIB * 2, ADMIT_GUESS_KIB * 2, 2, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct admission admission = { rows[i].limit, rows[i].seen, rows[i].first };

        if (admit_one_more(&admission, rows[i].now, rows[i].running) != rows[i].may)
            fail_msg("row %zu", i);
    }
}

static void free_memory_is_read(void **state)
{
    (void)state;
    assert_int_equal(admit_read("MemTotal:  9 kB\nMemAvailable:   1234 kB\nX: 1\n"), 1234);
    assert_true(admit_read("MemTotal: 9 kB\n") == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one_always_may),
        cmocka_unit_test(as_many_as_fit_into_what_was_free_and_into_what_is),
        cmocka_unit_test(free_memory_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
