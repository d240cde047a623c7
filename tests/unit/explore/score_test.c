#include "explore/score.h"

#include "base/own.h"
#include "tests/support/unit.h"

#include <float.h>

static void only_a_whole_decimal_number_is_one(void **state)
{
    static const char *const numbers[] = {
        "0", "1", "-1", "+2", "0.5", ".5", "5.", "1e3", "1E-3", " 7\t", "-0"
    };
    static const char *const others[] = { "",      " ",    "-",     ".",      "e3",  "1e",
                                          "1e+",   "0x10", "nan",   "inf",    "1 2", "1,5",
                                          "1.2.3", "--1",  "1e999", "-1e999", "1\n", "score: 1" };
    double score;

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!score_read(numbers[i], &score))
            fail_msg("'%s' is none", numbers[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (score_read(others[i], &score))
            fail_msg("'%s' is one", others[i]);
}

static void what_is_written_is_read_back(void **state)
{
    static const double scores[] = { 0, 1, -2.5, 0.1, 1.0 / 3, 1e300, -DBL_MAX, DBL_MIN, 123456789012345678.0 };
    double again;

    (void)state;
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        autofree char *text = score_write(scores[i]);

        assert_true(score_read(text, &again));
        assert_true(again == scores[i]);
    }
    autofree char *shorter = score_write(0.1);

    assert_string_equal(shorter, "0.1");
    assert_true(score_read("-0", &again));

    autofree char *zero = score_write(again);

    assert_string_equal(zero, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_whole_decimal_number_is_one),
        cmocka_unit_test(what_is_written_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
