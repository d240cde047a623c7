/* Hosts as small trees of files.  A file that is not there cannot be written, also by root. */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "limits/cgroup.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { MEMORY = 1 << CONTROLLER_MEMORY, CPU = 1 << CONTROLLER_CPU, PIDS = 1 << CONTROLLER_PIDS };

/* A file with its directories. */
static void put(const struct unit_scratch *scratch, const char *name, const char *content)
{
    autofree char *path = text_copy(name);

    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdirat(scratch->dir, path, 0700);
        *slash = '/';
    }
    unit_scratch_file(scratch, path, content);
}

#define V2_MOUNT "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
#define V1_MOUNTS                                                                                              \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"                     \
    "35 31 0:32 /outer /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"                          \
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

static void group(const struct unit_scratch *scratch, const char *dir, const char *have, const char *given,
                  const char *members)
{
    autofree char *controllers = text_format("sys/fs/cgroup/%scgroup.controllers", dir);
    autofree char *subtree = text_format("sys/fs/cgroup/%scgroup.subtree_control", dir);
    autofree char *procs = text_format("sys/fs/cgroup/%scgroup.procs", dir);
    autofree char *type = text_format("sys/fs/cgroup/%scgroup.type", dir);

    put(scratch, controllers, have);
    put(scratch, subtree, given);
    put(scratch, procs, members);
    if (*dir)
        put(scratch, type, "domain\n");
}

static void find(const struct unit_scratch *scratch, unsigned uid, unsigned wanted, struct cgroup_place *out)
{
    cgroup_place_find_in(&(struct cgroup_world){ scratch->path, uid }, wanted, out);
}

/* A session of root's: its own group has processes, the one above hands out what is wanted. */
static void root_takes_the_nearest_group_that_gives(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "0::/user.slice/session.scope\n");
    put(scratch, "proc/self/mountinfo", V2_MOUNT);
    group(scratch, "", "cpu memory pids\n", "cpu memory pids\n", "1\n");
    group(scratch, "user.slice/", "cpu memory pids\n", "memory pids\n", "");
    group(scratch, "user.slice/session.scope/", "memory pids\n", "", "77\n");
    find(scratch, 0, MEMORY | PIDS, &place);
    assert_int_equal(place.kind, CGROUP_V2);
    assert_int_equal(place.have, MEMORY | PIDS);
    assert_int_equal(place.enable, 0);
    assert_string_equal(place.dirs[0], "/sys/fs/cgroup/user.slice");
    cgroup_place_free(&place);

    /* It has no processes, so it can be told to give more. */
    find(scratch, 0, MEMORY | CPU, &place);
    assert_string_equal(place.dirs[0], "/sys/fs/cgroup/user.slice");
    assert_int_equal(place.have, MEMORY | CPU);
    assert_int_equal(place.enable, CPU);
    cgroup_place_free(&place);
}

/* Over ssh nothing above us is ours; the manager's part has two controllers. */
static void a_user_without_a_group_asks_the_manager(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "0::/user.slice/user-7.slice/session-3.scope\n");
    put(scratch, "proc/self/mountinfo", V2_MOUNT);
    put(scratch, "sys/fs/cgroup/user.slice/user-7.slice/user@7.service/cgroup.controllers", "memory pids\n");
    put(scratch, "run/user/7/systemd/private", "");
    find(scratch, 7, MEMORY | CPU | PIDS, &place);
    assert_int_equal(place.kind, CGROUP_MANAGER);
    assert_int_equal(place.have, MEMORY | PIDS);
    assert_string_equal(place.dirs[0], "/run/user/7/systemd/private");
    cgroup_place_free(&place);

    /* It is the user's, not root's. */
    find(scratch, 0, MEMORY, &place);
    assert_int_equal(place.kind, CGROUP_NONE);
    cgroup_place_free(&place);
}

