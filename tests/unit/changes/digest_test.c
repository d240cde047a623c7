#include "changes/digest.h"

#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/changes.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 64 << 10 };

/* `byte` at the end of a file that is a hole before. */
static int file_with(struct unit_scratch *scratch, size_t len, char byte)
{
    int fd = openat(scratch->dir, "file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(ftruncate(fd, (off_t)len), 0);
    if (len && byte)
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)len - 1), 1);
    return fd;
}

static void a_file_and_its_bytes_have_the_same_digest(void **state)
{
    static const size_t sizes[] = {
        0, 1, 4096, BLOCK - 1, BLOCK, BLOCK + 1, (size_t)3 * BLOCK, (size_t)3 * BLOCK + 7
    };

    for (size_t i = 0; i < 2 * ARRAY_LEN(sizes); i++) {
        size_t len = sizes[i / 2];
        char byte = i % 2 ? 'x' : '\0';
        autoclose int fd = file_with(*state, len, byte);
        autofree char *bytes = memory_zero(len + 1);
        struct digest one, other;

        if (len)
            bytes[len - 1] = byte;
        digest_bytes(bytes, len, &one);
        assert_int_equal(digest_file(fd, &other), 0);
        assert_true(digest_equal(&one, &other));
        bytes[len / 2] ^= 1;
        digest_bytes(bytes, len ? len : 1, &other);
        assert_false(digest_equal(&one, &other));
    }
}

static void zeros_more_or_elsewhere_are_another_content(void **state)
{
    struct digest found[4];
    static char bytes[2 * BLOCK];

    (void)state;
    bytes[0] = 'x';
    digest_bytes(bytes, BLOCK, &found[0]);
    digest_bytes(bytes, sizeof bytes, &found[1]);
    bytes[0] = '\0';
    bytes[BLOCK] = 'x';
    digest_bytes(bytes, sizeof bytes, &found[2]);
    digest_bytes("", 0, &found[3]);
    for (size_t i = 0; i < ARRAY_LEN(found); i++)
        for (size_t k = 0; k < i; k++)
            assert_false(digest_equal(&found[i], &found[k]));
}

static void every_part_of_a_change_counts(void **state)
{
    char path[] = "a", from[] = "b", target[] = "c";
    struct change plain = { .path = path, .kind = CHANGE_CHANGED, .new = { .type = SIDE_FILE, .mode = 0644 } };
    struct change others[] = { plain, plain, plain, plain, plain, plain, plain };
    struct digest content = { { 1 } };
    char first[SHA256_TEXT], other[SHA256_TEXT];
    struct changes changes = { .items = &plain, .len = 1 };

    (void)state;
    others[0].path = from;
    others[1].kind = CHANGE_ADDED;
    others[2].new.mode = 0755;
    others[3].new.target = target;
    others[4].from = from;
    others[5].flags = FLAG_BASE_CHANGED;
    others[6].old.type = SIDE_LINK;
    digest_changes(&changes, &content, first);
    assert_int_equal(strlen(first), SHA256_TEXT - 1);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        changes.items = &others[i];
        digest_changes(&changes, &content, other);
        assert_string_not_equal(first, other);
    }
    changes.items = &plain;
    content.bytes[31] = 1;
    digest_changes(&changes, &content, other);
    assert_string_not_equal(first, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_and_its_bytes_have_the_same_digest, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test(zeros_more_or_elsewhere_are_another_content),
        cmocka_unit_test(every_part_of_a_change_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
