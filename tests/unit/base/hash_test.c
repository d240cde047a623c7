#include "base/hash.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/own.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

static const struct {
    enum hash_kind kind;
    size_t bytes;
    const char *of_abc; /* as the standard gives it */
} kinds[] = {
    { HASH_SHA1, 20, "a9993e364706816aba3e25717850c26c9cd0d89d" },
    { HASH_SHA256, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { HASH_SHA512, 64,
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423"
      "643c"
      "e80e2a9ac94fa54ca49f" },
};

static void of_bytes(enum hash_kind kind, const void *bytes, size_t len, size_t piece,
                     unsigned char out[HASH_BYTES_MAX])
{
    struct hash hash;

    memset(out, 0, HASH_BYTES_MAX);
    hash_begin(&hash, kind);
    for (size_t at = 0; at < len; at += piece)
        hash_add(&hash, (const char *)bytes + at, len - at < piece ? len - at : piece);
    hash_end(&hash, out);
}

static void known_hashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        unsigned char bytes[HASH_BYTES_MAX];
        char text[2 * HASH_BYTES_MAX + 1] = "";

        of_bytes(kinds[i].kind, "abc", 3, 3, bytes);
        for (size_t at = 0; at < kinds[i].bytes; at++)
            snprintf(text + 2 * at, 3, "%02x", bytes[at]);
        assert_string_equal(text, kinds[i].of_abc);
    }
}

static int asked;

static void ask(void)
{
    asked++;
}

enum { MUCH = 1 << 20, LITTLE = 1000 };

/* In small pieces nobody asks; the first large one has it asked, once, in the middle of a hash. */
static void the_processor_is_asked_late_and_once(void **state)
{
    autofree unsigned char *bytes = memory_zero(MUCH);
    unsigned char pieces[HASH_BYTES_MAX], whole[HASH_BYTES_MAX], mixed[HASH_BYTES_MAX];
    struct hash hash;

    (void)state;
    for (size_t i = 0; i < MUCH; i++)
        bytes[i] = (unsigned char)(i * 31);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        memset(mixed, 0, sizeof mixed);
        asked = 0;
        hash_ask_late(ask);
        of_bytes(kinds[i].kind, bytes, MUCH, LITTLE, pieces);
        assert_int_equal(asked, 0);
        hash_begin(&hash, kinds[i].kind);
        hash_add(&hash, bytes, LITTLE);
        hash_add(&hash, bytes + LITTLE, MUCH - LITTLE);
        hash_end(&hash, mixed);
        assert_int_equal(asked, 1);
        of_bytes(kinds[i].kind, bytes, MUCH, MUCH, whole);
        assert_int_equal(asked, 1);
        assert_memory_equal(pieces, whole, sizeof whole);
        assert_memory_equal(mixed, whole, sizeof whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_hashes),
        cmocka_unit_test(the_processor_is_asked_late_and_once),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
