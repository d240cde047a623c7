#include "base/hostname.h"

#include "base/array.h"
#include "tests/support/unit.h"

/* What becomes of a name; NULL: it is refused. */
static const struct name {
    const char *written, *form;
} names[] = {
    { "example.com", "example.com" },
    { "EXAMPLE.com", "example.com" },
    { "example.com.", "example.com" },
    { "example.com..", NULL },
    { ".example.com", NULL },
    { "example..com", NULL },
    { ".", NULL },
    { "", NULL },
    { "a-b.example.com", "a-b.example.com" },
    { "-a.example.com", NULL },
    { "a-.example.com", NULL },
    { "r3---sn-x.example.com", "r3---sn-x.example.com" },
    { "_dmarc.example.com", NULL },
    { "example.com@evil.test", NULL },
    { "example.com#", NULL },
    { "example.com/", NULL },
    { "example.com%2e", NULL },
    { "example.com:443", NULL },
    { "exa mple.com", NULL },
    { "example.com\n", NULL },
    { "*.example.com", NULL },
    { "еxample.com", NULL },
    { "ｅxample.com", NULL },
    { "example。com", NULL },
    { "xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai" },
    { "XN--xample-9uf.com", "xn--xample-9uf.com" },
    { "1.2.3.4", "1.2.3.4" },
    { "[2001:DB8::1]", "2001:db8::1" },
    { "::ffff:1.2.3.4", "1.2.3.4" },
    { "::ffff:1.2.3.4%x.example.com", NULL },
    { "1.2.3", NULL },
    { "example.123", NULL },
    { "example.0x1f", NULL },
    { "example.0xg", "example.0xg" },
    { "4chan.example", "4chan.example" },
    { "localhost", "localhost" },
    { "localhost.", "localhost" },
};

static void a_name_has_one_form_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct hostname host;
        const char *why = hostname_read(names[i].written, strlen(names[i].written), &host);

        if (!why != (names[i].form != NULL) || strcmp(host.text, names[i].form ? names[i].form : "") != 0)
            fail_msg("%s: \"%s\" %s", names[i].written, host.text, why ? why : "taken");
    }
}

/* GW-05: every byte at the beginning, in the middle and at the end. */
static void only_letters_digits_hyphens_and_dots_are_in_a_name(void **state)
{
    static const char plain[] = "ab.example.com";
    static const size_t places[] = { 0, 1, 7, sizeof plain - 2 };

    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        for (size_t i = 0; i < ARRAY_LEN(places); i++) {
            char name[sizeof plain];
            struct hostname host;
            int low = byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
            bool letter = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9');

            memcpy(name, plain, sizeof name);
            name[places[i]] = (char)byte;

            bool taken = hostname_read(name, sizeof plain - 1, &host) == NULL;
            bool dash = byte == '-' && places[i] == 7, dot = byte == '.' && places[i] == 7;
            bool last_dot = byte == '.' && places[i] == sizeof plain - 2;

            if (taken != (letter || dash || dot || last_dot))
                fail_msg("byte %d at %zu: %d", byte, places[i], taken);
            name[places[i]] = (char)low;
            if (taken && !last_dot)
                assert_string_equal(host.text, name);
        }
    }
}

static void names_and_labels_have_a_length(void **state)
{
    char name[300];
    struct hostname host;

    (void)state;
    memset(name, 'a', sizeof name);
    for (size_t i = 63; i < sizeof name; i += 64)
        name[i] = '.';
    assert_null(hostname_read(name, 253, &host));
    assert_int_equal(strlen(host.text), 253);
    assert_non_null(hostname_read(name, 254, &host));
    name[253] = '.';
    assert_null(hostname_read(name, 254, &host));
    memset(name, 'a', sizeof name);
    name[64] = '.';
    assert_non_null(hostname_read(name, 70, &host));
    assert_null(hostname_read(name + 1, 69, &host));
}

