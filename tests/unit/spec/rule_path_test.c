#include "spec/rule_path.h"

#include "base/array.h"
#include "base/text.h"
#include "tests/support/unit.h"

/* GW-12.  NULL: can be read in more than one way. */
static const struct path {
    const char *raw, *plain;
} paths[] = {
    { "/", "/" },
    { "/a/b", "/a/b" },
    { "/a/b/", "/a/b/" },
    { "/a?x=/../y", "/a" },
    { "/%61%2Db", "/a-b" },
    { "/a%20b", "/a%20b" },
    { "/a%3ab", "/a%3Ab" },
    { "/A", "/A" },
    { "/.hidden", "/.hidden" },
    { "/...", "/..." },
    { "", NULL },
    { "a", NULL },
    { "*", NULL },
    { "http://x/a", NULL },
    { "//a", NULL },
    { "/a//b", NULL },
    { "/a/./b", NULL },
    { "/a/../b", NULL },
    { "/..", NULL },
    { "/a/%2e%2e/b", NULL },
    { "/a/.%2e/b", NULL },
    { "/a%2fb", NULL },
    { "/a%5Cb", NULL },
    { "/a\\b", NULL },
    { "/a%252fb", NULL },
    { "/a;x=1/b", NULL },
    { "/a%3bx", NULL },
    { "/a%00", NULL },
    { "/a%0d%0a", NULL },
    { "/a%c0%af", NULL },
    { "/a%", NULL },
    { "/a%2", NULL },
    { "/a%zz", NULL },
    { "/a b", NULL },
    { "/a\tb", NULL },
    { "/ä", NULL },
    { "/a#b", NULL },
};

static void a_path_is_plain_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        autotext struct text plain = TEXT_NONE;
        bool taken = path_plain(paths[i].raw, &plain);

        if (taken != (paths[i].plain != NULL) || (taken && strcmp(text_string(&plain), paths[i].plain) != 0))
            fail_msg("%s: %d \"%s\"", paths[i].raw, taken, text_string(&plain));
    }
}

static void patterns_match_part_by_part(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } rows[] = {
        { "/a", "/a", true },         { "/a", "/a/", false },          { "/a", "/A", false },
        { "/a", "/a/b", false },      { "/a/*", "/a/b", true },        { "/a/*", "/a/b/c", false },
        { "/a/*", "/a", false },      { "/a/**", "/a/b/c", true },     { "/a/**", "/a", false },
        { "/a/**", "/a/", true },     { "/a/**", "/ab/c", false },     { "/**", "/", true },
        { "/*.tgz", "/x.tgz", true }, { "/*.tgz", "/x/y.tgz", false }, { "/", "/", true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (path_matches(rows[i].pattern, rows[i].path) != rows[i].matches)
            fail_msg("%s and %s", rows[i].pattern, rows[i].path);
    assert_true(path_pattern_within("/a/b", "/a/**"));
    assert_true(path_pattern_within("/a/*/c", "/a/**"));
    assert_true(path_pattern_within("/*/a", "/**"));
    assert_true(path_pattern_within("/v1/a", "/*/a"));
    assert_true(path_pattern_within("/x*/**", "/x*/**"));
    assert_false(path_pattern_within("/a", "/a/**"));
    assert_false(path_pattern_within("/ab/c", "/a/**"));
    assert_false(path_pattern_within("/*/c", "/a/**"));
    assert_false(path_pattern_within("/**", "/a"));
    assert_true(path_is_pattern("/a/**"));
    assert_false(path_is_pattern("/a/../b"));
    assert_false(path_is_pattern("a"));
    assert_false(path_is_pattern("/a?b"));
    assert_false(path_is_pattern("/%61"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_plain_or_refused),
        cmocka_unit_test(patterns_match_part_by_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
