#include "net/h2.h"

#include "base/array.h"
#include "net/head.h"
#include "tests/support/unit.h"

#include <string.h>

enum { FIELDS = 12 };

struct field {
    const char *name, *value;
    size_t value_len; /* 0: to its end */
};

#define PARTS(method, path)                                                                                    \
    { ":method", method }, { ":scheme", "https" }, { ":authority", "a.com" },                                  \
    {                                                                                                          \
        ":path", path                                                                                          \
    }
#define GET PARTS("GET", "/")
#define POST PARTS("POST", "/")

static const char *write(const struct field *fields, bool ended, struct text *out, enum head_body *body)
{
    struct h2_head head = { 0 };
    const char *why;
    uint64_t length;

    for (size_t i = 0; i < FIELDS && fields[i].name; i++) {
        size_t len = fields[i].value_len ? fields[i].value_len : strlen(fields[i].value);

        h2_head_add(&head, (struct head_part){ fields[i].name, strlen(fields[i].name) },
                    (struct head_part){ fields[i].value, len });
    }
    why = h2_head_write(&head, ended, out, body, &length);
    h2_head_free(&head);
    return why;
}

static void a_request_says_the_same_in_http_1(void **state)
{
    static const struct {
        struct field fields[FIELDS];
        bool ended;
        const char *text;
        enum head_body body;
    } rows[] = {
        { { GET }, true, "GET / HTTP/1.1\r\nhost: a.com\r\n\r\n", HEAD_NO_BODY },
        { { PARTS("OPTIONS", "*") }, true, "OPTIONS * HTTP/1.1\r\nhost: a.com\r\n\r\n", HEAD_NO_BODY },
        { { PARTS("GET", "/a?b=%20c&d") },
          true,
          "GET /a?b=%20c&d HTTP/1.1\r\nhost: a.com\r\n\r\n",
          HEAD_NO_BODY },
        { { { ":method", "GET" }, { ":scheme", "https" }, { ":path", "/" }, { "host", "b.com:8" } },
          true,
          "GET / HTTP/1.1\r\nhost: b.com:8\r\n\r\n",
          HEAD_NO_BODY },
        { { GET, { "host", "A.com" } }, true, "GET / HTTP/1.1\r\nhost: a.com\r\n\r\n", HEAD_NO_BODY },
        { { GET, { "x", "" }, { "y", "\x80 z" } },
          true,
          "GET / HTTP/1.1\r\nhost: a.com\r\nx: \r\ny: \x80 z\r\n\r\n",
          HEAD_NO_BODY },
        { { GET, { "cookie", "a=1" }, { "x", "y" }, { "cookie", "b=2" } },
          true,
          "GET / HTTP/1.1\r\nhost: a.com\r\nx: y\r\ncookie: a=1; b=2\r\n\r\n",
          HEAD_NO_BODY },
        { { GET, { "te", "trailers" } },
          true,
          "GET / HTTP/1.1\r\nhost: a.com\r\nte: trailers\r\n\r\n",
          HEAD_NO_BODY },
        { { POST }, true, "POST / HTTP/1.1\r\nhost: a.com\r\ncontent-length: 0\r\n\r\n", HEAD_NO_BODY },
        { { POST },
          false,
          "POST / HTTP/1.1\r\nhost: a.com\r\ntransfer-encoding: chunked\r\n\r\n",
          HEAD_CHUNKED },
        { { POST, { "content-length", "5" } },
          false,
          "POST / HTTP/1.1\r\nhost: a.com\r\ncontent-length: 5\r\n\r\n",
          HEAD_LENGTH },
        { { POST, { "content-length", "0" } },
          true,
          "POST / HTTP/1.1\r\nhost: a.com\r\ncontent-length: 0\r\n\r\n",
          HEAD_LENGTH },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autotext struct text out = TEXT_NONE;
        enum head_body body = HEAD_UNTIL_CLOSE;

        assert_null(write(rows[i].fields, rows[i].ended, &out, &body));
        assert_string_equal(text_string(&out), rows[i].text);
        assert_int_equal(body, rows[i].body);
    }
}