static void a_zero_byte_is_no_end(void **state)
{
    static const char a[] = "example.com\0.evil", b[] = "evil\0.example.com";
    struct hostname host;

    (void)state;
    assert_non_null(hostname_read(a, sizeof a - 1, &host));
    assert_non_null(hostname_read(b, sizeof b - 1, &host));
    assert_string_equal(host.text, "");
}

static void local_names_are_told(void **state)
{
    static const struct {
        const char *name;
        bool local;
    } rows[] = {
        { "localhost", true },
        { "a.localhost", true },
        { "db", true },
        { "printer.local", true },
        { "metadata.google.internal", true },
        { "npm.corp.internal", false },
        { "example.com", false },
        { "notlocal", true },
        { "x.notlocal", false },
        { "127.0.0.1", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hostname host;

        assert_null(hostname_read(rows[i].name, strlen(rows[i].name), &host));
        if (hostname_is_local(&host) != rows[i].local)
            fail_msg("%s", rows[i].name);
    }
}

static const struct pattern {
    const char *written, *form;
    bool broad;
} patterns[] = {
    { "Example.COM.", "example.com", false },
    { "*.example.com", "*.example.com", false },
    { "*.EXAMPLE.com", "*.example.com", false },
    { "*", "*", true },
    { "*.com", "*.com", true },
    { "*.co.uk", "*.co.uk", true },
    { "*.example.co.uk", "*.example.co.uk", false },
    { "*.github.io", "*.github.io", true },
    { "*.someone.github.io", "*.someone.github.io", false },
    { "*.", NULL, false },
    { "**.example.com", NULL, false },
    { "*.*.example.com", NULL, false },
    { "a.*.example.com", NULL, false },
    { "*example.com", NULL, false },
    { "*.1.2.3.4", NULL, false },
    { "*.[::1]", NULL, false },
    { "10.0.0.5", "10.0.0.5", false },
    { "[::1]", "::1", false },
    { "127.1", NULL, false },
    { "http://example.com", NULL, false },
    { "", NULL, false },
};

static void a_pattern_has_one_star_at_its_beginning(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        char form[HOSTNAME_SIZE + 2] = "";
        const char *why = hostname_read_pattern(patterns[i].written, strlen(patterns[i].written), form);

        if (!why != (patterns[i].form != NULL) ||
            (!why &&
             (strcmp(form, patterns[i].form) != 0 || hostname_pattern_is_broad(form) != patterns[i].broad)))
            fail_msg("%s: \"%s\" %s", patterns[i].written, form, why ? why : "taken");
    }
}

/* Whatever matches the narrower matches the wider, and for each pair that is not so there is a witness. */
static void within_means_that_all_matches_are(void **state)
{
    static const char *const all[] = { "*",           "*.com",         "*.example.com",   "*.a.example.com",
                                       "example.com", "a.example.com", "b.a.example.com", "x.com",
                                       "10.0.0.5",    "2001:db8::1",   "xexample.com",    "com" };
    static const char *const hosts[] = { "com",           "x.com",           "example.com",
                                         "a.example.com", "b.a.example.com", "z.b.a.example.com",
                                         "z.example.com", "xexample.com",    "10.0.0.5",
                                         "[2001:db8::1]", "y.org",           "z.com" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t j = 0; j < ARRAY_LEN(all); j++) {
            bool contained = true;

            for (size_t k = 0; k < ARRAY_LEN(hosts); k++) {
                struct hostname host;

                assert_null(hostname_read(hosts[k], strlen(hosts[k]), &host));
                contained = contained && (!hostname_matches(all[i], &host) || hostname_matches(all[j], &host));
            }
            if (hostname_pattern_within(all[i], all[j]) != contained)
                fail_msg("%s within %s: %d", all[i], all[j], !contained);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_one_form_or_none),
        cmocka_unit_test(only_letters_digits_hyphens_and_dots_are_in_a_name),
        cmocka_unit_test(names_and_labels_have_a_length),
        cmocka_unit_test(a_zero_byte_is_no_end),
        cmocka_unit_test(local_names_are_told),
        cmocka_unit_test(a_pattern_has_one_star_at_its_beginning),
        cmocka_unit_test(within_means_that_all_matches_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
