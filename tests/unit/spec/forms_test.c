#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"
#include "spec/values.h"
#include "tests/support/unit.h"

static char *variables[] = { (char[]){ "LANG=C.UTF-8" }, (char[]){ "EMPTY=" }, (char[]){ "LANGUAGE=en" },
                             NULL };
static const struct form_context here = { "/home/me", "/work/dir", variables };
static const struct form_context nowhere = { 0 };

/* `want` is the normal form, NULL: refused. */
struct form_case {
    const char *in, *want;
};

static void check(field_form *form, const struct form_context *context, const struct form_case *cases,
                  size_t len)
{
    for (size_t i = 0; i < len; i++) {
        autotext struct text why = TEXT_NONE;
        autofree char *out = NULL;
        bool taken = form(context, cases[i].in, &out, &why);

        if (taken != (cases[i].want != NULL))
            fail_msg("\"%s\": %s", cases[i].in, taken ? "taken" : text_string(&why));
        if (taken)
            assert_string_equal(out, cases[i].want);
        else
            assert_true(why.len > 0);
    }
}

static void a_service_is_a_port_that_is_not_the_gateway_s(void **state)
{
    static const struct form_case cases[] = { { "1", "1" },   { "5432", "5432" }, { "65535", "65535" },
                                              { "0", NULL },  { "65536", NULL },  { "080", NULL },
                                              { "+1", NULL }, { "", NULL },       { "1 ", NULL },
                                              { "53", NULL }, { "1019", NULL },   { "5:6", NULL } };

    (void)state;
    check(form_service_port, &nowhere, cases, ARRAY_LEN(cases));
}

static void a_user_is_root_or_one_or_two_plain_numbers(void **state)
{
    static const struct form_case cases[] = {
        { "root", "root" },
        { "0", "0" },
        { "1000", "1000" },
        { "1000:100", "1000:100" },
        { "4294967294", "4294967294" },
        { "", NULL },
        { "+0", NULL },
        { "0x0", NULL },
        { "-1", NULL },
        { "4294967295", NULL }, /* (uid_t)-1 */
        { "4294967296", NULL },
        { "18446744073709551616", NULL },
        { "99999999999999999999999999", NULL },
        { "1000:", NULL },
        { ":1000", NULL },
        { "1000:4294967295", NULL },
        { "1000:100:1", NULL },
        { "root\n", NULL },
        { "root:root", NULL },
        { "Root", NULL },
        { " root", NULL },
        { "00", NULL },
        { "007", NULL },
        { "1000 ", NULL },
        { "\xef\xbc\x91\xef\xbc\x90", NULL }, /* full-width 10 */
        { "1e3", NULL },
        { "nobody", NULL },
    };

    (void)state;
    check(form_user, &here, cases, ARRAY_LEN(cases));
}

static void a_path_is_made_absolute_and_plain(void **state)
{
    static const struct form_case cases[] = {
        { "/srv", "/srv" },
        { "/srv/", "/srv" },
        { "//srv///data/./x", "/srv/data/x" },
        { "/a/b/../c", "/a/c" },
        { "/../../etc", "/etc" },
        { "/", "/" },
        { "/..", "/" },
        { "~", "/home/me" },
        { "~/x", "/home/me/x" },
        { "x", "/work/dir/x" },
        { "../x", "/work/x" },
        { "./~", "/work/dir/~" },
        { "/..x/...", "/..x/..." },
        { "", NULL },
        { "~other/x", NULL },
    };
    static const struct form_case strict[] = {
        { "/srv", "/srv" }, { "~/x", NULL }, { "x", NULL }, { ".", NULL }
    };

    (void)state;
    check(form_path, &here, cases, ARRAY_LEN(cases));
    check(form_path, &nowhere, strict, ARRAY_LEN(strict));
}

static void an_image_is_host_or_a_path(void **state)
{
    static const struct form_case cases[] = {
        { "host", "host" },
        { "/img", "/img" },
        { "./img", "/work/dir/img" },
        { "~/img", "/home/me/img" },
        { "debian", NULL },
        { "", NULL },
        { "Host", NULL },
    };

    (void)state;
    check(form_image, &here, cases, ARRAY_LEN(cases));
}

