#include "store/packages.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void name_of(const char *content, struct checksum *out)
{
    struct checksumming *sum = checksumming_new(CHECKSUM_SHA512);

    checksumming_add(sum, content, strlen(content));
    checksumming_end(sum, out);
}

static int spool_with(int dir, const char *content)
{
    int spool = packages_spool(dir);

    assert_true(spool >= 0);
    assert_int_equal(write(spool, content, strlen(content)), strlen(content));
    return spool;
}

static enum packages_added add(int dir, const char *content, const char *name)
{
    autoclose int spool = spool_with(dir, content);
    uint64_t size = 0;

    return packages_add(dir, spool, name, &size);
}

static bool holds(int dir, const char *name, const char *content)
{
    uint64_t size = 0;
    autoclose int fd = packages_get(dir, name, &size);
    char bytes[256] = "";

    return fd >= 0 && size == strlen(content) && read(fd, bytes, sizeof bytes - 1) == (ssize_t)size &&
           strcmp(bytes, content) == 0;
}

static void a_file_has_its_own_hash_as_its_name_or_none(void **state)
{
    static const char *const odd[] = { "",        "x",        "../x", "sha512-", "sha512-../../../etc/passwd",
                                       "sha1-00", "sha256-zz" };
    int dir = ((struct unit_scratch *)*state)->dir;
    struct checksum right, other;

    name_of("one", &right);
    name_of("two", &other);
    assert_int_equal(add(dir, "one", other.text), PACKAGE_WRONG);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        uint64_t size;

        assert_int_equal(add(dir, "one", odd[i]), PACKAGE_FAILED);
        assert_int_equal(packages_get(dir, odd[i], &size), -1);
    }
    assert_false(holds(dir, right.text, "one"));
    assert_int_equal(add(dir, "one", right.text), PACKAGE_ADDED);
    assert_int_equal(add(dir, "one", right.text), PACKAGE_ADDED);
    assert_true(holds(dir, right.text, "one"));
    assert_false(holds(dir, other.text, "two"));
}

/* Whoever was given the spool may still write to it. */
static void what_is_written_to_a_spool_later_is_not_in_the_file(void **state)
{
    int dir = ((struct unit_scratch *)*state)->dir;
    autoclose int spool = spool_with(dir, "one");
    struct checksum name;
    uint64_t size = 0;

    name_of("one", &name);
    assert_int_equal(packages_add(dir, spool, name.text, &size), PACKAGE_ADDED);
    assert_int_equal(size, 3);
    assert_int_equal(pwrite(spool, "evil", 4, 0), 4);
    assert_true(holds(dir, name.text, "one"));
}

static void what_is_given_can_only_be_read(void **state)
{
    int dir = ((struct unit_scratch *)*state)->dir;
    struct checksum name;
    struct stat info;
    uint64_t size;

    name_of("one", &name);
    assert_int_equal(add(dir, "one", name.text), PACKAGE_ADDED);
    autoclose int fd = packages_get(dir, name.text, &size);

    assert_true(fd >= 0 && write(fd, "x", 1) < 0 && ftruncate(fd, 0) < 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0400);
}

/* By their age in seconds. */
static void make(int dir, const char *content, long age, struct checksum *name)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000000 - age } };

    name_of(content, name);
    assert_int_equal(add(dir, content, name->text), PACKAGE_ADDED);
    assert_int_equal(utimensat(dir, name->text, times, 0), 0);
}

static void what_was_not_used_the_longest_goes_and_who_reads_it_has_it(void **state)
{
    int dir = ((struct unit_scratch *)*state)->dir;
    struct checksum oldest, used, newest;
    struct packages_usage usage;
    struct error err;
    uint64_t size;
    char bytes[8] = "";

    make(dir, "oldest", 30, &oldest);
    make(dir, "used", 20, &used);
    make(dir, "newest", 10, &newest);
    assert_true(holds(dir, used.text, "used"));
    autoclose int reader = openat(dir, oldest.text, O_RDONLY | O_CLOEXEC);

    assert_int_equal(packages_trim(dir, UINT64_MAX, false, &usage, &err), 0);
    assert_int_equal(usage.files, 3);
    uint64_t all = usage.bytes;

    assert_int_equal(packages_trim(dir, all - 1, true, &usage, &err), 0);
    assert_int_equal(usage.removed_files, 1);
    assert_int_equal(packages_trim(dir, all - 1, false, &usage, &err), 0);
    assert_int_equal(usage.removed_files, 1);
    assert_int_equal(packages_get(dir, oldest.text, &size), -1);
    assert_int_equal(read(reader, bytes, sizeof bytes), 6);
    assert_string_equal(bytes, "oldest");
    assert_int_equal(packages_trim(dir, all / 2, false, &usage, &err), 0);
    assert_true(holds(dir, used.text, "used"));
    assert_int_equal(packages_get(dir, newest.text, &size), -1);
    assert_int_equal(packages_trim(dir, 0, false, &usage, &err), 0);
    assert_false(holds(dir, used.text, "used"));
}

static void what_is_not_what_its_name_says_is_found_and_goes(void **state)
{
    int dir = ((struct unit_scratch *)*state)->dir;
    struct checksum good, bad;

    name_of("good", &good);
    name_of("bad", &bad);
    assert_int_equal(add(dir, "good", good.text), PACKAGE_ADDED);
    unit_scratch_file(*state, bad.text, "something else");
    packages_check(dir, good.text);
    packages_check(dir, bad.text);
    packages_check(dir, "../x");
    assert_true(holds(dir, good.text, "good"));
    assert_int_equal(faccessat(dir, bad.text, F_OK, 0), -1);
    unit_scratch_file(*state, bad.text, ""); /* as a crash of the machine leaves it */
    assert_false(holds(dir, bad.text, ""));
    assert_int_equal(add(dir, "bad", bad.text), PACKAGE_ADDED);
    assert_true(holds(dir, bad.text, "bad"));
}

int main(void)
{
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(a_file_has_its_own_hash_as_its_name_or_none),
        IN_SCRATCH(what_is_written_to_a_spool_later_is_not_in_the_file),
        IN_SCRATCH(what_is_given_can_only_be_read),
        IN_SCRATCH(what_was_not_used_the_longest_goes_and_who_reads_it_has_it),
        IN_SCRATCH(what_is_not_what_its_name_says_is_found_and_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