/* Each is one request to us, and would be something else, or two, to somebody behind us. */
static void what_http_1_would_read_otherwise_is_refused(void **state)
{
    static const struct {
        struct field fields[FIELDS];
        const char *why;
    } rows[] = {
        { { GET, { "x", "a\r\nhost: b.com" } }, "byte" },
        { { GET, { "x", "a\r\n\r\nGET /b HTTP/1.1\r\nhost: b.com" } }, "byte" },
        { { GET, { "x", "a\nb" } }, "byte" },
        { { GET, { "x", "a\rb" } }, "byte" },
        { { GET, { "x", "a\0b", 3 } }, "byte" },
        { { GET, { "x", "a\x7f" } }, "byte" },
        { { GET, { "x: y\r\nz", "a" } }, "byte" },
        { { GET, { "x ", "a" } }, "byte" },
        { { GET, { "x:", "a" } }, "byte" },
        { { GET, { "", "a" } }, "byte" },
        { { GET, { "X", "a" } }, "byte" },
        { { GET, { "cookie", "a\r\nb: c" } }, "byte" },
        { { GET, { "host", "a.com\r\nb: c" } }, "byte" },
        { { PARTS("GET", "/ HTTP/1.1\r\nx: y") }, "byte" },
        { { PARTS("GET", "/a b") }, "byte" },
        { { PARTS("GET", "/\t") }, "byte" },
        { { PARTS("GET", "/\x80") }, "byte" },
        { { PARTS("GET", "") }, "byte" },
        { { PARTS("GET /b HTTP/1.1\r\n", "/") }, "byte" },
        { { PARTS("G,T", "/") }, "method" },
        { { PARTS("GET", "a") }, "slash" },
        { { PARTS("GET", "http://b.com/") }, "slash" },
        { { PARTS("GET", "*") }, "neither a path" },
        { { PARTS("GET", "/#x") }, "first line" },
        { { PARTS("CONNECT", "/") }, "CONNECT" },
        { { { ":method", "CONNECT" }, { ":authority", "a.com:443" } }, "CONNECT" },
        { { { ":method", "GET" }, { ":scheme", "http" }, { ":authority", "a.com" }, { ":path", "/" } },
          "scheme" },
        { { { ":method", "GET" }, { ":authority", "a.com" }, { ":path", "/" } }, "scheme" },
        { { { ":scheme", "https" }, { ":authority", "a.com" }, { ":path", "/" } }, "method" },
        { { { ":method", "GET" }, { ":scheme", "https" }, { ":authority", "a.com" } }, "path" },
        { { { ":method", "GET" }, { ":scheme", "https" }, { ":path", "/" } }, "names no host" },
        { { GET, { "host", "b.com" } }, "more than one host" },
        { { GET, { "host", "a.com" }, { "host", "a.com" } }, "more than one host" },
        { { GET, { "host", "" } }, "more than one host" },
        { { GET, { ":path", "/b" } }, "once" },
        { { GET, { ":authority", "b.com" } }, "once" },
        { { { ":method", "GET" }, { "x", "y" }, { ":scheme", "https" } }, "once" },
        { { GET, { ":status", "200" } }, "part" },
        { { GET, { ":protocol", "websocket" } }, "part" },
        { { GET, { "connection", "close" } }, "connection" },
        { { GET, { "keep-alive", "5" } }, "connection" },
        { { GET, { "proxy-connection", "x" } }, "connection" },
        { { GET, { "upgrade", "h2c" } }, "connection" },
        { { GET, { "te", "gzip" } }, "connection" },
        { { POST, { "transfer-encoding", "chunked" } }, "connection" },
        { { POST, { "transfer_encoding", "chunked" } }, "length" },
        { { POST, { "content-length", "5" }, { "content-length", "5" } }, "length" },
        { { POST, { "content-length", "5, 5" } }, "Content-Length" },
        { { POST, { "content-length", "+5" } }, "Content-Length" },
        { { POST, { "content-length", "0x5" } }, "Content-Length" },
        { { POST, { "content-length", "5" } }, "has none" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autotext struct text out = TEXT_NONE;
        enum head_body body = HEAD_UNTIL_CLOSE;
        const char *why = write(rows[i].fields, true, &out, &body);

        if (!why || !strstr(why, rows[i].why))
            fail_msg("row %zu: %s, wanted %s", i, why ? why : text_string(&out), rows[i].why);
        assert_int_equal(out.len, 0);
        assert_int_equal(body, HEAD_UNTIL_CLOSE);
    }
}

static void a_head_that_is_too_long_is_refused_and_not_kept(void **state)
{
    struct h2_head head = { 0 };
    autotext struct text out = TEXT_NONE;
    char value[1000];
    enum head_body body;
    uint64_t length;

    (void)state;
    memset(value, 'x', sizeof value);
    for (int i = 0; i < 10000; i++)
        h2_head_add(&head, (struct head_part){ "x", 1 }, (struct head_part){ value, sizeof value });
    assert_true(head.fields.cap < (size_t)4 * HEAD_MAX);
    assert_string_equal(h2_head_write(&head, true, &out, &body, &length), "its head is too long");
    h2_head_clear(&head);
    assert_null(head.why);
    h2_head_free(&head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_says_the_same_in_http_1),
        cmocka_unit_test(what_http_1_would_read_otherwise_is_refused),
        cmocka_unit_test(a_head_that_is_too_long_is_refused_and_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