static void a_host_name_is_made_of_letters_digits_dashes_and_dots(void **state)
{
    static const struct form_case cases[] = {
        { "cove", "cove" },
        { "a.b-c.9", "a.b-c.9" },
        { "", NULL },
        { "-a", NULL },
        { "a-", NULL },
        { ".a", NULL },
        { "a..b", NULL },
        { "a_b", NULL },
        { "a b", NULL },
        { "a\n", NULL },
        { "0123456789012345678901234567890123456789012345678901234567890123", NULL },
    };

    (void)state;
    check(form_hostname, &here, cases, ARRAY_LEN(cases));
}

static void a_pattern_stays_below_the_trees_and_closes_its_brackets(void **state)
{
    static const struct form_case cases[] = {
        { ".env", ".env" }, { "*.pem", "*.pem" },   { "a/..b", "a/..b" }, { "", NULL },
        { "../x", NULL },   { "a/..", NULL },       { "[ab", NULL },      { "[ab]*", "[ab]*" },
        { "[a][b", NULL },  { "a]", "a]" },         { "\\[ab", "\\[ab" }, { "\\[a[b", NULL },
        { "\\\\[a", NULL }, { "[a]\\[", "[a]\\[" },
    };

    (void)state;
    check(form_pattern, &here, cases, ARRAY_LEN(cases));
}

static void a_variable_has_a_plain_name_and_any_value(void **state)
{
    static const struct form_case cases[] = {
        { "A=1", "A=1" },           { "A=", "A=" },    { "A=x=y z\n", "A=x=y z\n" },
        { "LANG", "LANG=C.UTF-8" }, /* not LANGUAGE's */
        { "EMPTY", "EMPTY=" },      { "", NULL },      { "=x", NULL },
        { "A B=1", NULL },          { "A\n=1", NULL }, { "\xc3\xa4=1", NULL },
    };
    static const struct form_case strict[] = { { "A=1", "A=1" }, { "LANG", NULL } };
    autotext struct text why = TEXT_NONE;
    char *out = NULL;

    (void)state;
    check(form_env, &here, cases, ARRAY_LEN(cases));
    check(form_env, &nowhere, strict, ARRAY_LEN(strict));

    /* A variable that the host does not have is no error and is not set. */
    assert_true(form_env(&here, "NOT_THERE", &out, &why));
    assert_null(out);
}

