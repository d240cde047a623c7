/* Which way each limit takes, given what a host offers. */

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "limits/cgroup.h"
#include "limits/limits.h"
#include "spec/spec.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

enum { MEMORY = 1 << CONTROLLER_MEMORY, CPU = 1 << CONTROLLER_CPU, PIDS = 1 << CONTROLLER_PIDS };

static void the_best_way_is_taken(void **state)
{
    static const struct {
        enum cgroup_kind kind;
        unsigned have;
        bool many_users;
        enum limit_id limit;
        enum limit_way want;
    } cases[] = {
        { CGROUP_V2, MEMORY | CPU | PIDS, false, LIMIT_MEMORY, WAY_CGROUP2 },
        { CGROUP_V2, MEMORY | CPU | PIDS, false, LIMIT_CPUS, WAY_CGROUP2 },
        { CGROUP_V2, MEMORY | CPU | PIDS, true, LIMIT_PROCESSES, WAY_CGROUP2 },
        { CGROUP_MANAGER, MEMORY | PIDS, false, LIMIT_MEMORY, WAY_MANAGER },
        { CGROUP_MANAGER, MEMORY | PIDS, false, LIMIT_CPUS, WAY_AFFINITY },
        { CGROUP_V1, MEMORY, false, LIMIT_MEMORY, WAY_CGROUP1 },
        { CGROUP_V1, MEMORY, false, LIMIT_PROCESSES, WAY_RLIMIT },
        { CGROUP_V1, PIDS, true, LIMIT_PROCESSES, WAY_CGROUP1 },
        { CGROUP_NONE, 0, false, LIMIT_MEMORY, WAY_SAMPLED },
        { CGROUP_NONE, 0, false, LIMIT_PROCESSES, WAY_RLIMIT },
        { CGROUP_NONE, 0, true, LIMIT_PROCESSES, WAY_PER_USER },
        { CGROUP_NONE, 0, false, LIMIT_OPEN_FILES, WAY_RLIMIT },
        { CGROUP_NONE, 0, false, LIMIT_FILE_SIZE, WAY_RLIMIT },
        { CGROUP_NONE, 0, false, LIMIT_DISK, WAY_SAMPLED },
        { CGROUP_NONE, 0, false, LIMIT_INODES, WAY_SAMPLED },
        { CGROUP_NONE, 0, false, LIMIT_OUTPUT, WAY_RELAY },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cgroup_place place = { .kind = cases[i].kind, .have = cases[i].have };
        const struct limit_means means = { .many_users = cases[i].many_users };
        struct spec spec = SPEC_NONE;
        struct limits limits;
        struct error err;

        spec.limits[cases[i].limit].max = 1000;
        assert_int_equal(limits_choose_at(&spec, &means, &place, &limits, &err), 0);
        for (size_t other = 0; other < LIMIT_COUNT; other++)
            assert_int_equal(limits.items[other].max, other == cases[i].limit ? 1000 : 0);
        assert_int_equal(limits.items[cases[i].limit].way, cases[i].want);
        limits_free(&limits);
    }
}

static int choose_nowhere(const struct spec *spec, struct error *err)
{
    const struct limit_means means = { 0 };
    struct cgroup_place place = CGROUP_PLACE_NONE;
    struct limits limits = LIMITS_NONE;
    int result = limits_choose_at(spec, &means, &place, &limits, err);

    limits_free(&limits);
    return result;
}

static void what_must_be_hard_and_cannot_is_refused_with_a_way_out(void **state)
{
    static const enum limit_id soft[] = { LIMIT_MEMORY, LIMIT_CPUS, LIMIT_DISK, LIMIT_INODES };
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(soft); i++) {
        struct spec one = SPEC_NONE, all = { .enforce = ENFORCE_HARD };

        one.limits[soft[i]] = (struct limit){ 1000, true };
        all.limits[soft[i]] = (struct limit){ 1000, false };
        assert_int_equal(choose_nowhere(&one, &err), -1);
        assert_int_equal(err.kind, ERROR_UNSUPPORTED);
        assert_contains(err.text, limit_name(soft[i]));
        assert_contains(err.text, "; ");
        assert_int_equal(choose_nowhere(&all, &err), -1);
    }
}

