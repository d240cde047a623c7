#include "prove/rows.h"

#include "base/memory.h"
#include "base/text.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdlib.h>

static size_t row_of(const char *attempt)
{
    for (size_t i = 0; i < rows_len; i++)
        if (rows[i].attempt && strcmp(rows[i].attempt, attempt) == 0)
            return i;
    fail_msg("there is no row for %s", attempt);
    return 0;
}

static char seen[] = "seen", came_out[] = "it came out";

/* What the arms show of one attempt, and what must come of it. */
static const struct {
    struct showing inside, outside;
    enum held held;
    const char *why;
} cases[] = {
    { { true, EPERM, NULL }, { true, 0, seen }, HELD, NULL },
    /* The host's eyes count, not the prober's word. */
    { { true, 0, NULL }, { true, 0, seen }, HELD, NULL },
    { { true, EPERM, came_out }, { true, 0, seen }, HELD_NOT, "it came out" },
    { { false, 0, NULL }, { true, 0, seen }, HELD_NOT, "not tried" },
    /* Seen inside although it does not work outside: still a gap. */
    { { true, 0, came_out }, { true, EPERM, NULL }, HELD_NOT, "it came out" },
    { { true, EPERM, NULL }, { true, ENOSYS, NULL }, HELD_UNKNOWN, "Function not implemented" },
    { { true, EPERM, NULL }, { true, 0, NULL }, HELD_UNKNOWN, "no effect" },
    { { true, EPERM, NULL }, { false, 0, NULL }, HELD_UNKNOWN, "could not be tried" },
    { { true, ENODATA, NULL }, { true, 0, seen }, HELD_UNKNOWN, "canary" },
};

static void a_row_is_held_only_if_the_attempt_works_outside_and_nothing_is_seen_inside(void **state)
{
    struct showing *inside = memory_zero(rows_len * sizeof *inside);
    struct showing *outside = memory_zero(rows_len * sizeof *outside);
    size_t row = row_of("read-file");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verdict *verdicts = memory_zero(rows_len * sizeof *verdicts);

        inside[row] = cases[i].inside;
        outside[row] = cases[i].outside;
        rows_judge(inside, outside, verdicts);
        assert_int_equal(verdicts[row].held, cases[i].held);
        if (cases[i].why)
            assert_contains(verdicts[row].why, cases[i].why);
        else
            assert_null(verdicts[row].why);
        verdicts_free(verdicts);
        free(verdicts);
    }
    free(inside);
    free(outside);
}

static void every_attempt_has_one_row_and_every_row_a_wall(void **state)
{
    (void)state;
    for (size_t i = 0; i < rows_len; i++) {
        assert_true(row_layers(&rows[i], 0) && row_layers(&rows[i], 7));
        assert_false(row_layers(&rows[i], 7) >> LAYER_COUNT);
        if (rows[i].attempt)
            assert_int_equal(row_of(rows[i].attempt), i);
    }
}

static void a_wall_counts_only_where_the_kernel_has_it(void **state)
{
    const unsigned landlock = 1U << LAYER_LANDLOCK;
    const struct row *scoped = &rows[row_of("connect-abstract")], *plain = &rows[row_of("trace-init")];
    const struct row *alone = &rows[row_of("write-root")];

    (void)state;
    assert_true(row_layers(scoped, 6) & landlock);
    assert_false(row_layers(scoped, 5) & landlock);
    assert_true(row_layers(plain, 1) & landlock);
    assert_false(row_layers(plain, 0) & landlock);
    assert_int_equal(row_layers(alone, 0), landlock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_held_only_if_the_attempt_works_outside_and_nothing_is_seen_inside),
        cmocka_unit_test(every_attempt_has_one_row_and_every_row_a_wall),
        cmocka_unit_test(a_wall_counts_only_where_the_kernel_has_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
