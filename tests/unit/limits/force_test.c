/* Limits read back from the kernel, on this process itself. */

#include "limits/force.h"

#include "base/error.h"
#include "limits/limits.h"
#include "tests/support/unit.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void what_nobody_asked_for_is_not_missed(void **state)
{
    const struct limits none = LIMITS_NONE, looked_at = { .items[LIMIT_MEMORY] = { 1 << 20, WAY_SAMPLED } };
    struct error err = { 0 };

    (void)state;
    assert_false(limits_of_the_kernel(&none));
    assert_false(limits_of_the_kernel(&looked_at));
    assert_int_equal(limits_in_force(&looked_at, getpid(), &err), 0);
}

static void an_rlimit_is_in_force_when_the_kernel_says_so(void **state)
{
    struct limits limits = { .items[LIMIT_FILE_SIZE] = { 1ULL << 40, WAY_RLIMIT } };
    struct rlimit bound = { 1ULL << 40, 1ULL << 40 };
    struct error err = { 0 };

    (void)state;
    assert_true(limits_of_the_kernel(&limits));
    assert_int_equal(limits_in_force(&limits, getpid(), &err), -1);
    assert_non_null(strstr(err.text, "file-size 1T"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &bound), 0);
    assert_int_equal(limits_in_force(&limits, getpid(), &err), 0);
    limits.items[LIMIT_FILE_SIZE].max--;
    assert_int_equal(limits_in_force(&limits, getpid(), &err), -1);
}

static void a_process_in_no_group_of_ours_is_not_bounded_by_one(void **state)
{
    struct limits limits = { .items[LIMIT_MEMORY] = { 1 << 20, WAY_CGROUP1 },
                             .place = { .kind = CGROUP_V1, .have = 1U << CONTROLLER_MEMORY } };
    struct error err = { 0 };

    (void)state;
    assert_int_equal(limits_in_force(&limits, getpid(), &err), -1);
    limits.place.kind = CGROUP_V2;
    assert_int_equal(limits_in_force(&limits, getpid(), &err), -1);
}

static void of_a_process_that_is_gone_nothing_is_in_force(void **state)
{
    const struct limits limits = { .items[LIMIT_OPEN_FILES] = { 1ULL << 40, WAY_RLIMIT } };
    struct error err = { 0 };

    (void)state;
    assert_int_equal(limits_in_force(&limits, 0x7fffffff, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_asked_for_is_not_missed),
        cmocka_unit_test(an_rlimit_is_in_force_when_the_kernel_says_so),
        cmocka_unit_test(a_process_in_no_group_of_ours_is_not_bounded_by_one),
        cmocka_unit_test(of_a_process_that_is_gone_nothing_is_in_force),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
