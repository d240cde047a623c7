#include "prove/statement.h"

#include "base/memory.h"
#include "base/text.h"
#include "limits/limits.h"
#include "tests/support/unit.h"

#include <stdlib.h>

static struct statement made_of(struct verdict *verdicts)
{
    static const struct limits limits = { .items[LIMIT_MEMORY] = { 1 << 20, WAY_SAMPLED } };

    return (struct statement){ .version = "1",
                               .build = "test",
                               .system = "Linux",
                               .release = "6\x1b[2J",
                               .machine = "m",
                               .user = "u",
                               .ids = "own",
                               .policy = "p",
                               .image = "host",
                               .workspace = "cow",
                               .profile = "default",
                               .landlock_abi = 7,
                               .limits = &limits,
                               .verdicts = verdicts };
}

static size_t first_of(unsigned layers)
{
    for (size_t i = 0; i < rows_len; i++)
        if (rows[i].layers == layers)
            return i;
    fail_msg("there is no row with the layers %x", layers);
    return 0;
}

static void every_layer_has_a_row_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LAYER_COUNT; i++)
        (void)first_of(1U << i);
}

static void a_layer_is_broken_by_any_gap_and_shown_only_by_rows_of_its_own(void **state)
{
    struct verdict *verdicts = memory_zero(rows_len * sizeof *verdicts);
    struct statement statement = made_of(verdicts);
    unsigned both = 1U << LAYER_NETWORK | 1U << LAYER_LANDLOCK;

    (void)state;
    assert_int_equal(statement_layer(&statement, LAYER_NETWORK), HELD);
    for (size_t i = 0; i < rows_len; i++)
        if (rows[i].layers == 1U << LAYER_NETWORK)
            verdicts[i].held = HELD_UNKNOWN;
    assert_int_equal(statement_layer(&statement, LAYER_NETWORK), HELD_UNKNOWN);
    verdicts[first_of(both)].held = HELD_NOT;
    assert_int_equal(statement_layer(&statement, LAYER_NETWORK), HELD_NOT);
    assert_int_equal(statement_layer(&statement, LAYER_LANDLOCK), HELD_NOT);
    assert_int_equal(statement_layer(&statement, LAYER_SECCOMP), HELD);
    free(verdicts);
}

static void the_same_is_written_the_same_and_another_result_has_another_hash(void **state)
{
    struct verdict *verdicts = memory_zero(rows_len * sizeof *verdicts);
    struct statement statement = made_of(verdicts);
    char why[] = "why \"so\"";
    autotext struct text first = TEXT_NONE, second = TEXT_NONE, other = TEXT_NONE;

    (void)state;
    statement_json(&statement, &first);
    statement_json(&statement, &second);
    assert_string_equal(text_string(&first), text_string(&second));
    verdicts[0] = (struct verdict){ HELD_NOT, why };
    statement_json(&statement, &other);
    assert_contains(text_string(&other), "\"why\":\"why \\\"so\\\"\"");
    assert_contains(text_string(&other), "\"gap\":1,");
    assert_null(strchr(text_string(&first), '\x1b'));

    const char *one = strstr(text_string(&first), ",\"sha256\":\"");

    assert_non_null(one);
    assert_null(strstr(text_string(&other), one));
    free(verdicts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_has_a_row_of_its_own),
        cmocka_unit_test(a_layer_is_broken_by_any_gap_and_shown_only_by_rows_of_its_own),
        cmocka_unit_test(the_same_is_written_the_same_and_another_result_has_another_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
