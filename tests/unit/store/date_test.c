#include "base/date.h"

#include "base/array.h"
#include "tests/support/unit.h"

static void a_date_comes_back_as_it_was_written(void **state)
{
    static const struct timespec times[] = { { 1700000000, 5000000 }, { 1, 999000000 }, { 253402300799, 0 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct timespec again;
        char text[DATE_SIZE];

        date_write(times[i], text);
        assert_true(date_read(text, &again));
        assert_int_equal(again.tv_sec, times[i].tv_sec);
        assert_int_equal(again.tv_nsec, times[i].tv_nsec);
    }
}

static void what_is_no_date_is_refused(void **state)
{
    static const char *const wrong[] = { "",
                                         "2026",
                                         "2026-01-31 12:00:00.000Z",
                                         "2026-01-31T12:00:00Z",
                                         "2026-02-30T12:00:00.000Z",
                                         "2026-01-31T24:00:00.000Z",
                                         "2026-01-31T12:00:00.000Z ",
                                         " 2026-01-31T12:00:00.000Z",
                                         "2026-01-31T12:00:00.000+01:00",
                                         "2026-1-31T12:00:00.000Z",
                                         "2026-01-31T12:00:00.00Z" };
    struct timespec time;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (date_read(wrong[i], &time))
            fail_msg("'%s' was taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_date_comes_back_as_it_was_written),
        cmocka_unit_test(what_is_no_date_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
