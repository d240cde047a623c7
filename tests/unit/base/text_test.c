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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_that_of_the_standard),
        cmocka_unit_test(what_is_no_utf8_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
