#include "base/text.h"

#include "base/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void base64_is_that_of_the_standard(void **state)
{
    static const char *const cases[][2] = { { "", "" },
                                            { "f", "Zg==" },
                                            { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },
                                            { "foob", "Zm9vYg==" },
                                            { "fooba", "Zm9vYmE=" },
                                            { "foobar", "Zm9vYmFy" },
                                            { "\xff\xfe\xfd", "//79" } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autotext struct text out = TEXT_NONE;

        text_add_base64(&out, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(text_string(&out), cases[i][1]);
    }
}

static void what_is_no_utf8_is_known(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = { { "", true },       { "a\xc3\xa9", true }, { "\xef\xbf\xbd", true }, { "\xff", false },
                  { "a\xc3", false }, { "\xc0\x80", false }, { "\xed\xa0\x80", false } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(text_is_utf8(cases[i].text), cases[i].is);
}

static void base64_is_read_in_one_spelling(void **state)
{
    static const char *const wrong[] = { "A",    "AA",   "AAA",  "AA==AAAA", "AB==", "AAB=",
                                         "A===", "====", "AA=A", "AAA\n",    "AA-_", "AA==\n" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        autotext struct text out = TEXT_NONE;

        if (text_add_from_base64(&out, wrong[i]))
            fail_msg("%s", wrong[i]);
        assert_int_equal(out.len, 0);
    }
    for (size_t len = 0; len < 40; len++) {
        autotext struct text bytes = TEXT_NONE, coded = TEXT_NONE, back = TEXT_NONE;

        for (size_t i = 0; i < len; i++)
            text_add_bytes(&bytes, &(char){ (char)(i * 37 + len) }, 1);
        text_add_base64(&coded, text_string(&bytes), len);
        assert_true(text_add_from_base64(&back, text_string(&coded)));
        assert_int_equal(back.len, len);
        assert_memory_equal(text_string(&back), text_string(&bytes), len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_that_of_the_standard),
        cmocka_unit_test(base64_is_read_in_one_spelling),
        cmocka_unit_test(what_is_no_utf8_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
