#include "explore/tasks.h"

#include "base/error.h"
#include "tests/support/unit.h"

static void lines_are_tasks_and_empty_ones_are_not(void **state)
{
    static const char text[] = "{\"a\":1}\n\n  \t\r\n{\"b\":[1,{\"c\":2}]}";
    autostrings struct strings tasks = STRINGS_NONE;
    struct error err;

    (void)state;
    assert_int_equal(tasks_read(text, strlen(text), "file", &tasks, &err), 0);
    assert_int_equal(tasks.len, 2);
    assert_string_equal(tasks.items[1], "{\"b\":[1,{\"c\":2}]}");
}

static void what_is_no_task_is_told_with_its_line(void **state)
{
    static const struct {
        const char *text, *wanted;
    } rows[] = { { "{}\n[]\n", "line 2" }, { "{}\n{\n", "line 2" }, { "1", "object" },
                 { "\n\n", "no task" },    { "", "no task" },       { "{\"a\":1,\"a\":2}", "line 1" } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autostrings struct strings tasks = STRINGS_NONE;
        struct error err;

        assert_int_equal(tasks_read(rows[i].text, strlen(rows[i].text), "file", &tasks, &err), -1);
        assert_contains(err.text, rows[i].wanted);
        assert_int_equal(tasks.len, 0);
    }
}

static void members_become_variables_if_they_can(void **state)
{
    static const char line[] = "{\"id\":\"x=1\",\"n\":2.5,\"ok\":true,\"no\":null,\"list\":[],\"a-b\":1,\"\":1,"
                               "\"json\":\"me\",\"a1_\":\"y\"}";
    static const char *const wanted[] = { "COVE_TASK=7", "COVE_TASK_ID=x=1", "COVE_TASK_N=2.5",
                                          "COVE_TASK_OK=true", "COVE_TASK_A1_=y" };
    autostrings struct strings env = STRINGS_NONE;

    (void)state;
    tasks_environment(7, line, &env);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strings_have(&env, wanted[i]))
            fail_msg("%s is missing", wanted[i]);
    assert_int_equal(env.len, sizeof wanted / sizeof *wanted + 1);
    assert_string_equal(env.items[1] + strlen("COVE_TASK_JSON="), line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_tasks_and_empty_ones_are_not),
        cmocka_unit_test(what_is_no_task_is_told_with_its_line),
        cmocka_unit_test(members_become_variables_if_they_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
