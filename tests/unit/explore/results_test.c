#include "explore/results.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST "{\"digest\":\"d1\",\"explore\":1,\"layer\":\"l1\",\"run\":\"r1\"}\n"

static struct tried whole(uint64_t number)
{
    struct tried tried = { .task = 3,
                           .number = number,
                           .id = text_copy("abc"),
                           .reason = text_copy("timed-out"),
                           .exit_code = 124,
                           .attempts = 2,
                           .wall_us = 5,
                           .peak_kib = 6,
                           .score = text_copy("-0.5"),
                           .score_by = text_copy("number"),
                           .score_exit = 7,
                           .files = 8,
                           .added = 9,
                           .removed = 10,
                           .error = text_copy("\"quoted\" \\x1b") };

    strings_add(&tried.tampered, "tests/a b");
    strings_add(&tried.output, "");
    strings_add(&tried.output, "\xc3\xbc last");
    strings_add(&tried.score_output, "1");
    return tried;
}

static void a_line_comes_back_as_it_was(void **state)
{
    autotried struct tried tried = whole(1), again = TRIED_NONE;
    autotext struct text json = TEXT_NONE, json_again = TEXT_NONE;
    struct error err;

    (void)state;
    tried_json(&tried, &json);
    assert_int_equal(tried_read(json.data, json.len, "line", &again, &err), 0);
    tried_json(&again, &json_again);
    assert_string_equal(json.data, json_again.data);
    assert_string_equal(again.score, "-0.5");
    assert_int_equal(again.output.len, 2);
}

static void the_worst_line_has_room(void **state)
{
    autotried struct tried tried = whole(1), again = TRIED_NONE;
    autotext struct text json = TEXT_NONE, bytes = TEXT_NONE, shown = TEXT_NONE;
    struct error err;

    (void)state;
    for (size_t i = 0; i < TRIED_TAIL_LINE; i++)
        text_add(&bytes, "\x01");
    text_add_inert(&shown, bytes.data);
    for (size_t i = 0; i < TRIED_TAIL; i++) {
        strings_add(&tried.output, shown.data);
        strings_add(&tried.score_output, shown.data);
    }
    for (size_t i = 0; i < TRIED_PATHS; i++)
        strings_add(&tried.tampered, shown.data);
    tried_json(&tried, &json);
    assert_true(json.len < TRIED_LINE_MAX);
    assert_int_equal(tried_read(json.data, json.len, "line", &again, &err), 0);
}

static void parse(const char *text, int wanted, struct results *out, const char *why)
{
    struct error err = { 0 };

    assert_int_equal(results_parse(text, strlen(text), "file", out, &err), wanted);
    if (why)
        assert_contains(err.text, why);
}

static void a_half_line_at_the_end_is_left_out_and_one_in_the_middle_is_not(void **state)
{
    autoresults struct results results = RESULTS_NONE, none = RESULTS_NONE, bad = RESULTS_NONE;
    static const char text[] = FIRST "{\"reason\":\"exited\",\"try\":1}\n{\"reason\":\"exi";

    (void)state;
    parse(text, 0, &results, NULL);
    assert_int_equal(results.len, 1);
    assert_int_equal(results.whole, strlen(text) - strlen("{\"reason\":\"exi"));
    parse("{\"digest\":\"d", 0, &none, NULL);
    assert_null(none.about.run);
    assert_int_equal(none.whole, 0);
    parse(FIRST "{\"reason\":\"exi\n{\"reason\":\"exited\",\"try\":1}\n", -1, &bad, "line 2");
    assert_int_equal(bad.len, 0);
}

static void of_a_try_that_is_there_twice_the_first_counts(void **state)
{
    autoresults struct results results = RESULTS_NONE;

    (void)state;
    parse(
        FIRST
        "{\"reason\":\"a\",\"try\":1}\n{\"reason\":\"b\",\"try\":1}\n{\"reason\":\"c\",\"task\":1,\"try\":1}\n",
        0, &results, NULL);
    assert_int_equal(results.len, 2);
    assert_string_equal(results.items[0].reason, "a");
    assert_true(results_have(&results, 1, 1) && results_have(&results, 0, 1) && !results_have(&results, 0, 2));
}

