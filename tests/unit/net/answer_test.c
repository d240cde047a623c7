#include "net/answer.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* An answer and how its body ends, to a request with GET and with HEAD; -1: it is refused, -2: it is not whole.
 */
static const struct row {
    const char *bytes;
    int get, head;
} rows[] = {
    { OK "Content-Length: 5\r\n\r\n", HEAD_LENGTH, HEAD_NO_BODY },
    { OK "Content-Length: 0\r\n\r\n", HEAD_LENGTH, HEAD_NO_BODY },
    { OK "Transfer-Encoding: chunked\r\n\r\n", HEAD_CHUNKED, HEAD_NO_BODY },
    { OK "\r\n", HEAD_UNTIL_CLOSE, HEAD_NO_BODY },
    { "HTTP/1.0 200 OK\r\n\r\n", HEAD_UNTIL_CLOSE, HEAD_NO_BODY },
    { "HTTP/1.1 200\r\n\r\n", HEAD_UNTIL_CLOSE, HEAD_NO_BODY },
    { "HTTP/1.1 404 \xc3\xa9 not here\r\nX: \xc3\xa9\r\n\r\n", HEAD_UNTIL_CLOSE, HEAD_NO_BODY },
    { "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", HEAD_NO_BODY, HEAD_NO_BODY },
    { "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", HEAD_NO_BODY, HEAD_NO_BODY },
    { "HTTP/1.1 100 Continue\r\n\r\n", HEAD_NO_BODY, HEAD_NO_BODY },
    { OK "Content-Length: 5\r\n", -2, -2 },
    { "HTTP/1", -2, -2 },
    { OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", -1, -1 },
    { OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", -1, -1 },
    { OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", -1, -1 },
    { OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", -1, -1 },
    { OK "Content-Length: 5, 5\r\n\r\n", -1, -1 },
    { OK "Content-Length: +5\r\n\r\n", -1, -1 },
    { OK "Content-Length: 05\r\n\r\n", -1, -1 },
    { OK "Content-Length:\r\n\r\n", -1, -1 },
    { OK "Transfer-Encoding: gzip, chunked\r\n\r\n", -1, -1 },
    { OK "Transfer-Encoding: identity\r\n\r\n", -1, -1 },
    { OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", -1, -1 },
    { OK "Transfer-Encoding : chunked\r\n\r\n", -1, -1 },
    { OK "A: b\r\n Transfer-Encoding: chunked\r\n\r\n", -1, -1 },
    { OK "A: b\nC: d\r\n\r\n", -1, -1 },
    { OK "A: b\rC: d\r\n\r\n", -1, -1 },
    { OK "no colon\r\n\r\n", -1, -1 },
    { "HTTP/1.1 200 OK\n\r\n", -1, -1 },
    { "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", -1, -1 },
    { "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", -1, -1 },
    { "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n", -1, -1 },
    { "HTTP/1.1 101 Now\r\nTransfer-Encoding: chunked\r\n\r\n", -1, -1 },
    { "HTTP/2 200 OK\r\n\r\n", -1, -1 },
    { "HTTP/1.1  200 OK\r\n\r\n", -1, -1 },
    { "HTTP/1.1 20 OK\r\n\r\n", -1, -1 },
    { "HTTP/1.1 2000 OK\r\n\r\n", -1, -1 },
    { "HTTP/1.1 099 OK\r\n\r\n", -1, -1 },
    { "HTTP/1.1 600 OK\r\n\r\n", -1, -1 },
    { "HTTP/1.1 2x0 OK\r\n\r\n", -1, -1 },
    { "http/1.1 200 OK\r\n\r\n", -1, -1 },
    { "\r\nHTTP/1.1 200 OK\r\n\r\n", -1, -1 },
    { "220 hello\r\n\r\n", -1, -1 },
};

static int body_of(const struct row *row, bool to_head)
{
    static struct answer answer;
    const char *why;
    enum head_read read = answer_read(row->bytes, strlen(row->bytes), to_head, &answer, &why);

    return read == HEAD_WHOLE ? (int)answer.body : read == HEAD_BAD ? -1 : -2;
}

static void an_answer_is_read_in_one_way_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (body_of(&rows[i], false) != rows[i].get || body_of(&rows[i], true) != rows[i].head)
            fail_msg("row %zu: %d %d: %s", i, body_of(&rows[i], false), body_of(&rows[i], true), rows[i].bytes);
}

static void an_answer_without_end_is_refused(void **state)
{
    static char bytes[ANSWER_MAX];
    static struct answer answer;
    const char *why;

    (void)state;
    memset(bytes, 'A', sizeof bytes);
    assert_int_equal(answer_read(bytes, sizeof bytes - 1, false, &answer, &why), HEAD_MORE);
    assert_int_equal(answer_read(bytes, sizeof bytes, false, &answer, &why), HEAD_BAD);
}

/* What came, and what goes on to a client of HTTP/1.1 that stays, and to one of HTTP/1.0. */
static const struct {
    const char *came, *now, *old;
} written[] = {
    { OK "A: b\r\nConnection: close, x\r\nKeep-Alive: 5\r\nContent-Length: 5\r\n\r\n",
      OK "A: b\r\nContent-Length: 5\r\n\r\n", OK "A: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\n" },
    { OK "transfer-encoding: chunked\r\nTrailer: X\r\n\r\n", OK "Transfer-Encoding: chunked\r\n\r\n",
      OK "Connection: close\r\n\r\n" },
    { "HTTP/1.0 200 OK\r\nA: b\r\n\r\n", OK "A: b\r\nTransfer-Encoding: chunked\r\n\r\n",
      OK "A: b\r\nConnection: close\r\n\r\n" },
    { "HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n",
      "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n" },
    { "HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n", "HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n",
      "HTTP/1.1 304 No\r\nContent-Length: 7\r\nConnection: close\r\n\r\n" },
    { "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n",
      "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" },
};

static void what_goes_on_is_written_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        autotext struct text now = TEXT_NONE, old = TEXT_NONE;
        static struct answer answer;
        const char *why;

        assert_int_equal(answer_read(written[i].came, strlen(written[i].came), false, &answer, &why),
                         HEAD_WHOLE);
        answer_write(&answer, false, false, &now);
        answer_write(&answer, true, true, &old);
        assert_string_equal(text_string(&now), written[i].now);
        assert_string_equal(text_string(&old), written[i].old);
    }
}

static bool note_status(void *whose, const struct answer *answer)
{
    text_addf(whose, "%u ", answer->status);
    return answer->status != 599;
}

/* Both pieces; how many bytes of the last one that was taken belong to heads. */
static ssize_t in_two(const char *bytes, size_t first, struct text *statuses, struct text *heard)
{
    ssize_t took = answer_heads(heard, bytes, first, false, note_status, statuses);

    if (took < 0 || (size_t)took < first)
        return took;
    if (heard->len == 0 && strstr(text_string(statuses), "200"))
        return took;
    took = answer_heads(heard, bytes + first, strlen(bytes) - first, false, note_status, statuses);
    return took < 0 ? took : took + (ssize_t)first;
}

static void heads_that_come_in_pieces_are_each_taken_once(void **state)
{
    static const char heads[] = "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" OK "\r\n";
    autofree char *all = text_format("%sbody", heads);

    (void)state;
    for (size_t first = 0; first <= strlen(all); first++) {
        autotext struct text statuses = TEXT_NONE, heard = TEXT_NONE;

        assert_int_equal(in_two(all, first, &statuses, &heard), strlen(heads));
        assert_string_equal(text_string(&statuses), "100 103 200 ");
        assert_int_equal(heard.len, 0);
    }
}

static void who_hears_only_heads_for_the_time_being_keeps_none(void **state)
{
    static const char head[] = "HTTP/1.1 100 Go\r\n\r\nHTTP";
    autotext struct text statuses = TEXT_NONE, heard = TEXT_NONE;

    (void)state;
    assert_int_equal(answer_heads(&heard, head, strlen(head), false, note_status, &statuses), strlen(head));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(answer_heads(&heard, head + 4, strlen(head) - 4, false, note_status, &statuses),
                         strlen(head) - 4);
    assert_int_equal(heard.len, 4);
    assert_int_equal(statuses.len, 1001 * strlen("100 "));
}

static void who_wants_no_more_heads_ends_it(void **state)
{
    static const char refused[] = "HTTP/1.1 599 No\r\n\r\n";
    autotext struct text statuses = TEXT_NONE, heard = TEXT_NONE;

    (void)state;
    assert_int_equal(answer_heads(&heard, refused, strlen(refused), false, note_status, &statuses), -1);
    assert_int_equal(answer_heads(&heard, "no answer\r\n", 11, false, note_status, &statuses), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_read_in_one_way_or_refused),
        cmocka_unit_test(an_answer_without_end_is_refused),
        cmocka_unit_test(what_goes_on_is_written_anew),
        cmocka_unit_test(heads_that_come_in_pieces_are_each_taken_once),
        cmocka_unit_test(who_hears_only_heads_for_the_time_being_keeps_none),
        cmocka_unit_test(who_wants_no_more_heads_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
