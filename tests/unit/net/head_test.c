#include "net/head.h"

#include "base/array.h"
#include "base/text.h"
#include "tests/support/unit.h"

#define GET "GET / HTTP/1.1\r\n"
#define HOST "Host: a.com\r\n"
#define POST "POST / HTTP/1.1\r\n" HOST

/* The framing corpus: what is read, and what could be read in two ways. */
static const struct row {
    const char *bytes;
    size_t len;
    enum head_read read;
    const char *host;
} rows[] = {
#define ROW(bytes, ...)                                                                                        \
    {                                                                                                          \
        bytes, sizeof bytes - 1, __VA_ARGS__                                                                   \
    }
#define BAD(bytes)                                                                                             \
    {                                                                                                          \
        bytes, sizeof bytes - 1, HEAD_BAD, NULL                                                                \
    }
    ROW(GET HOST "\r\n", HEAD_WHOLE, "a.com"),
    ROW(GET "hOST:\ta.com:8080 \r\n\r\n", HEAD_WHOLE, "a.com:8080"),
    ROW("GET / HTTP/1.0\r\n" HOST "\r\n", HEAD_WHOLE, "a.com"),
    ROW("GET http://a.com/x HTTP/1.1\r\n" HOST "\r\n", HEAD_WHOLE, "a.com"),
    ROW("GET http://a.com HTTP/1.1\r\n" HOST "\r\n", HEAD_WHOLE, "a.com"),
    ROW("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", HEAD_WHOLE, "a.com"),
    ROW(POST "Content-Length: 5\r\n\r\n", HEAD_WHOLE, "a.com"),
    ROW(POST "Content-Length: 0\r\n\r\n", HEAD_WHOLE, "a.com"),
    ROW(POST "Transfer-Encoding: chunked\r\n\r\n", HEAD_WHOLE, "a.com"),
    ROW(POST "Transfer-Encoding:\tChunked\r\n\r\n", HEAD_WHOLE, "a.com"),
    ROW(GET HOST, HEAD_MORE, NULL),
    ROW("GE", HEAD_MORE, NULL),
    BAD(GET "\r\n"),
    BAD(GET HOST "Content_Length: 5\r\n\r\n"),
    BAD(GET HOST "transfer_encoding: chunked\r\n\r\n"),
    BAD(GET HOST "Transfer_Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ROW(GET HOST "Content_Type: 5\r\n\r\n", HEAD_WHOLE, "a.com"),
    BAD(GET HOST HOST "\r\n"),
    BAD(GET "Host: a.com\r\nHost: b.com\r\n\r\n"),
    BAD(GET "Host:\r\n\r\n"),
    BAD("GET http://b.com/x HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET http://u@a.com/ HTTP/1.1\r\nHost: u@a.com\r\n\r\n"),
    BAD("GET https://a.com/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET a.com HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET http:// HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET /#x HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET * HTTP/1.1\r\n" HOST "\r\n"),
    ROW("CONNECT a.com:443 HTTP/1.1\r\n" HOST "\r\n", HEAD_WHOLE, "a.com:443"),
    ROW("CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:443\r\n\r\n", HEAD_WHOLE, "a.com:443"),
    ROW("GET http://a.com:80/ HTTP/1.1\r\n" HOST "\r\n", HEAD_WHOLE, "a.com:80"),
    BAD("CONNECT a.com:443 HTTP/1.1\r\nHost: b.com:443\r\n\r\n"),
    BAD("CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:444\r\n\r\n"),
    BAD("CONNECT a.com HTTP/1.1\r\n" HOST "\r\n"),
    BAD("CONNECT / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("CONNECT http://a.com:443 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("CONNECT a.com:443 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n"),
    BAD("GET http://a.com:81/ HTTP/1.1\r\n" HOST "\r\n"),
    BAD(GET HOST "Upgrade: websocket\r\nUpgrade: h2c\r\n\r\n"),
    BAD("GET /\r\n" HOST "\r\n"),
    BAD("GET  / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET / HTTP/1.1 \r\n" HOST "\r\n"),
    BAD("GET / HTTP/2.0\r\n" HOST "\r\n"),
    BAD("GET / HTTP/1.10\r\n" HOST "\r\n"),
    BAD("GET / http/1.1\r\n" HOST "\r\n"),
    BAD("GET /\x80 HTTP/1.1\r\n" HOST "\r\n"),
    BAD("\r\n" GET HOST "\r\n"),
    BAD("G\0T / HTTP/1.1\r\n" HOST "\r\n"),
    BAD("GET / HTTP/1.1\n" HOST "\r\n"),
    BAD(GET "Host: a.com\n\r\n"),
    BAD(GET HOST "\n"),
    BAD(GET HOST "A: b\rc\r\n\r\n"),
    BAD(GET HOST "A: b\0c\r\n\r\n"),
    BAD(GET HOST " folded: yes\r\n\r\n"),
    BAD(GET HOST "A : b\r\n\r\n"),
    BAD(GET HOST ": b\r\n\r\n"),
    BAD(GET HOST "no colon\r\n\r\n"),
    BAD(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
    BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    BAD(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
    BAD(POST "Content-Length: 5, 5\r\n\r\n"),
    BAD(POST "Content-Length: +5\r\n\r\n"),
    BAD(POST "Content-Length: 05\r\n\r\n"),
    BAD(POST "Content-Length: 0x5\r\n\r\n"),
    BAD(POST "Content-Length: -0\r\n\r\n"),
    BAD(POST "Content-Length: 18446744073709551616\r\n\r\n"),
    BAD(POST "Content-Length:\r\n\r\n"),
    BAD(POST "Transfer-Encoding: chunked, identity\r\n\r\n"),
    BAD(POST "Transfer-Encoding: xchunked\r\n\r\n"),
    BAD(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    BAD(POST "Transfer-Encoding : chunked\r\n\r\n"),
    BAD(POST "Transfer-Encoding:\x0b"
             "chunked\r\n\r\n"),
    BAD("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"),
};

static void a_head_is_read_in_one_way_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *why = NULL;
        struct head head;
        enum head_read read = head_read(rows[i].bytes, rows[i].len, &head, &why);

        if (read != rows[i].read || (rows[i].host && (head.host.len != strlen(rows[i].host) ||
                                                      memcmp(head.host.at, rows[i].host, head.host.len) != 0)))
            fail_msg("row %zu: %d (%s): %s", i, read, why, rows[i].bytes);
    }
}

static void fields_that_some_take_for_the_method_or_the_path_are_noticed(void **state)
{
    static const struct {
        const char *bytes;
        bool overridden;
    } heads[] = {
        { GET HOST "X-HTTP-Method-Override: DELETE\r\n\r\n", true },
        { GET HOST "x-http_method:DELETE\r\n\r\n", true },
        { GET HOST "X-Original-URL: /b\r\n\r\n", true },
        { GET HOST "X-Rewrite-URL:\r\n\r\n", true },
        { GET HOST "X-Original: /b\r\nX-Forwarded-For: a\r\n\r\n", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        const char *why = NULL;
        struct head head;

        assert_int_equal(head_read(heads[i].bytes, strlen(heads[i].bytes), &head, &why), HEAD_WHOLE);
        assert_int_equal(head.overridden, heads[i].overridden);
    }
}

static void a_head_without_end_is_refused(void **state)
{
    static char bytes[HEAD_MAX];
    struct head head;
    const char *why;

    (void)state;
    memset(bytes, 'A', sizeof bytes);
    assert_int_equal(head_read(bytes, sizeof bytes - 1, &head, &why), HEAD_MORE);
    assert_int_equal(head_read(bytes, sizeof bytes, &head, &why), HEAD_BAD);
}

/* What goes on, of what came. */
static const struct {
    const char *came, *goes;
} written[] = {
    { "GET http://A.com/x?y HTTP/1.1\r\nHost: A.com\r\nConnection: keep-alive, X-One\r\nX-One:  1\r\n"
      "Upgrade: h2c\r\nHTTP2-Settings: x\r\nProxy-Authorization: secret\r\nTE: trailers\r\n\r\nrest",
      "GET /x?y HTTP/1.1\r\nHost: a.com\r\nX-One: 1\r\n\r\n" },
    { "GET / HTTP/1.0\r\nHost: a.com\r\nKeep-Alive: 3\r\n\r\nrest", "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n" },
    { "POST / HTTP/1.1\r\nHost: a.com\r\ncontent-length:  5\r\nExpect: 100-continue\r\n\r\nrest",
      "POST / HTTP/1.1\r\nHost: a.com\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n" },
    { "POST / HTTP/1.1\r\nHost: a.com\r\ntransfer-encoding: CHUNKED\r\n\r\nrest",
      "POST / HTTP/1.1\r\nHost: a.com\r\nTransfer-Encoding: chunked\r\n\r\n" },
    { "GET / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 4\r\n\r\nrest", /* servers may take its body for a
                                                                           request */
      "GET / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 4\r\nConnection: close\r\n\r\n" },
    { "post / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 4\r\n\r\nrest", /* no method that anybody knows */
      "post / HTTP/1.1\r\nHost: a.com\r\nContent-Length: 4\r\nConnection: close\r\n\r\n" },
    { "GET / HTTP/1.1\r\nHost: a.com\r\nUpgrade: WebSocket\r\nConnection: foo, upgrade\r\n\r\nrest",
      "GET / HTTP/1.1\r\nHost: a.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" },
    { "POST / HTTP/1.1\r\nHost: a.com\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nrest",
      "POST / HTTP/1.1\r\nHost: a.com\r\n\r\n" },
    { "GET / HTTP/1.1\r\nHost: a.com\r\nUpgrade: websocket\r\n\r\nrest",
      "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n" },
};

static void what_goes_on_is_written_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        autotext struct text out = TEXT_NONE;
        static struct head head;
        const char *why;

        assert_int_equal(head_read(written[i].came, strlen(written[i].came), &head, &why), HEAD_WHOLE);
        assert_int_equal(head.size, strlen(written[i].came) - strlen("rest"));
        head_write(&head, "a.com", &out);
        assert_string_equal(text_string(&out), written[i].goes);
    }
}

static void an_authority_is_a_host_and_perhaps_a_port(void **state)
{
    static const struct {
        const char *text, *host;
        unsigned port; /* 0: it is none */
    } authorities[] = { { "a.com", "a.com", 80 }, { "a.com:8080", "a.com", 8080 },
                        { "[::1]", "[::1]", 80 }, { "[::1]:81", "[::1]", 81 },
                        { "a.com:", "", 0 },      { "a.com:0", "", 0 },
                        { "a.com:65536", "", 0 }, { "a.com:8x", "", 0 },
                        { "a.com:-1", "", 0 },    { "a.com:000080", "", 0 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(authorities); i++) {
        struct head_part host, whole = { authorities[i].text, strlen(authorities[i].text) };
        uint16_t port = 80;
        bool good = head_authority(whole, &host, &port);

        if (good != (authorities[i].port != 0) ||
            (good && (port != authorities[i].port || host.len != strlen(authorities[i].host))))
            fail_msg("%s: %d, port %u", authorities[i].text, good, port);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_in_one_way_or_refused),
        cmocka_unit_test(fields_that_some_take_for_the_method_or_the_path_are_noticed),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(what_goes_on_is_written_anew),
        cmocka_unit_test(an_authority_is_a_host_and_perhaps_a_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
