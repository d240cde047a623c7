#include "changes/marks.h"

#include "base/text.h"
#include "tests/support/unit.h"

#include <limits.h>

static void a_redirect_is_a_plain_path_or_nothing(void **state)
{
    static const struct {
        const char *value, *parent, *want;
    } rows[] = {
        { "/a", "x", "a" },      { "/a/b", NULL, "a/b" },    { "b", "", "b" },     { "b", "p/q", "p/q/b" },
        { "b", NULL, NULL },     { "a/b", "p", NULL },       { "/", "p", NULL },   { "//a", "p", NULL },
        { "/a//b", "p", NULL },  { "/a/", "p", NULL },       { "/..", "p", NULL }, { "/a/../b", "p", NULL },
        { "/a/./b", "p", NULL }, { "..", "p", NULL },        { ".", "p", NULL },   { "...", "p", "p/..." },
        { "/.a", "p", ".a" },    { "/a/..b", "p", "a/..b" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autotext struct text out = TEXT_NONE;
        bool taken = mark_parse_redirect(rows[i].value, strlen(rows[i].value), rows[i].parent, &out);

        if (taken != (rows[i].want != NULL) || strcmp(text_string(&out), rows[i].want ? rows[i].want : "") != 0)
            fail_msg("'%s' gives '%s'", rows[i].value, text_string(&out));
    }
}

static void a_redirect_with_odd_bytes_or_lengths_is_nothing(void **state)
{
    autotext struct text out = TEXT_NONE;
    static char long_one[PATH_MAX + 10];

    (void)state;
    assert_false(mark_parse_redirect("", 0, "", &out));
    assert_false(mark_parse_redirect("/a\0b", 4, "", &out));
    memset(long_one, 'a', sizeof long_one);
    long_one[0] = '/';
    assert_false(mark_parse_redirect(long_one, 1 + NAME_MAX + 1, "", &out));
    assert_true(mark_parse_redirect(long_one, 1 + NAME_MAX, "", &out));
    text_clear(&out);
    for (size_t i = 0; i < sizeof long_one; i += 100)
        long_one[i] = '/';
    assert_false(mark_parse_redirect(long_one, PATH_MAX + 5, "", &out));
    assert_int_equal(out.len, 0);
}

static void an_origin_must_be_whole(void **state)
{
    unsigned char good[21 + 8] = { 0, 0xfb, 29, 0, 1 }, bad[sizeof good];
    struct origin origin;

    (void)state;
    memset(good + 21, 7, 8);
    assert_true(mark_parse_origin(good, sizeof good, &origin));
    assert_int_equal(origin.type, 1);
    assert_int_equal(origin.len, 8);
    assert_int_equal(origin.bytes[7], 7);
    for (size_t i = 0; i < 3; i++) {
        memcpy(bad, good, sizeof bad);
        bad[i] ^= 1;
        assert_false(mark_parse_origin(bad, sizeof bad, &origin));
    }
    for (size_t len = 0; len < sizeof good; len++)
        assert_false(mark_parse_origin(good, len, &origin));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redirect_is_a_plain_path_or_nothing),
        cmocka_unit_test(a_redirect_with_odd_bytes_or_lengths_is_nothing),
        cmocka_unit_test(an_origin_must_be_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
