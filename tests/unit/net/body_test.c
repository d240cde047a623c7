#include "net/body.h"

#include "base/array.h"
#include "base/text.h"
#include "tests/support/unit.h"

/* A chunked body as it comes: how many bytes of it are the body, and its data; -1: it is refused.  First in a
 * request, then in an answer. */
static const struct row {
    const char *bytes;
    int64_t taken, lenient;
    bool over;
    const char *data;
} rows[] = {
    { "5\r\nhello\r\n0\r\n\r\nGET /", 15, 15, true, "hello" },
    { "a\r\n0123456789\r\n", 15, 15, false, "0123456789" },
    { "00005\r\nhello\r\n0\r\n\r\n", 19, 19, true, "hello" },
    { "A\r\n01", 5, 5, false, "01" },
    { "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", 20, 20, true, "abcde" },
    { "5;ext=1\r\nhello\r\n0\r\n\r\nX", -1, 21, true, "hello" },
    { "5 \r\nhello\r\n0\r\n\r\n", -1, 16, true, "hello" },
    { "0\r\nTrailer: x\r\nY: z\r\n\r\nX", -1, 23, true, "" },
    { "5;ext=\"\n\"\r\nhello\r\n", -1, -1, false, NULL },
    { "5;a\rb\r\nhello\r\n", -1, -1, false, NULL },
    { "0\r\nA: b\n\r\n\r\n", -1, -1, false, NULL },
    { "0\r\n folded: x\r\n\r\n", -1, -1, false, NULL },
    { ";x\r\nhello", -1, -1, false, NULL },
    { "0x5\r\nhello\r\n", -1, -1, false, NULL },
    { "5\nhello\r\n", -1, -1, false, NULL },
    { "\r\nhello", -1, -1, false, NULL },
    { "-5\r\nhello\r\n", -1, -1, false, NULL },
    { "5\r\nhelloX\r\n", -1, -1, false, NULL },
    { "5\r\nhello\n0\r\n", -1, -1, false, NULL },
    { "0\r\n\n", -1, -1, false, NULL },
    { "10000000000000000\r\n", -1, -1, false, NULL },
};

/* So many at a time. */
static int64_t take(struct body *body, const char *bytes, size_t len, size_t step, struct text *data)
{
    int64_t sum = 0, took = 1;

    for (size_t at = 0; at < len && !body->over; at += (size_t)took) {
        struct head_part part;

        took = body_next(body, bytes + at, len - at < step ? len - at : step, &part);
        if (took < 0)
            return -1;
        text_add_bytes(data, part.at, part.len);
        sum += took;
    }
    return sum;
}

static void check(const struct row *row, bool lenient, size_t step)
{
    int64_t wanted = lenient ? row->lenient : row->taken;
    autotext struct text data = TEXT_NONE;
    struct body body;

    body_begin(&body, HEAD_CHUNKED, 0, lenient);
    int64_t taken = take(&body, row->bytes, strlen(row->bytes), step, &data);

    if (taken != wanted ||
        (taken >= 0 && (body.over != row->over || strcmp(text_string(&data), row->data) != 0)))
        fail_msg("%s: %lld by %zu, %s", row->bytes, (long long)taken, step, text_string(&data));
}

static void a_chunked_body_ends_where_everybody_thinks_it_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t step = 1; step <= 64; step += step == 1 ? 2 : 61) {
            check(&rows[i], false, step);
            check(&rows[i], true, step);
        }
}

static void trailers_without_end_are_refused(void **state)
{
    autotext struct text data = TEXT_NONE;
    struct body body;

    (void)state;
    body_begin(&body, HEAD_CHUNKED, 0, true);
    assert_int_equal(take(&body, "0\r\n", 3, 3, &data), 3);
    for (int i = 0; i < 10000; i++)
        if (take(&body, "X: yy\r\n", 7, 7, &data) < 0)
            return;
    fail();
}

static void a_body_of_a_length_is_as_long_as_that(void **state)
{
    struct head_part data;
    struct body body;

    (void)state;
    body_begin(&body, HEAD_LENGTH, 5, false);
    assert_int_equal(body_next(&body, "abc", 3, &data), 3);
    assert_false(body.over);
    assert_int_equal(body_next(&body, "deGET", 5, &data), 2);
    assert_int_equal(data.len, 2);
    assert_true(body.over);
    assert_int_equal(body_next(&body, "GET", 3, &data), 0);
    body_begin(&body, HEAD_NO_BODY, 0, false);
    assert_int_equal(body_next(&body, "GET", 3, &data), 0);
    body_begin(&body, HEAD_UNTIL_CLOSE, 0, true);
    assert_int_equal(body_next(&body, "GET", 3, &data), 3);
    assert_false(body.over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunked_body_ends_where_everybody_thinks_it_does),
        cmocka_unit_test(trailers_without_end_are_refused),
        cmocka_unit_test(a_body_of_a_length_is_as_long_as_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
