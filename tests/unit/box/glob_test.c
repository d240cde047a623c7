#include "base/glob.h"

#include "base/array.h"
#include "tests/support/unit.h"

#include <stdlib.h>

static void a_name_is_matched_by_stars_marks_sets_and_escapes(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool want;
    } cases[] = {
        { "", "", true },           { "", "a", false },
        { "a", "a", true },         { "a", "A", false },
        { "*", "", true },          { "*", ".env", true },
        { "*.pem", "x.pem", true }, { "*.pem", "x.pem.txt", false },
        { "a*b*c", "aXbYc", true }, { "a*b*c", "acb", false },
        { "**", "abc", true },      { "?", "", false },
        { "?", "\xff", true },      { "a?c", "abc", true },
        { "[abc]", "b", true },     { "[abc]", "d", false },
        { "[a-c]x", "bx", true },   { "[!a-c]", "d", true },
        { "[^a-c]", "b", false },   { "[]]", "]", true },
        { "[a-]", "-", true },      { "[", "[", true },
        { "[abc", "[abc", true },   { "[abc", "a", false },
        { "\\*", "*", true },       { "\\*", "a", false },
        { "\\", "\\", true },       { "a\nb", "a\nb", true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (glob_match(cases[i].pattern, cases[i].name) != cases[i].want)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].name);
}

static void a_path_is_matched_component_by_component(void **state)
{
    static const struct {
        const char *pattern, *path;
        enum glob_place want;
    } cases[] = {
        { "/", "/", GLOB_YES },
        { "/", "/a", GLOB_BELOW },
        { "/a", "/", GLOB_ABOVE },
        { "/a", "/a", GLOB_YES },
        { "/a", "a", GLOB_YES },
        { "/a/b", "/a", GLOB_ABOVE },
        { "/a/b", "/a//b/", GLOB_YES },
        { "/a/b", "/a/c", GLOB_NO },
        { "/a/b", "/ab", GLOB_NO },
        { "/a", "/a/b/c", GLOB_BELOW },
        { "/*", "/a/b", GLOB_BELOW },
        { "/home/*", "/home/me", GLOB_YES },
        { "/home/*", "/home", GLOB_ABOVE },
        { "/home/*", "/homes/me", GLOB_NO },
        { "a/**/z", "a/z", GLOB_YES },
        { "a/**/z", "a/b/c/z", GLOB_YES },
        { "a/**/z", "a/b/c", GLOB_ABOVE },
        { "a/**/z", "b/z", GLOB_NO },
        { "a/**/z", "a/z/y", GLOB_BELOW },
        { "**/z", "z", GLOB_YES },
        { "**/z", "a/b/z", GLOB_YES },
        { "**/..", "/a/../b", GLOB_BELOW },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (glob_compare(cases[i].pattern, cases[i].path) != cases[i].want)
            fail_msg("'%s' and '%s': %d", cases[i].pattern, cases[i].path,
                     (int)glob_compare(cases[i].pattern, cases[i].path));
}

static void a_hostile_pattern_ends_in_time(void **state)
{
    static char pattern[8001], name[4001];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof pattern; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    memset(name, 'a', sizeof name - 1);
    pattern[sizeof pattern - 2] = 'b';
    assert_false(glob_match(pattern, name));

    for (size_t i = 0; i + 1 < sizeof pattern; i++)
        pattern[i] = "**/a/"[i % 5];
    for (size_t i = 0; i + 1 < sizeof name; i++)
        name[i] = "a/"[i % 2];
    pattern[sizeof pattern - 3] = 'b';
    assert_int_equal(glob_compare(pattern, name), GLOB_ABOVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_matched_by_stars_marks_sets_and_escapes),
        cmocka_unit_test(a_path_is_matched_component_by_component),
        cmocka_unit_test(a_hostile_pattern_ends_in_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