/* Somebody gave us less than the group above has; to be beside that group would be to have all of it. */
static void a_group_with_a_bound_is_not_left(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "0::/user.slice/user-7.slice/small.scope\n");
    put(scratch, "proc/self/mountinfo", V2_MOUNT);
    put(scratch, "run/user/7/systemd/private", "");
    put(scratch, "sys/fs/cgroup/user.slice/user-7.slice/user@7.service/cgroup.controllers", "memory pids\n");
    group(scratch, "user.slice/user-7.slice/", "cpu memory pids\n", "cpu memory pids\n", "");
    group(scratch, "user.slice/user-7.slice/small.scope/", "cpu memory pids\n", "", "77\n");
    for (unsigned uid = 0; uid <= 7; uid += 7) {
        put(scratch, "sys/fs/cgroup/user.slice/user-7.slice/small.scope/memory.max", "max\n");
        find(scratch, uid, MEMORY, &place);
        assert_int_equal(place.have, MEMORY);
        cgroup_place_free(&place);
        put(scratch, "sys/fs/cgroup/user.slice/user-7.slice/small.scope/memory.max", "1073741824\n");
        find(scratch, uid, MEMORY, &place);
        assert_int_equal(place.kind, CGROUP_NONE);
        cgroup_place_free(&place);
    }

    /* A bound that both places are below stays. */
    put(scratch, "sys/fs/cgroup/user.slice/user-7.slice/small.scope/memory.max", "max\n");
    put(scratch, "sys/fs/cgroup/user.slice/user-7.slice/memory.max", "1073741824\n");
    group(scratch, "user.slice/user-7.slice/", "cpu memory pids\n", "cpu\n", "78\n");
    find(scratch, 7, MEMORY, &place);
    assert_int_equal(place.kind, CGROUP_MANAGER);
    cgroup_place_free(&place);
}

static void a_group_outside_of_our_namespace_has_no_path(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "0::/../fs\n");
    put(scratch, "proc/self/mountinfo", V2_MOUNT);
    put(scratch, "sys/fs/fs/cgroup.procs", "");
    group(scratch, "", "memory\n", "memory\n", "1\n");
    find(scratch, 0, MEMORY, &place);
    assert_int_equal(place.kind, CGROUP_NONE);
    cgroup_place_free(&place);
}

/* What the manager handed out for units of its own, it takes back with them. */
static void nothing_is_made_behind_the_managers_back(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "0::/system.slice/cron.service\n");
    put(scratch, "proc/self/mountinfo", V2_MOUNT);
    put(scratch, "run/systemd/private", "");
    group(scratch, "", "cpu memory pids\n", "cpu memory pids\n", "");
    group(scratch, "system.slice/", "cpu memory pids\n", "cpu memory pids\n", "");
    group(scratch, "system.slice/cron.service/", "memory pids\n", "", "77\n");
    find(scratch, 0, MEMORY | CPU | PIDS, &place);
    assert_int_equal(place.kind, CGROUP_MANAGER);
    assert_int_equal(place.have, MEMORY | CPU | PIDS);
    assert_string_equal(place.dirs[0], "/run/systemd/private");
    cgroup_place_free(&place);
}

static void delegate(const struct unit_scratch *scratch, const char *dir)
{
    autofree char *path = text_format("%s/%s", scratch->path, dir);

    if (setxattr(path, "user.delegate", "1", 1, 0) < 0)
        skip(); /* a file system of an older kernel */
}

static void a_user_in_a_delegated_group_needs_no_manager(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "0::/app.slice/run.scope/shell\n");
    put(scratch, "proc/self/mountinfo", V2_MOUNT);
    put(scratch, "run/user/7/systemd/private", "");
    group(scratch, "app.slice/run.scope/", "memory pids\n", "memory pids\n", "");
    group(scratch, "app.slice/run.scope/shell/", "memory pids\n", "", "5\n");
    delegate(scratch, "sys/fs/cgroup/app.slice/run.scope");
    find(scratch, 7, MEMORY | PIDS, &place);
    assert_int_equal(place.kind, CGROUP_V2);
    assert_string_equal(place.dirs[0], "/sys/fs/cgroup/app.slice/run.scope");
    cgroup_place_free(&place);
}

