#include "gateway/proxy.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

static char *const empty[] = { NULL };

static void a_url_is_a_proxy(void **state)
{
    static const struct {
        const char *said, *host, *authorization;
        uint16_t port;
    } rows[] = {
        { "http://proxy.test:3128", "proxy.test", NULL, 3128 },
        { "http://10.0.0.1", "10.0.0.1", NULL, 80 },
        { "http://me:secret@proxy.test:8080/", "proxy.test", "Basic bWU6c2VjcmV0", 8080 },
        { "http://me:a%40b@proxy.test:8080", "proxy.test", "Basic bWU6YUBi", 8080 },
        { "http://me:a@b@proxy.test:8080", "proxy.test", "Basic bWU6YUBi", 8080 },
        { "none", "", NULL, 0 },
        { "environment", "", NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxy proxy;

        assert_null(proxy_read(rows[i].said, (char **)(uintptr_t)empty, &proxy));
        assert_string_equal(proxy.host.text, rows[i].host);
        assert_int_equal(proxy.port, rows[i].port);
        if (rows[i].authorization)
            assert_string_equal(proxy.authorization, rows[i].authorization);
        else
            assert_null(proxy.authorization);
        proxy_free(&proxy);
    }
}

static void what_is_none_is_said(void **state)
{
    static const char *const rows[] = { "https://proxy.test:3128", "socks5://proxy.test", "http://",
                                        "http://proxy.test:0",     "http://a b",          "proxy.test:3128" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct proxy proxy;

        assert_non_null(proxy_read(rows[i], (char **)(uintptr_t)empty, &proxy));
        assert_string_equal(proxy.host.text, "");
    }
}

static void the_environment_names_it_and_who_does_without(void **state)
{
    char lower[] = "https_proxy=http://lower.test:1", upper[] = "HTTPS_PROXY=http://upper.test:2",
         none[] = "NO_PROXY=.inner.test, own.test,*.star.test,10.0.0.0/8,10.1.1.1", nothing[] = "http_proxy=";
    char *variables[] = { nothing, upper, lower, none, NULL };
    static const struct {
        const char *host;
        bool by_proxy;
    } rows[] = { { "a.test", true },        { "inner.test", false }, { "a.inner.test", false },
                 { "notinner.test", true }, { "own.test", false },   { "b.own.test", false },
                 { "a.star.test", false },  { "10.1.1.1", false },   { "own.test.evil", true },
                 { "10.2.2.2", true } };
    struct proxy proxy;

    (void)state;
    assert_null(proxy_read("environment", variables, &proxy));
    assert_string_equal(proxy.host.text, "lower.test");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hostname host;

        assert_null(hostname_read(rows[i].host, strlen(rows[i].host), &host));
        if (proxy_is_for(&proxy, &host) != rows[i].by_proxy)
            fail_msg("%s", rows[i].host);
    }
    proxy_free(&proxy);
}

static void it_is_asked_by_name(void **state)
{
    autotext struct text out = TEXT_NONE;
    struct proxy proxy;
    struct hostname host;

    (void)state;
    assert_null(proxy_read("http://me:secret@proxy.test:1", (char **)(uintptr_t)empty, &proxy));
    assert_null(hostname_read("a.test", 6, &host));
    proxy_write(&proxy, &host, 443, &out);
    assert_string_equal(text_string(&out), "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n"
                                           "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n");
    proxy_free(&proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_a_proxy),
        cmocka_unit_test(what_is_none_is_said),
        cmocka_unit_test(the_environment_names_it_and_who_does_without),
        cmocka_unit_test(it_is_asked_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