static void durations_have_units_once_and_in_order(void **state)
{
    static const struct {
        const char *in;
        bool taken;
        uint64_t want;
        const char *shown;
    } cases[] = {
        { "30m", true, 1800000, "30m" },
        { "1h30m", true, 5400000, "1h30m" },
        { "500ms", true, 500, "500ms" },
        { "36h", true, 129600000, "1d12h" },
        { "7d", true, 604800000, "7d" },
        { "90", true, 90000, "1m30s" },
        { "1m500ms", true, 60500, "1m500ms" },
        { "1h2m3s4ms", true, 3723004, "1h2m3s4ms" },
        { "0", false, 0, "" },
        { "none", true, 0, "none" },
        { "", false, 0, "" },
        { "30m1h", false, 0, "" },
        { "1h1h", false, 0, "" },
        { "5x", false, 0, "" },
        { "5 m", false, 0, "" },
        { "-5m", false, 0, "" },
        { "+5m", false, 0, "" },
        { "1.5h", false, 0, "" },
        { "m", false, 0, "" },
        { "5m ", false, 0, "" },
        { "1h30", false, 0, "" },
        { "None", false, 0, "" },
        { "99999999999999999999", false, 0, "" },
        { "18446744073709551615h", false, 0, "" },
        { "18446744073709551615ms1", false, 0, "" },
        { "0x10", false, 0, "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autotext struct text why = TEXT_NONE, shown = TEXT_NONE;
        uint64_t value = 1;
        bool taken = form_duration(cases[i].in, &value, &why);

        if (taken != cases[i].taken)
            fail_msg("\"%s\": %s", cases[i].in, taken ? "taken" : text_string(&why));
        if (!taken)
            continue;
        assert_int_equal(value, cases[i].want);
        form_duration_show(value, &shown);
        assert_string_equal(text_string(&shown), cases[i].shown);
    }
}

/* What a duration is shown as reads back as the same. */
static void a_shown_duration_reads_back(void **state)
{
    (void)state;
    for (uint64_t value = 1; value < UINT64_MAX / 7; value = value * 7 + 3) {
        autotext struct text shown = TEXT_NONE, why = TEXT_NONE;
        uint64_t again = 0;

        form_duration_show(value, &shown);
        assert_true(form_duration(text_string(&shown), &again, &why));
        assert_int_equal(again, value);
    }
}

static void volumes_take_colons_with_a_backslash(void **state)
{
    static const struct {
        const char *in, *source, *target;
        enum tree_mode mode;
    } cases[] = {
        { "/a:/b", "/a", "/b", TREE_COW },
        { "/a:/b:ro", "/a", "/b", TREE_RO },
        { "/a:/b:cow", "/a", "/b", TREE_COW },
        { "./x:/b", "/work/dir/x", "/b", TREE_COW },
        { "~/x:/b:ro", "/home/me/x", "/b", TREE_RO },
        { "/a\\:b:/c\\:d:ro", "/a:b", "/c:d", TREE_RO },
        { "/a\\\\:/b", "/a\\", "/b", TREE_COW },
        { "/a\\b:/c", "/a\\b", "/c", TREE_COW },
        { "/a b\n\t\"',=*?:/b", "/a b\n\t\"',=*?", "/b", TREE_COW },
        { "/\xc3\xa4\xff:/b", "/\xc3\xa4\xff", "/b", TREE_COW },
        { "/a/../b/:/c//d/", "/b", "/c/d", TREE_COW },
        { "", NULL, NULL, TREE_RO },
        { "/a", NULL, NULL, TREE_RO },
        { "/a:", NULL, NULL, TREE_RO },
        { ":/b", NULL, NULL, TREE_RO },
        { "/a:b", NULL, NULL, TREE_RO },
        { "/a:/", NULL, NULL, TREE_RO },
        { "/a:/b/..", NULL, NULL, TREE_RO },
        { "/a:/b:rw", NULL, NULL, TREE_RO },
        { "/a:/b:", NULL, NULL, TREE_RO },
        { "/a:/b:ro:x", NULL, NULL, TREE_RO },
        { "name:/b", NULL, NULL, TREE_RO },
        { "/a:~/b", NULL, NULL, TREE_RO },
        { "/a\\:/b", NULL, NULL, TREE_RO },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autotext struct text why = TEXT_NONE, shown = TEXT_NONE;
        struct volume volume = { 0 }, again = { 0 };
        bool taken = form_volume(&here, cases[i].in, &volume, &why);

        if (taken != (cases[i].source != NULL))
            fail_msg("\"%s\": %s", cases[i].in, taken ? "taken" : text_string(&why));
        if (!taken) {
            assert_true(why.len > 0);
            continue;
        }
        assert_string_equal(volume.source, cases[i].source);
        assert_string_equal(volume.target, cases[i].target);
        assert_int_equal(volume.mode, cases[i].mode);

        form_volume_show(&volume, &shown);
        assert_true(form_volume(&nowhere, text_string(&shown), &again, &why));
        assert_string_equal(again.source, volume.source);
        assert_string_equal(again.target, volume.target);
        free(volume.source);
        free(volume.target);
        free(again.source);
        free(again.target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_is_root_or_one_or_two_plain_numbers),
        cmocka_unit_test(a_service_is_a_port_that_is_not_the_gateway_s),
        cmocka_unit_test(a_path_is_made_absolute_and_plain),
        cmocka_unit_test(an_image_is_host_or_a_path),
        cmocka_unit_test(a_host_name_is_made_of_letters_digits_dashes_and_dots),
        cmocka_unit_test(a_pattern_stays_below_the_trees_and_closes_its_brackets),
        cmocka_unit_test(a_variable_has_a_plain_name_and_any_value),
        cmocka_unit_test(durations_have_units_once_and_in_order),
        cmocka_unit_test(a_shown_duration_reads_back),
        cmocka_unit_test(volumes_take_colons_with_a_backslash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
