#include "gateway/tape.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "tests/support/unit.h"

#include <string.h>

static const char hash_a[] = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
                  hash_b[] = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d",
                  hash_c[] = "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6";

static void add_line(const char *method, const char *path, const char *hash, const char *answer, bool cut,
                     struct text *out)
{
    text_addf(out,
              "{\"time\":\"2026-01-31T12:00:00.000Z\",\"host\":\"a.test\",\"port\":443,\"method\":\"%s\","
              "\"path\":\"%s\",\"request\":{\"headers\":[],\"body\":\"\",\"size\":1,\"sha256\":\"%s\"},"
              "\"status\":200,\"reason\":\"OK\",\"response\":{\"headers\":[],\"body\":\"%s\",\"size\":1,"
              "\"sha256\":\"%s\",\"cut\":%s}}\n",
              method, path, hash, answer, hash, cut ? "true" : "false");
}

static void read_tape(const struct text *lines, struct tape *tape)
{
    struct error err;

    if (tape_read(text_string(lines), lines->len, tape, &err) < 0)
        fail_msg("%s", err.text);
}

static void what_was_recorded_is_told_from_what_was_not(void **state)
{
    static const struct {
        struct tape_question question;
        enum tape_answer answer;
    } rows[] = {
        { { "a.test", 443, "GET", "/x?y" }, TAPE_HAS },
        { { "a.test", 443, NULL, NULL }, TAPE_HAS },
        { { "a.test", 443, "GET", "/x" }, TAPE_NOTHING },
        { { "a.test", 443, "HEAD", "/x?y" }, TAPE_NOTHING },
        { { "a.test", 443, "get", "/x?y" }, TAPE_NOTHING },
        { { "a.test", 80, "GET", "/x?y" }, TAPE_NO_HOST },
        { { "b.test", 443, "GET", "/x?y" }, TAPE_NO_HOST },
        { { "a.test", 443, "GET", "/cut" }, TAPE_NOT_WHOLE },
        { { "b.test", 443, NULL, NULL }, TAPE_NO_HOST },
    };
    autotext struct text lines = TEXT_NONE;
    autotape struct tape tape = TAPE_NONE;

    (void)state;
    add_line("GET", "/x?y", hash_a, "1", false, &lines);
    add_line("GET", "/cut", hash_a, "1", true, &lines);
    read_tape(&lines, &tape);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(tape_look(&tape, &rows[i].question), rows[i].answer);
}

static void of_several_the_body_decides_and_then_the_order(void **state)
{
    static const struct {
        const char *hash, *answer;
    } rows[] = { { hash_a, "1" }, { hash_b, "2" }, { hash_a, "3" }, { hash_a, "3" },
                 { hash_b, "2" }, { hash_c, "4" }, { hash_c, "4" } };
    const struct tape_question question = { "a.test", 443, "POST", "/x" };
    autotext struct text lines = TEXT_NONE;
    autotape struct tape tape = TAPE_NONE;

    (void)state;
    add_line("POST", "/x", hash_a, "1", false, &lines);
    add_line("POST", "/x", hash_b, "2", false, &lines);
    add_line("POST", "/x", hash_a, "cut", true, &lines);
    add_line("POST", "/x", hash_a, "3", false, &lines);
    add_line("POST", "/x", hash_b, "2", false, &lines);
    add_line("POST", "/x", hash_c, "4", false, &lines);
    read_tape(&lines, &tape);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(text_string(&tape_take(&tape, &question, rows[i].hash)->response.body),
                            rows[i].answer);
}

static void what_is_no_line_is_counted_and_passed_over(void **state)
{
    autotext struct text lines = TEXT_NONE;
    autotape struct tape tape = TAPE_NONE;

    (void)state;
    add_line("GET", "/x", hash_a, "1", false, &lines);
    text_add(&lines, "\n{\"half\": \n[]\nnull\n");
    add_line("GET", "/y", hash_a, "1", false, &lines);
    add_line("GET", "no path", hash_a, "1", false, &lines);
    text_cut(&lines, lines.len - 1);
    read_tape(&lines, &tape);
    assert_int_equal(tape.len, 2);
    assert_int_equal(tape.broken, 4);
    assert_int_equal(tape.first_bad, 3);
}

static void repeat(const char *part, struct text *out)
{
    while (out->len + strlen(part) <= TAKE_BODY_MAX)
        text_add(out, part);
}

/* Characters of which each is several as JSON has it. */
static void the_largest_bodies_fit_into_a_line_whatever_is_in_them(void **state)
{
    static const char *const parts[] = { "\xc2\x85", "abc\x01", "\xff" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        autotake struct take take = TAKE_NONE;
        autotext struct text line = TEXT_NONE;
        autotape struct tape tape = TAPE_NONE;

        take.host = text_copy("a.test");
        take.method = text_copy("POST");
        take.path = text_copy("/");
        take.reason = text_copy("OK");
        take.port = 443;
        take.status = 200;
        take.request.sha256 = text_copy(hash_a);
        take.response.sha256 = text_copy(hash_b);
        repeat(parts[i], &take.request.body);
        repeat(parts[i], &take.response.body);
        take_write(&take, &line);
        assert_true(line.len <= TAKE_LINE_MAX);
        read_tape(&line, &tape);
        assert_int_equal(tape.len, 1);
        assert_int_equal(tape.items[0].take.response.body.len, take.response.body.len);
        assert_memory_equal(tape.items[0].take.response.body.data, take.response.body.data,
                            take.response.body.len);
    }
}

static void secrets_are_known_by_the_name_of_their_field(void **state)
{
    static const char *const secret[] = { "Authorization",
                                          "authorization",
                                          "Proxy-Authorization",
                                          "Cookie",
                                          "Set-Cookie",
                                          "X-API-Key",
                                          "apikey",
                                          "X-Auth-Token",
                                          "X-Amz-Security-Token",
                                          "X-CSRF-Token",
                                          "X-Client-Secret",
                                          "X-Auth-Key",
                                          "X-Auth",
                                          "X-Passwd",
                                          "X-Functions-Key",
                                          "X-Access-Key",
                                          "Npm-Otp",
                                          "X-Jwt-Assertion",
                                          "Authentication",
                                          "Ocp-Apim-Subscription-Key" };
    static const char *const plain[] = { "Accept", "WWW-Authenticate", "Content-Type", "Location", "ETag" };
    struct take_message message = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(secret); i++)
        assert_true(take_is_secret(secret[i]));
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        assert_false(take_is_secret(plain[i]));
    take_add_field(&message, "Cookie", "a", false);
    take_add_field(&message, "Cookie", "a", true);
    take_add_field(&message, "Accept", "a", false);
    assert_string_equal(message.fields.items[0].value, hash_a);
    assert_true(message.fields.items[0].hashed);
    assert_string_equal(message.fields.items[1].value, "a");
    assert_string_equal(message.fields.items[2].value, "a");

    struct take take = { .response = message };

    take_free(&take);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_recorded_is_told_from_what_was_not),
        cmocka_unit_test(of_several_the_body_decides_and_then_the_order),
        cmocka_unit_test(what_is_no_line_is_counted_and_passed_over),
        cmocka_unit_test(the_largest_bodies_fit_into_a_line_whatever_is_in_them),
        cmocka_unit_test(secrets_are_known_by_the_name_of_their_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
