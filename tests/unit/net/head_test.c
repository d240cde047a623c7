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
    BAD("CONNECT a.com:443 HTTP/1.1\r\n" HOST "\r\n"),
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

static void what_goes_on_is_the_only_request_of_its_connection(void **state)
{
    static const char bytes[] =
        "GET http://A.com/x?y HTTP/1.1\r\nHost: A.com\r\nConnection: keep-alive, X-One\r\n"
        "X-One:  1\r\nUpgrade: h2c\r\nProxy-Authorization: secret\r\nTE: trailers\r\n\r\nrest";
    autotext struct text out = TEXT_NONE;
    struct head head;
    const char *why;

    (void)state;
    assert_int_equal(head_read(bytes, sizeof bytes - 1, &head, &why), HEAD_WHOLE);
    assert_int_equal(head.size, sizeof bytes - 1 - strlen("rest"));
    head_write(&head, "a.com", &out);
    assert_string_equal(text_string(&out),
                        "GET /x?y HTTP/1.1\r\nHost: a.com\r\nX-One: 1\r\nConnection: close\r\n\r\n");
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

/* A body as it comes: how many bytes of it are the body; -1: it is refused. */
static const struct body_row {
    const char *bytes;
    int64_t taken;
    bool over;
} bodies[] = {
    { "5\r\nhello\r\n0\r\n\r\nGET /", 15, true },
    { "a\r\n0123456789\r\n", 15, false },
    { "00005\r\nhello\r\n0\r\n\r\n", 19, true },
    { "A\r\n01", 5, false },
    { "5;ext=1\r\nhello\r\n0\r\n\r\n", -1, false },
    { "0x5\r\nhello\r\n", -1, false },
    { "5\nhello\r\n", -1, false },
    { "\r\nhello", -1, false },
    { "-5\r\nhello\r\n", -1, false },
    { "5\r\nhelloX\r\n", -1, false },
    { "5\r\nhello\n0\r\n", -1, false },
    { "0\r\nTrailer: x\r\n\r\n", -1, false },
    { "0\r\n\n", -1, false },
    { "10000000000000000\r\n", -1, false },
};

static void a_chunked_body_ends_where_everybody_thinks_it_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct body body;
        size_t len = strlen(bodies[i].bytes);

        body_begin(&body, &(struct head){ .body = HEAD_CHUNKED });
        int64_t taken = body_take(&body, bodies[i].bytes, len);

        if (taken != bodies[i].taken || (taken >= 0 && body.over != bodies[i].over))
            fail_msg("%s: %lld", bodies[i].bytes, (long long)taken);
        /* The same byte by byte. */
        int64_t sum = 0;

        body_begin(&body, &(struct head){ .body = HEAD_CHUNKED });
        for (size_t b = 0; b < len && sum >= 0; b++) {
            int64_t one = body_take(&body, bodies[i].bytes + b, 1);

            sum = one < 0 ? -1 : sum + one;
        }
        assert_int_equal(sum, bodies[i].taken);
    }
}

static void a_body_of_a_length_is_as_long_as_that(void **state)
{
    struct body body;

    (void)state;
    body_begin(&body, &(struct head){ .body = HEAD_LENGTH, .length = 5 });
    assert_int_equal(body_take(&body, "abc", 3), 3);
    assert_false(body.over);
    assert_int_equal(body_take(&body, "deGET", 5), 2);
    assert_true(body.over);
    body_begin(&body, &(struct head){ .body = HEAD_NO_BODY });
    assert_int_equal(body_take(&body, "GET", 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read_in_one_way_or_refused),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(what_goes_on_is_the_only_request_of_its_connection),
        cmocka_unit_test(an_authority_is_a_host_and_perhaps_a_port),
        cmocka_unit_test(a_chunked_body_ends_where_everybody_thinks_it_does),
        cmocka_unit_test(a_body_of_a_length_is_as_long_as_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
