#include "changes/names.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

static void names_that_mislead_are_odd(void **state)
{
    static const char *const odd[] = {
        "-rf",
        "a\nb",
        "\x1b[31m",
        "tail ",
        "\xff",
        "a\xc3",
        "\xc2\x9b"
        "m",
        "a\x7f",
        "\xe2\x80\xae"
        "gpj.exe",
        "\xed\xa0\x80",
        "a\tb",
        "\xc0\xaf",
        "\xe2\x81\xa6x",
        "zero\xe2\x80\x8bwidth",
        "\xd0\xb0"
        "dmin.c", /* the first letter is Cyrillic */
    };
    static const char *const fine[] = {
        "a", ".env", "a-b", " a", "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x98\x80", "a b"
    };

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (!name_is_odd(odd[i]))
            fail_msg("row %zu is not odd", i);
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (name_is_odd(fine[i]))
            fail_msg("'%s' is odd", fine[i]);
}

static void twins_fold_to_the_same(void **state)
{
    static const struct {
        const char *one, *other;
        bool twins;
    } rows[] = {
        { "Makefile", "makefile", true },
        { ".git", ".GIT", true },
        { ".git", ".g\xe2\x80\x8cit", true },     /* zero width non-joiner */
        { "\xc3\xa9", "e\xcc\x81", true },        /* composed, and with a combining accent */
        { "\xce\x86", "\xce\xb1", true },         /* Greek, with and without accent */
        { "\xd0\x99", "\xd0\xb8\xcc\x86", true }, /* Cyrillic */
        { "\xd0\x94", "\xd0\xb4", true },         /* Cyrillic, case */
        { "a", "\xef\xbc\xa1", true },            /* full width */
        { "k", "\xe2\x84\xaa", true },            /* Kelvin */
        { "admin",
          "\xd0\xb0"
          "dmin",
          true }, /* Cyrillic a */
        { "COM", "\xd0\xa1\xd0\x9e\xd0\x9c", true },
        { "a", "b", false },
        { "a\xff", "a", false },
        { "\xe4\xb8\xad", "\xe6\x96\x87", false },
        { "", "\xef\xbb\xbf", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autofree char *one = name_fold(rows[i].one), *other = name_fold(rows[i].other);

        if ((strcmp(one, other) == 0) != rows[i].twins)
            fail_msg("row %zu", i);
    }
}

/* Folding what was folded changes nothing: so it is a normal form. */
static void folding_twice_is_folding_once(void **state)
{
    (void)state;
    for (unsigned code = 1; code < 0x20000; code++) {
        char name[8] = { 0 };
        size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        unsigned left = code;

        for (size_t i = len; i-- > 1; left >>= 6)
            name[i] = (char)(0x80 | (left & 0x3f));
        name[0] = (char)(len == 1 ? left : (0xf00u >> len | left) & 0xff);

        autofree char *once = name_fold(name), *twice = name_fold(once);

        if (strcmp(once, twice) != 0)
            fail_msg("U+%04X", code);
    }
}

static void links_are_judged_by_their_text(void **state)
{
    static const struct {
        const char *path, *target;
        enum link_place place;
    } rows[] = {
        { "l", "a", LINK_INSIDE },
        { "l", ".", LINK_INSIDE },
        { "l", "..", LINK_OUT },
        { "l", "a/../..", LINK_OUT },
        { "l", "../tree/a", LINK_OUT },
        { "l", "a/..", LINK_OUT },
        { "l", "a/../b", LINK_OUT }, /* with a -> ../up, or a -> /, that is elsewhere */
        { "d/l", "../a/..", LINK_OUT },
        { "l", "/some/tree/a/..", LINK_OUT },
        { "d/l", "..", LINK_INSIDE },
        { "d/l", "../..", LINK_OUT },
        { "d/l", ".././/../x", LINK_OUT },
        { "d/e/l", "../../a", LINK_INSIDE },
        { "l", "", LINK_INSIDE },
        { "l", "...", LINK_INSIDE },
        { "l", "..a", LINK_INSIDE },
        { "l", "/etc/passwd", LINK_OUT },
        { "l", "/", LINK_OUT },
        { "l", "/some/tree", LINK_ABSOLUTE },
        { "l", "/some/tree/a/b", LINK_ABSOLUTE },
        { "l", "//some/./tree//a", LINK_ABSOLUTE },
        { "l", "/some/tree2", LINK_OUT },
        { "l", "/work", LINK_OUT },
        { "l", "/some/tree/..", LINK_OUT },
        { "l", "/some/tree/a/../../b", LINK_OUT },
        { "l", "/other/../some/tree", LINK_OUT },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (link_judge(rows[i].path, rows[i].target, "/some/tree") != rows[i].place)
            fail_msg("%s -> %s", rows[i].path, rows[i].target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_mislead_are_odd),
        cmocka_unit_test(twins_fold_to_the_same),
        cmocka_unit_test(folding_twice_is_folding_once),
        cmocka_unit_test(links_are_judged_by_their_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
