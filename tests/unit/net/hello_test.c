#include "net/hello.h"

#include "base/array.h"
#include "tests/support/unit.h"

/* Client hello with the extensions that are given; all lengths are filled in by hello(). */
static size_t hello(const void *extensions, size_t len, bool with, unsigned char *out)
{
    static const unsigned char start[] = { 3, 3 };
    size_t at = 5 + 4;

    memcpy(out + at, start, sizeof start);
    memset(out + at + 2, 0xaa, 32);
    at += 34;
    out[at++] = 0;
    memcpy(out + at, "\0\2\x13\1\1\0", 6);
    at += 6;
    if (with) {
        out[at++] = (unsigned char)(len >> 8);
        out[at++] = (unsigned char)len;
        memcpy(out + at, extensions, len);
        at += len;
    }
    size_t body = at - 9;

    memcpy(out, "\x16\3\1", 3);
    out[3] = (unsigned char)((body + 4) >> 8);
    out[4] = (unsigned char)(body + 4);
    out[5] = 1;
    out[6] = 0;
    out[7] = (unsigned char)(body >> 8);
    out[8] = (unsigned char)body;
    return at;
}

#define NAME                                                                                                   \
    "\0\0\0\x0a\0\x08\0\0\5"                                                                                   \
    "a.com"

static const struct row {
    const char *what, *extensions;
    size_t len;
    enum hello hello;
    const char *name;
} rows[] = {
#define ROW(what, bytes, ...)                                                                                  \
    {                                                                                                          \
        what, bytes, sizeof bytes - 1, __VA_ARGS__                                                             \
    }
    ROW("a name", NAME, HELLO_WHOLE, "a.com"),
    ROW("behind another extension", "\0\x17\0\0" NAME, HELLO_WHOLE, "a.com"),
    ROW("none", "\0\x17\0\0", HELLO_WHOLE, ""),
    ROW("two extensions with names", NAME NAME, HELLO_BAD, ""),
    ROW("two names in one",
        "\0\0\0\x12\0\x10\0\0\5"
        "a.com"
        "\0\0\5"
        "b.com",
        HELLO_BAD, ""),
    ROW("an empty name", "\0\0\0\5\0\3\0\0\0", HELLO_BAD, ""),
    ROW("an empty list", "\0\0\0\2\0\0", HELLO_BAD, ""),
    ROW("another kind of name",
        "\0\0\0\x0a\0\x08\1\0\5"
        "a.com",
        HELLO_BAD, ""),
    ROW("bytes behind the list",
        "\0\0\0\x0b\0\x08\0\0\5"
        "a.com"
        "x",
        HELLO_BAD, ""),
    ROW("longer than its extension",
        "\0\0\0\x0a\0\x09\0\0\6"
        "a.com",
        HELLO_BAD, ""),
    ROW("an extension that is cut", "\0\0\0\x0a\0", HELLO_BAD, ""),
};

static void exactly_one_name_is_found(void **state)
{
    static unsigned char bytes[1024], scratch[HELLO_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t name_len, len = hello(rows[i].extensions, rows[i].len, true, bytes);
        const char *name;
        enum hello got = hello_read(bytes, len, scratch, &name, &name_len);

        if (got != rows[i].hello || (got == HELLO_WHOLE && (name_len != strlen(rows[i].name) ||
                                                            memcmp(name, rows[i].name, name_len) != 0)))
            fail_msg("%s: %d \"%.*s\"", rows[i].what, got, (int)name_len, name);
    }
}

static void a_part_of_one_is_awaited(void **state)
{
    static unsigned char bytes[1024], scratch[HELLO_MAX];
    size_t name_len, len = hello(NAME, sizeof NAME - 1, true, bytes);
    const char *name;

    (void)state;
    for (size_t i = 0; i < len; i++)
        assert_int_equal(hello_read(bytes, i, scratch, &name, &name_len), HELLO_MORE);
    /* What comes behind it, early data, is no matter of ours. */
    memcpy(bytes + len, "\x17\3\3\0\1x", 6);
    assert_int_equal(hello_read(bytes, len + 6, scratch, &name, &name_len), HELLO_WHOLE);
}

static void it_may_come_in_several_records(void **state)
{
    static unsigned char bytes[1024], parts[2048], scratch[HELLO_MAX];
    size_t name_len, len = hello(NAME, sizeof NAME - 1, true, bytes), at = 0;
    const char *name;

    (void)state;
    for (size_t from = 5; from < len; from += 7) {
        size_t size = len - from < 7 ? len - from : 7;

        memcpy(parts + at, "\x16\3\1\0", 4);
        parts[at + 4] = (unsigned char)size;
        memcpy(parts + at + 5, bytes + from, size);
        at += 5 + size;
    }
    assert_int_equal(hello_read(parts, at, scratch, &name, &name_len), HELLO_WHOLE);
    assert_int_equal(name_len, 5);
    assert_memory_equal(name, "a.com", 5);
}

static void what_is_no_hello_is_refused(void **state)
{
    static unsigned char bytes[1024], scratch[HELLO_MAX];
    static const struct {
        size_t at;
        unsigned char value;
    } changes[] = { { 0, 23 }, { 1, 2 }, { 3, 0x50 }, { 5, 2 }, { 6, 1 }, { 8, 3 }, { 9, 2 }, { 43, 99 } };
    size_t name_len;
    const char *name;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        size_t len = hello(NAME, sizeof NAME - 1, true, bytes);

        bytes[changes[i].at] = changes[i].value;
        if (hello_read(bytes, len, scratch, &name, &name_len) != HELLO_BAD)
            fail_msg("byte %zu", changes[i].at);
    }
    assert_int_equal(hello_read((const unsigned char *)"\x16\3\1\0\0", 5, scratch, &name, &name_len),
                     HELLO_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_one_name_is_found),
        cmocka_unit_test(a_part_of_one_is_awaited),
        cmocka_unit_test(it_may_come_in_several_records),
        cmocka_unit_test(what_is_no_hello_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
