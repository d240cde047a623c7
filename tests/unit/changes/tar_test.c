#include "changes/tar.h"

#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

static unsigned long octal(const char *field)
{
    return strtoul(field, NULL, 8);
}

/* As a reader does it: the sum field counts as blanks. */
static void check_sum(const char *block)
{
    unsigned sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
    assert_int_equal(octal(block + 148), sum);
}

static void a_plain_member_is_one_block(void **state)
{
    autotext struct text out = TEXT_NONE;

    (void)state;
    tar_add_header(&(struct tar_member){ "dir/name", TAR_FILE, 04755, 1234, 1700000000, NULL }, &out);
    assert_int_equal(out.len, TAR_BLOCK);
    assert_string_equal(out.data, "dir/name");
    assert_int_equal(octal(out.data + 100), 0755);
    assert_int_equal(octal(out.data + 108), 0);
    assert_int_equal(octal(out.data + 116), 0);
    assert_int_equal(octal(out.data + 124), 1234);
    assert_int_equal(octal(out.data + 136), 1700000000);
    assert_int_equal(out.data[156], '0');
    assert_memory_equal(out.data + 257, "ustar\00000", 8);
    check_sum(out.data);
}

static void times_before_1970_are_1970(void **state)
{
    autotext struct text out = TEXT_NONE;

    (void)state;
    tar_add_header(&(struct tar_member){ "old", TAR_FILE, 0600, 0, -5, NULL }, &out);
    assert_int_equal(octal(out.data + 136), 0);
}

/* Every length around those at which the number of digits of a record's length changes. */
static void what_does_not_fit_is_in_an_extended_header(void **state)
{
    (void)state;
    for (size_t len = 80; len < 1100; len++) {
        autotext struct text out = TEXT_NONE;
        autofree char *path = memory_zero(len + 1);

        memset(path, 'p', len);
        tar_add_header(&(struct tar_member){ path, TAR_FILE, 0644, 0, 0, NULL }, &out);
        check_sum(out.data);
        if (len <= 100) {
            assert_int_equal(out.len, TAR_BLOCK);
            assert_memory_equal(out.data, path, len);
            continue;
        }
        assert_int_equal(out.data[156], 'x');

        size_t size = octal(out.data + 124);
        const char *record = out.data + TAR_BLOCK;
        char *rest;

        assert_int_equal(out.len, 2 * TAR_BLOCK + size + tar_padding(size));
        assert_int_equal(strtoul(record, &rest, 10), size);
        assert_memory_equal(rest, " path=", 6);
        assert_memory_equal(rest + 6, path, len);
        assert_int_equal(record[size - 1], '\n');
        assert_ptr_equal(rest + 6 + len, record + size - 1);
        check_sum(out.data + out.len - TAR_BLOCK);
    }
}

static void large_sizes_and_long_targets_have_records(void **state)
{
    autotext struct text big = TEXT_NONE, link = TEXT_NONE;
    char target[151] = "";

    (void)state;
    memset(target, 't', sizeof target - 1);
    tar_add_header(&(struct tar_member){ "big", TAR_FILE, 0644, UINT64_C(1) << 33, 0, NULL }, &big);
    assert_string_equal(big.data + TAR_BLOCK, "19 size=8589934592\n");
    tar_add_header(&(struct tar_member){ "l", TAR_LINK, 0777, 0, 0, target }, &link);
    assert_contains(link.data + TAR_BLOCK, "linkpath=ttt");
    assert_int_equal(link.data[link.len - TAR_BLOCK + 156], '2');
}

static void padding_fills_the_last_block(void **state)
{
    autotext struct text end = TEXT_NONE;

    (void)state;
    assert_int_equal(tar_padding(0), 0);
    assert_int_equal(tar_padding(1), 511);
    assert_int_equal(tar_padding(512), 0);
    assert_int_equal(tar_padding((UINT64_C(1) << 40) + 513), 511);
    tar_add_end(&end);
    assert_int_equal(end.len, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_member_is_one_block),
        cmocka_unit_test(times_before_1970_are_1970),
        cmocka_unit_test(what_does_not_fit_is_in_an_extended_header),
        cmocka_unit_test(large_sizes_and_long_targets_have_records),
        cmocka_unit_test(padding_fills_the_last_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