static void what_nothing_can_keep_is_refused(void **state)
{
    const struct limit_means means = { .blind = true };
    struct cgroup_place place = CGROUP_PLACE_NONE;
    struct limits limits = LIMITS_NONE;
    struct spec spec = SPEC_NONE;
    struct error err;

    (void)state;
    assert_int_equal(limits_choose_at(&spec, &means, &place, &limits, &err), 0);
    spec.limits[LIMIT_MEMORY].max = 1000;
    assert_int_equal(limits_choose_at(&spec, &means, &place, &limits, &err), -1);
    assert_contains(err.text, "nothing can keep it");
}

/* A file that a kernel may lack is no excuse where it is there. */
static void swap_that_is_not_bounded_is_noticed(void **state)
{
    struct limits limits = LIMITS_NONE;
    struct cgroup cgroup = { .kind = CGROUP_V2, .have = 1U << CONTROLLER_MEMORY };
    const struct unit_scratch *scratch = *state;
    struct error err;

    limits.items[LIMIT_MEMORY] = (struct limit_choice){ 8192, WAY_CGROUP2 };
    cgroup.dirs[0] = text_copy(scratch->path);
    unit_scratch_file(scratch, "memory.max", "8192\n");
    assert_int_equal(cgroup_check(&cgroup, &limits, &err), 0);
    unit_scratch_file(scratch, "memory.swap.max", "max\n");
    assert_int_equal(cgroup_check(&cgroup, &limits, &err), -1);
    assert_contains(err.text, "memory.swap.max");
    unit_scratch_file(scratch, "memory.swap.max", "0\n");
    assert_int_equal(cgroup_check(&cgroup, &limits, &err), 0);
    cgroup_free(&cgroup);
}

static void what_is_hard_for_everybody_may_be_asked_to_be(void **state)
{
    static const enum limit_id hard[] = { LIMIT_PROCESSES, LIMIT_OPEN_FILES, LIMIT_FILE_SIZE, LIMIT_OUTPUT };
    struct error err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hard); i++) {
        struct spec spec = { .enforce = ENFORCE_HARD };

        spec.limits[hard[i]] = (struct limit){ 1000, true };
        assert_int_equal(choose_nowhere(&spec, &err), 0);
    }
}

/* The hot path: what nobody asked for costs no look at the host and no group. */
static void the_usual_limits_need_no_group(void **state)
{
    const struct limit_means means = { 0 };
    struct spec spec = SPEC_NONE;
    struct limits limits;
    struct error err;

    (void)state;
    spec.limits[LIMIT_PROCESSES].max = LIMIT_PROCESSES_USUAL;
    assert_int_equal(limits_choose(&spec, &means, &limits, &err), 0);
    assert_int_equal(limits.place.kind, CGROUP_NONE);
    assert_int_equal(limits.items[LIMIT_PROCESSES].way, WAY_RLIMIT);
    limits_free(&limits);
}

static void amounts_are_shown_as_they_are_written(void **state)
{
    static const struct {
        enum limit_id limit;
        uint64_t max;
        const char *want;
    } cases[] = {
        { LIMIT_MEMORY, 4ULL << 30, "memory 4G" },
        { LIMIT_MEMORY, 1025ULL << 20, "memory 1025M" },
        { LIMIT_MEMORY, 1000, "memory 1000" },
        { LIMIT_CPUS, 2000, "cpus 2" },
        { LIMIT_CPUS, 1500, "cpus 1.5" },
        { LIMIT_CPUS, 250, "cpus 0.25" },
        { LIMIT_CPUS, 1, "cpus 0.001" },
        { LIMIT_PROCESSES, 1024, "processes 1024" },
        { LIMIT_OUTPUT, 3ULL << 10, "output 3K" },
        { LIMIT_OPEN_FILES, 64, "open-files 64" },
        { LIMIT_FILE_SIZE, 2ULL << 40, "file-size 2T" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autotext struct text shown = TEXT_NONE;

        limit_show(cases[i].limit, cases[i].max, &shown);
        assert_string_equal(text_string(&shown), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_way_is_taken),
        cmocka_unit_test(what_must_be_hard_and_cannot_is_refused_with_a_way_out),
        cmocka_unit_test(what_nothing_can_keep_is_refused),
        cmocka_unit_test_setup_teardown(swap_that_is_not_bounded_is_noticed, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test(what_is_hard_for_everybody_may_be_asked_to_be),
        cmocka_unit_test(the_usual_limits_need_no_group),
        cmocka_unit_test(amounts_are_shown_as_they_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
