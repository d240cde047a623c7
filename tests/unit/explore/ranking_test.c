#include "explore/ranking.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

/* Of one try; `by` is "number" or "exit", and NULL has no score at all. */
struct row {
    uint64_t task, number;
    const char *score, *by;
    uint64_t lines;
    const char *reason;
};

static struct results of(const struct row *rows, size_t len)
{
    struct results results = RESULTS_NONE;

    for (size_t i = 0; i < len; i++) {
        struct tried tried = { .task = rows[i].task,
                               .number = rows[i].number,
                               .score = rows[i].score ? text_copy(rows[i].score) : NULL,
                               .score_by = rows[i].by ? text_copy(rows[i].by) : NULL,
                               .added = rows[i].lines,
                               .reason = text_copy(rows[i].reason ? rows[i].reason : "exited") };

        assert_true(results_take(&results, &tried));
    }
    return results;
}

static void the_order_is_score_change_number(void **state)
{
    static const struct row rows[] = {
        { 0, 1, "-1", "number", 0, NULL },  { 0, 2, "10", "number", 9, NULL },
        { 0, 3, "9.5", "number", 0, NULL }, { 0, 4, "10", "number", 2, NULL },
        { 0, 5, "10", "number", 2, NULL },  { 0, 6, NULL, NULL, 0, NULL },
        { 0, 7, "0", "exit", 0, NULL },     { 0, 8, "99", "number", 0, "failed" }
    };
    static const uint64_t wanted[] = { 4, 5, 2, 3, 1, 8, 7, 6 };
    autoresults struct results results = of(rows, sizeof rows / sizeof *rows);
    autofree struct ranked *sorted = ranking_sort(&results);

    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(sorted[i].tried->number, wanted[i]);
    assert_int_equal(ranking_best(&results, 0)->number, 4);
    assert_null(ranking_best(&results, 1));
}

static void what_failed_where_only_success_counts_wins_nothing(void **state)
{
    static const struct row rows[] = { { 1, 1, "0", "exit", 0, NULL }, { 2, 1, "0", "number", 0, NULL } };
    autoresults struct results results = of(rows, 2);

    (void)state;
    assert_null(ranking_best(&results, 1));
    assert_int_equal(ranking_best(&results, 2)->task, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_score_change_number),
        cmocka_unit_test(what_failed_where_only_success_counts_wins_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
