#include "net/dns.h"

#include "base/array.h"
#include "tests/support/unit.h"

#define HEADER(flags, questions, answers) "\x12\x34" flags "\0" questions "\0" answers "\0\0\0\0"
#define ASKS HEADER("\1\0", "\1", "\0")

/* A message of a client, as written, and what becomes of it. */
static const struct asked {
    const char *what, *bytes;
    size_t len;
    enum dns_read read;
    enum dns_code code; /* of DNS_ANSWER */
    const char *name;
} asked[] = {
#define ROW(what, bytes, ...)                                                                                  \
    {                                                                                                          \
        what, bytes, sizeof bytes - 1, __VA_ARGS__                                                             \
    }
    ROW("a name", ASKS "\3www\7example\3com\0\0\1\0\1", DNS_QUESTION, 0, "www.example.com"),
    ROW("the other family", ASKS "\3www\3com\0\0\x1c\0\1", DNS_QUESTION, 0, "www.com"),
    ROW("text", ASKS "\3www\3com\0\0\x10\0\1", DNS_QUESTION, 0, "www.com"),
    ROW("the root", ASKS "\0\0\1\0\1", DNS_QUESTION, 0, ""),
    ROW("with options behind it", ASKS "\1a\0\0\1\0\1\0\0\x29\4\xd0\0\0\0\0\0\0", DNS_QUESTION, 0, "a"),
    ROW("a transfer", ASKS "\1a\0\0\xfc\0\1", DNS_ANSWER, DNS_REFUSED, NULL),
    ROW("everything", ASKS "\1a\0\0\xff\0\1", DNS_ANSWER, DNS_REFUSED, NULL),
    ROW("another class", ASKS "\7version\4bind\0\0\x10\0\3", DNS_ANSWER, DNS_REFUSED, NULL),
    ROW("no question", HEADER("\1\0", "\0", "\0"), DNS_ANSWER, DNS_FORMERR, NULL),
    ROW("two questions", HEADER("\1\0", "\2", "\0") "\1a\0\0\1\0\1\1b\0\0\1\0\1", DNS_ANSWER, DNS_FORMERR,
        NULL),
    ROW("an update", HEADER("\x28\0", "\1", "\0") "\1a\0\0\1\0\1", DNS_ANSWER, DNS_NOTIMP, NULL),
    ROW("an answer", HEADER("\x80\0", "\1", "\0") "\1a\0\0\1\0\1", DNS_IGNORE, 0, NULL),
    ROW("too short", "\x12\x34\1", DNS_IGNORE, 0, NULL),
    ROW("cut in the name", ASKS "\3ww", DNS_ANSWER, DNS_FORMERR, NULL),
    ROW("cut behind the name", ASKS "\1a\0\0\1", DNS_ANSWER, DNS_FORMERR, NULL),
    ROW("a pointer to itself", ASKS "\xc0\x0c\0\1\0\1", DNS_ANSWER, DNS_FORMERR, NULL),
    ROW("a pointer forward", ASKS "\xc0\x20\0\1\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", DNS_ANSWER, DNS_FORMERR,
        NULL),
    ROW("a label of a kind that is none",
        ASKS "\x41"
             "a\0\0\1\0\1",
        DNS_ANSWER, DNS_FORMERR, NULL),
    ROW("a dot in a label", ASKS "\3a.b\0\0\1\0\1", DNS_ANSWER, DNS_FORMERR, NULL),
    ROW("a zero in a label", ASKS "\3a\0b\0\0\1\0\1", DNS_ANSWER, DNS_FORMERR, NULL),
};

static void messages_are_read_in_one_way_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        struct dns_question question;
        enum dns_code code = DNS_NOERROR;
        enum dns_read read =
            dns_read_question((const unsigned char *)asked[i].bytes, asked[i].len, &question, &code);

        if (read != asked[i].read || (read == DNS_ANSWER && code != asked[i].code) ||
            (asked[i].name && strcmp(asked[i].name, question.name) != 0))
            fail_msg("%s: %d, code %d, \"%s\"", asked[i].what, read, code, question.name);
    }
}

static void a_name_has_at_most_255_bytes(void **state)
{
    unsigned char bytes[512] = ASKS;
    size_t at = DNS_HEADER;
    struct dns_question question;
    enum dns_code code;

    (void)state;
    for (int i = 0; i < 5; i++) {
        bytes[at] = 63;
        memset(bytes + at + 1, 'a', 63);
        at += 64;
    }
    memcpy(bytes + at, "\0\0\1\0\1", 5);
    assert_int_equal(dns_read_question(bytes, at + 5, &question, &code), DNS_ANSWER);
    assert_int_equal(code, DNS_FORMERR);
}

static void an_answer_repeats_the_question_and_has_the_address(void **state)
{
    static const unsigned char wanted[] =
        HEADER("\x81\x80", "\1", "\1") "\1a\0\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\xc6\x12\1\2";
    static const unsigned char bytes[] = ASKS "\1a\0\0\1\0\1";
    unsigned char out[DNS_UDP_MAX];
    struct address address = address_from("\xc6\x12\1\2", 4);

    (void)state;
    assert_int_equal(dns_write_answer(bytes, sizeof bytes - 1, DNS_NOERROR, &address, 30, out),
                     sizeof wanted - 1);
    assert_memory_equal(out, wanted, sizeof wanted - 1);
    assert_int_equal(dns_write_answer(bytes, 0, DNS_FORMERR, NULL, 0, out), DNS_HEADER);
}

