#include "changes/tricks.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

#include <stdlib.h>

static void tricks_are_found_in_new_lines(void **state)
{
    static const struct {
        const char *old, *new;
        unsigned want;
    } rows[] = {
        { "", "plain\ttext\n", 0 },
        { "", "windows\r\nlines\r\n", 0 },
        { "", "a\xe2\x80\xaez\n", TRICK_BIDI },
        { "", "a\xe2\x81\xa6z\n", TRICK_BIDI },
        { "", "a\xe2\x80\x8b", TRICK_INVISIBLE },
        { "", "\xef\xbb\xbfwith a mark\n", 0 },
        { "", "late \xef\xbb\xbf mark\n", TRICK_INVISIBLE },
        { "", "ok\rhidden\n", TRICK_RETURN },
        { "", "\x1b[31m\n", TRICK_CONTROL },
        { "",
          "\xc2\x9b"
          "31m\n",
          TRICK_CONTROL },
        { "", "\xff\n", TRICK_ENCODING },
        { "", "\xc3\xa9t\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xd0\xb4\xd0\xb0\n", 0 },
        { "",
          "if (\xd0\xb0"
          "dmin)\n",
          TRICK_SCRIPTS },
        { "", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\xef\xb8\x8f\n", 0 }, /* an emoji of several */
        { "a\xe2\x80\xaez\n", "new\na\xe2\x80\xaez\n", 0 },                      /* it was there before */
        { "a\xe2\x80\xaez\n", "c\xe2\x80\xaez\n", TRICK_BIDI },
        { "", "\x1b \xe2\x80\xae", TRICK_CONTROL | TRICK_BIDI },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned got = tricks_added(rows[i].old, strlen(rows[i].old), rows[i].new, strlen(rows[i].new));

        if (got != rows[i].want)
            fail_msg("row %zu: %x", i, got);
    }
    assert_int_equal(tricks_added("", 0, "a\0b", 3), TRICK_NUL);
}

static void long_lines_are_told_and_cut(void **state)
{
    autofree char *line = malloc(5001);
    autotext struct text shown = TEXT_NONE;

    (void)state;
    assert_non_null(line);
    memset(line, 'x', 5000);
    line[5000] = '\0';
    assert_int_equal(tricks_added("", 0, line, 5000), TRICK_LONG);
    tricks_add_shown(&shown, line, 5000);
    assert_true(shown.len < 2100);
    assert_contains(shown.data, "and 3000 bytes more");
}

static void what_is_shown_does_nothing(void **state)
{
    static const struct {
        const char *line, *shown;
        size_t len;
    } rows[] = {
        { "a\tb", "a\tb", 3 },         { "a\0b", "a\\x00b", 3 },
        { "\x1b[2J", "\\x1b[2J", 4 },  { "x\xe2\x80\xaey", "x<U+202E>y", 5 },
        { "\xc2\x9b", "<U+009B>", 2 }, { "\xff", "\\xff", 1 },
        { "end\r", "end\\x0d", 4 },    { "x\xe2\x80\x8by", "x<U+200B>y", 5 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autotext struct text shown = TEXT_NONE;

        tricks_add_shown(&shown, rows[i].line, rows[i].len);
        assert_string_equal(text_string(&shown), rows[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tricks_are_found_in_new_lines),
        cmocka_unit_test(long_lines_are_told_and_cut),
        cmocka_unit_test(what_is_shown_does_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