static void the_trees_of_v1_are_found_with_what_is_mounted_of_them(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    put(scratch, "proc/self/cgroup", "8:pids:/\n4:memory:/outer/own\n1:cpu,cpuacct:/\n0::/\n");
    put(scratch, "proc/self/mountinfo", V1_MOUNTS);
    put(scratch, "sys/fs/cgroup/memory/own/tasks", "");
    put(scratch, "sys/fs/cgroup/cpu,cpuacct/tasks", "");
    find(scratch, 0, MEMORY | CPU | PIDS, &place);
    assert_int_equal(place.kind, CGROUP_V1);
    assert_int_equal(place.have, MEMORY | CPU);
    assert_string_equal(place.dirs[CONTROLLER_MEMORY], "/sys/fs/cgroup/memory/own");
    assert_string_equal(place.dirs[CONTROLLER_CPU], "/sys/fs/cgroup/cpu,cpuacct");
    cgroup_place_free(&place);
}

static void a_host_without_groups_has_no_place(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup_place place;

    find(scratch, 0, MEMORY, &place);
    assert_int_equal(place.kind, CGROUP_NONE);
    put(scratch, "proc/self/cgroup", "garbage\n:\n4:memory\n");
    put(scratch, "proc/self/mountinfo", "garbage - x\n");
    find(scratch, 0, MEMORY, &place);
    assert_int_equal(place.kind, CGROUP_NONE);
}

/* Plain files take what is written to them, so a group that does not obey can be told from one that does. */
static void a_group_is_read_back(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct cgroup cgroup = { .kind = CGROUP_V2, .have = MEMORY | CPU | PIDS, .dirs = { scratch->path } };
    struct limits limits = LIMITS_NONE;
    struct cgroup_counts counts = { 0 };
    struct error err;

    limits.items[LIMIT_MEMORY] = (struct limit_choice){ 1 << 20, WAY_CGROUP2 };
    limits.items[LIMIT_CPUS] = (struct limit_choice){ 1500, WAY_CGROUP2 };
    limits.items[LIMIT_PROCESSES] = (struct limit_choice){ 10, WAY_CGROUP2 };
    put(scratch, "memory.max", "1048576\n");
    put(scratch, "cpu.max", "150000 100000\n");
    put(scratch, "pids.max", "11\n");
    assert_int_equal(cgroup_check(&cgroup, &limits, &err), 0);
    put(scratch, "pids.max", "max\n");
    assert_int_equal(cgroup_check(&cgroup, &limits, &err), -1);
    assert_contains(err.text, "pids.max");
    put(scratch, "pids.max", "12\n");
    assert_int_equal(cgroup_check(&cgroup, &limits, &err), -1);

    put(scratch, "memory.events", "low 0\noom 3\noom_kill 2\n");
    put(scratch, "memory.peak", "4096\n");
    put(scratch, "pids.events", "max 5\n");
    put(scratch, "cpu.stat", "usage_usec 9\nuser_usec 6\nsystem_usec 3\nnr_throttled 1\n");
    cgroup_read(&cgroup, &counts);
    assert_int_equal(counts.killed_for_memory, 2);
    assert_int_equal(counts.memory_peak, 4096);
    assert_int_equal(counts.refused_forks, 5);
    assert_int_equal(counts.user_us, 6);
    assert_int_equal(counts.system_us, 3);
    assert_int_equal(counts.throttled, 1);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(root_takes_the_nearest_group_that_gives),
        ON_SCRATCH(a_user_without_a_group_asks_the_manager),
        ON_SCRATCH(a_group_with_a_bound_is_not_left),
        ON_SCRATCH(a_group_outside_of_our_namespace_has_no_path),
        ON_SCRATCH(nothing_is_made_behind_the_managers_back),
        ON_SCRATCH(a_user_in_a_delegated_group_needs_no_manager),
        ON_SCRATCH(the_trees_of_v1_are_found_with_what_is_mounted_of_them),
        ON_SCRATCH(a_host_without_groups_has_no_place),
        ON_SCRATCH(a_group_is_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