#define SAYS(flags, answers) HEADER(flags, "\1", answers) "\1a\1b\0\0\1\0\1"
#define A(name, address) name "\0\1\0\1\0\0\0\5\0\4" address
#define OWNER "\xc0\x0c"

/* What a server says to A of a.b, asked with the number 0x1234. */
static const struct heard {
    const char *what, *bytes;
    size_t len;
    enum dns_heard heard;
    size_t count;
} heard[] = {
    ROW("an address", SAYS("\x81\x80", "\1") A(OWNER, "\1\2\3\4"), DNS_HEARD, 1),
    ROW("in other letters", HEADER("\x81\x80", "\1", "\1") "\1A\1B\0\0\1\0\1" A("\1A\1b\0", "\1\2\3\4"),
        DNS_HEARD, 1),
    ROW("two", SAYS("\x81\x80", "\2") A(OWNER, "\1\2\3\4") A(OWNER, "\1\2\3\5"), DNS_HEARD, 2),
    ROW("an alias", SAYS("\x81\x80", "\2") OWNER "\0\5\0\1\0\0\0\5\0\3\1c\0" A("\1c\0", "\1\2\3\4"), DNS_HEARD,
        1),
    ROW("an alias behind its target",
        SAYS("\x81\x80", "\2") A("\1c\0", "\1\2\3\4") OWNER "\0\5\0\1\0\0\0\5\0\3\1c\0", DNS_HEARD, 1),
    ROW("an alias of itself", SAYS("\x81\x80", "\1") OWNER "\0\5\0\1\0\0\0\5\0\2\xc0\x0c", DNS_HEARD, 0),
    ROW("an alias that does not end where it should",
        SAYS("\x81\x80", "\2") OWNER "\0\5\0\1\0\0\0\5\0\4\1c\0x" A("\1c\0", "\1\2\3\4"), DNS_HEARD, 0),
    ROW("somebody else's address", SAYS("\x81\x80", "\1") A("\1c\0", "\1\2\3\4"), DNS_HEARD, 0),
    ROW("an address of a wrong length", SAYS("\x81\x80", "\1") OWNER "\0\1\0\1\0\0\0\5\0\3\1\2\3", DNS_HEARD,
        0),
    ROW("no such name", SAYS("\x81\x83", "\0"), DNS_HEARD, 0),
    ROW("a failure", SAYS("\x81\x82", "\0"), DNS_FAILED, 0),
    ROW("too long for a datagram", SAYS("\x83\x80", "\0"), DNS_TRUNCATED, 0),
    ROW("another number", "\x12\x35\x81\x80\0\1\0\1\0\0\0\0\1a\1b\0\0\1\0\1" A(OWNER, "\1\2\3\4"), DNS_FOREIGN,
        0),
    ROW("another question", HEADER("\x81\x80", "\1", "\1") "\1x\1b\0\0\1\0\1" A(OWNER, "\1\2\3\4"), DNS_FOREIGN,
        0),
    ROW("another type", HEADER("\x81\x80", "\1", "\1") "\1a\1b\0\0\x1c\0\1" A(OWNER, "\1\2\3\4"), DNS_FOREIGN,
        0),
    ROW("a question", SAYS("\1\0", "\1") A(OWNER, "\1\2\3\4"), DNS_FOREIGN, 0),
    ROW("records that are not there", SAYS("\x81\x80", "\x7f") A(OWNER, "\1\2\3\4"), DNS_HEARD, 1),
};

static void of_an_answer_only_what_the_name_leads_to_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(heard); i++) {
        struct dns_addresses out;
        enum dns_heard how =
            dns_read_answer((const unsigned char *)heard[i].bytes, heard[i].len, 0x1234, "a.b", DNS_A, &out);

        if (how != heard[i].heard || (how == DNS_HEARD && out.len != heard[i].count))
            fail_msg("%s: %d with %zu addresses", heard[i].what, how, out.len);
    }
}

static void our_own_question_is_one_that_we_understand(void **state)
{
    unsigned char out[DNS_UDP_MAX];
    size_t len = dns_write_question(0x1234, "www.example.com", DNS_AAAA, out);
    struct dns_question question;
    enum dns_code code;

    (void)state;
    assert_int_equal(dns_read_question(out, len, &question, &code), DNS_QUESTION);
    assert_string_equal(question.name, "www.example.com");
    assert_int_equal(question.type, DNS_AAAA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_read_in_one_way_or_refused),
        cmocka_unit_test(a_name_has_at_most_255_bytes),
        cmocka_unit_test(an_answer_repeats_the_question_and_has_the_address),
        cmocka_unit_test(of_an_answer_only_what_the_name_leads_to_counts),
        cmocka_unit_test(our_own_question_is_one_that_we_understand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