static void what_is_no_file_of_results_is_refused(void **state)
{
    static const char *const files[] = {
        "\n",
        "[]\n",
        "{}\n",
        "{\"digest\":\"d\",\"explore\":2,\"layer\":\"l\",\"run\":\"r\"}\n",
        "{\"digest\":\"d\",\"explore\":1,\"layer\":\"../l\",\"run\":\"r\"}\n",
        "{\"digest\":\"d\",\"explore\":1,\"layer\":\"l\",\"run\":\"\"}\n",
        FIRST "{}\n",
        FIRST "{\"reason\":\"a\",\"try\":0}\n",
        FIRST "{\"reason\":\"a\",\"try\":-1}\n",
        FIRST "{\"reason\":\"a\",\"try\":1,\"score\":\"x\"}\n",
        FIRST "{\"reason\":\"a\",\"try\":1,\"output\":[1]}\n",
        FIRST "{\"reason\":\"a\",\"try\":1,\"files\":1.5}\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        autoresults struct results results = RESULTS_NONE;
        struct error err;

        if (results_parse(files[i], strlen(files[i]), "file", &results, &err) == 0)
            fail_msg("%s", files[i]);
    }
}

static void text_of_somebody_else_is_made_inert(void **state)
{
    autoresults struct results results = RESULTS_NONE;

    (void)state;
    parse(FIRST "{\"error\":\"\\u001b[2J\",\"output\":[\"\\n\"],\"reason\":\"a\",\"try\":1}\n", 0, &results,
          NULL);
    assert_string_equal(results.items[0].error, "\\x1b[2J");
    assert_string_equal(results.items[0].output.items[0], "\\x0a");
}

static int open_it(const struct unit_scratch *scratch, struct results *out, struct error *err)
{
    autofree char *path = text_format("%s/results", scratch->path);

    return results_open(path, out, err);
}

static void what_was_added_is_there_for_the_next(void **state)
{
    const struct unit_scratch *scratch = *state;
    autoresults struct results first = RESULTS_NONE, second = RESULTS_NONE;
    struct results_about about = { (char[]){ "run" }, (char[]){ "layer" }, (char[]){ "digest" } };
    autotried struct tried one = whole(1), two = whole(2);
    struct error err;
    int fd = open_it(scratch, &first, &err);

    assert_true(fd >= 0 && !first.about.run);
    assert_int_equal(results_begin(fd, &about, &err), 0);
    assert_int_equal(results_add(fd, &one, &err), 0);
    assert_int_equal(write(fd, "{\"tr", 4), 4);
    close(fd);

    fd = open_it(scratch, &second, &err);
    assert_int_equal(second.len, 1);
    assert_string_equal(second.about.run, "run");
    assert_int_equal(results_add(fd, &two, &err), 0);
    close(fd);
    results_free(&second);
    fd = open_it(scratch, &second, &err);
    assert_int_equal(second.len, 2);
    close(fd);
}

static void somebody_else_is_refused_as_long_as_it_is_open(void **state)
{
    const struct unit_scratch *scratch = *state;
    autoresults struct results results = RESULTS_NONE;
    struct error err;
    autoclose int fd = open_it(scratch, &results, &err);
    int status = 0;

    assert_true(fd >= 0);
    if (fork() == 0) {
        struct results others = RESULTS_NONE;

        _exit(open_it(scratch, &others, &err) < 0 && err.kind == ERROR_REFUSED ? 42 : 1);
    }
    assert_true(wait(&status) > 0);
    assert_int_equal(WEXITSTATUS(status), 42);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_comes_back_as_it_was),
        cmocka_unit_test(the_worst_line_has_room),
        cmocka_unit_test(a_half_line_at_the_end_is_left_out_and_one_in_the_middle_is_not),
        cmocka_unit_test(of_a_try_that_is_there_twice_the_first_counts),
        cmocka_unit_test(what_is_no_file_of_results_is_refused),
        cmocka_unit_test(text_of_somebody_else_is_made_inert),
        WITH_SCRATCH(what_was_added_is_there_for_the_next),
        WITH_SCRATCH(somebody_else_is_refused_as_long_as_it_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
