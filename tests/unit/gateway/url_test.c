#include "gateway/url.h"

#include "base/array.h"
#include "tests/support/unit.h"

static void a_url_leads_to_one_host_and_port(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
        const char *path;
    } rows[] = {
        { "http://a.test", "a.test", 80, "/" },
        { "https://A.test./x?y", "a.test", 443, "/x?y" },
        { "HTTPS://a.test:8443/", "a.test", 8443, "/" },
        { "wss://a.test/x", "a.test", 443, "/x" },
        { "sparse+https://a.test/i/", "a.test", 443, "/i/" },
        { "https://me:pw@a.test/", "a.test", 443, "/" },
        { "https://a.test@b.test/", "b.test", 443, "/" },
        { "https://a.test?x=/b", "a.test", 443, "/" },
        { "http://[2606:4700::1]:81/", "2606:4700::1", 81, "/" },
        { "http://[::ffff:10.0.0.5]/", "10.0.0.5", 80, "/" },
        { "http://10.0.0.5:80", "10.0.0.5", 80, "/" },
        { "http://127.1/", NULL, 0, NULL },
        { "http://a.test\\@b.test/", NULL, 0, NULL },
        { "http://a.test:0/", NULL, 0, NULL },
        { "http://a.test:080/", NULL, 0, NULL },
        { "http://a.test:65536/", NULL, 0, NULL },
        { "http://a.test:/", NULL, 0, NULL },
        { "http://[::1]x/", NULL, 0, NULL },
        { "http:///x", NULL, 0, NULL },
        { "http:a.test", NULL, 0, NULL },
        { "ftp://a.test/", NULL, 0, NULL },
        { "a.test", NULL, 0, NULL },
        { "//a.test", NULL, 0, NULL },
        { "", NULL, 0, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct url url = { 0 };
        const char *why = url_read(rows[i].text, &url);

        if (!why != (rows[i].host != NULL) ||
            (!why && (strcmp(url.host.text, rows[i].host) != 0 || url.port != rows[i].port ||
                      strcmp(url.path, rows[i].path) != 0)))
            fail_msg("%s: %s %s:%u", rows[i].text, why ? why : "taken", url.host.text, url.port);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_url_leads_to_one_host_and_port) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
