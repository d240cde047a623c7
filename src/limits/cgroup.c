#include "limits/cgroup.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The kernel's own period: a shorter one throttles bursts, and builds are all bursts. */
enum { CPU_PERIOD_US = 100000, VALUE_MAX = 64 };

static void say_plain(char *value, uint64_t max)
{
    snprintf(value, VALUE_MAX, "%" PRIu64, max);
}

/* PID 1 is ours and counts too. */
static void say_processes(char *value, uint64_t max)
{
    snprintf(value, VALUE_MAX, "%" PRIu64, max + 1);
}

static void say_quota(char *value, uint64_t millis)
{
    snprintf(value, VALUE_MAX, "%" PRIu64, millis * (CPU_PERIOD_US / 1000));
}

static void say_quota_and_period(char *value, uint64_t millis)
{
    snprintf(value, VALUE_MAX, "%" PRIu64 " %d", millis * (CPU_PERIOD_US / 1000), CPU_PERIOD_US);
}

static void say_nothing_more(char *value, uint64_t max)
{
    (void)max;
    snprintf(value, VALUE_MAX, "0");
}

static void say_yes(char *value, uint64_t max)
{
    (void)max;
    snprintf(value, VALUE_MAX, "1");
}

/* Which file of which controller takes which limit, in the order in which they are written.  Optional: not
 * every kernel has the file; where it is, it has to hold.  Without a count of swap, v1 does not swap at all. */
static const struct knob {
    bool v1;
    enum controller controller;
    enum limit_id limit;
    const char *file;
    void (*say)(char *value, uint64_t max);
    bool optional;
} knobs[] = {
    { true, CONTROLLER_MEMORY, LIMIT_MEMORY, "memory.limit_in_bytes", say_plain, false },
    { true, CONTROLLER_MEMORY, LIMIT_MEMORY, "memory.memsw.limit_in_bytes", say_plain, true },
    { true, CONTROLLER_MEMORY, LIMIT_MEMORY, "memory.swappiness", say_nothing_more, true },
    { true, CONTROLLER_CPU, LIMIT_CPUS, "cpu.cfs_quota_us", say_quota, false },
    { true, CONTROLLER_PIDS, LIMIT_PROCESSES, "pids.max", say_processes, false },
    { false, CONTROLLER_MEMORY, LIMIT_MEMORY, "memory.max", say_plain, false },
    { false, CONTROLLER_MEMORY, LIMIT_MEMORY, "memory.swap.max", say_nothing_more, true },
    { false, CONTROLLER_MEMORY, LIMIT_MEMORY, "memory.oom.group", say_yes, true },
    { false, CONTROLLER_CPU, LIMIT_CPUS, "cpu.max", say_quota_and_period, false },
    { false, CONTROLLER_PIDS, LIMIT_PROCESSES, "pids.max", say_processes, false },
};

void cgroup_free(struct cgroup *cgroup)
{
    for (size_t i = 0; i < CONTROLLER_COUNT; i++)
        free(cgroup->dirs[i]);
    *cgroup = CGROUP_INIT;
}

static const char *dir_of(const struct cgroup *cgroup, enum controller controller)
{
    return cgroup->dirs[cgroup->kind == CGROUP_V1 ? controller : 0];
}

static bool read_value(const char *dir, const char *file, char *out, size_t size)
{
    autofree char *path = text_format("%s/%s", dir, file);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, size - 1);

    if (got < 0)
        return false;
    out[got] = '\0';
    return true;
}

/* What the kernel made of it may be less, by a page, but not more, and not "max". */
static bool holds(const char *dir, const struct knob *knob, const char *wanted)
{
    char have[VALUE_MAX];

    return read_value(dir, knob->file, have, sizeof have) && *have >= '0' && *have <= '9' &&
           strtoull(have, NULL, 10) <= strtoull(wanted, NULL, 10);
}

static int turn(const char *dir, const struct knob *knob, uint64_t max, bool write_it, struct error *err)
{
    autofree char *path = text_format("%s/%s", dir, knob->file);
    char value[VALUE_MAX];

    knob->say(value, max);
    if (knob->optional && access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    if (write_it && sys_write_file(AT_FDCWD, path, value) < 0)
        return error_sys(err, "write %s to %s", value, path);
    if (!holds(dir, knob, value))
        return error_set(err, ERROR_REFUSED, "%s is not %s, or less", path, value);
    return 0;
}

static int turn_all(const struct cgroup *cgroup, const struct limits *limits, bool write_it, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
        const struct knob *knob = &knobs[i];
        uint64_t max = limits->items[knob->limit].max;

        if (knob->v1 == (cgroup->kind == CGROUP_V1) && max && cgroup->have >> knob->controller & 1 &&
            turn(dir_of(cgroup, knob->controller), knob, max, write_it, err) < 0)
            return -1;
    }
    return 0;
}

int cgroup_check(const struct cgroup *cgroup, const struct limits *limits, struct error *err)
{
    return turn_all(cgroup, limits, false, err);
}

/* One by one: one that cannot be had must not keep the others away. */
static int enable(const struct cgroup_place *place, struct error *err)
{
    autofree char *file = text_format("%s/cgroup.subtree_control", place->dirs[0]);

    for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
        autofree char *word = text_format("+%s", controller_name((enum controller)i));

        if (place->enable >> i & 1 && sys_write_file(AT_FDCWD, file, word) < 0)
            return error_sys(err, "write %s to %s", word, file);
    }
    return 0;
}

static int make_dirs(const struct cgroup_place *place, const char *id, struct cgroup *out, struct error *err)
{
    for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
        if (!place->dirs[i])
            continue;
        autofree char *dir = text_format("%s/cove-%s", place->dirs[i], id);

        if (mkdir(dir, 0755) < 0)
            return error_sys(err, "make the control group %s", dir);
        out->dirs[i] = steal_ptr(&dir);
    }
    return 0;
}

int cgroup_make(const struct limits *limits, const char *id, struct cgroup *out, struct error *err)
{
    const struct cgroup_place *place = &limits->place;
    struct cgroup made = { .kind = place->kind, .have = place->have };

    if (place->kind == CGROUP_NONE || place->kind == CGROUP_MANAGER)
        return 0;
    if ((place->enable && enable(place, err) < 0) || make_dirs(place, id, &made, err) < 0 ||
        turn_all(&made, limits, true, err) < 0) {
        cgroup_remove(&made, 0);
        cgroup_free(&made);
        return error_while(err, "set limits");
    }
    *out = made;
    return 0;
}

int cgroup_open(const struct cgroup *cgroup, struct error *err)
{
    int fd = open(cgroup->dirs[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open the control group %s", cgroup->dirs[0]) : fd;
}

void cgroup_joins(const struct cgroup *cgroup, struct strings *out)
{
    for (size_t i = 0; cgroup->kind == CGROUP_V1 && i < CONTROLLER_COUNT; i++)
        if (cgroup->dirs[i])
            strings_take(out, text_format("%s/tasks", cgroup->dirs[i]));
}

/* Which number stands where.  A key is the first word of its line; none: the file is the number. */
static const struct {
    bool v1;
    enum controller controller;
    const char *file, *key;
    size_t at;
} counts[] = {
    { true, CONTROLLER_MEMORY, "memory.max_usage_in_bytes", NULL, offsetof(struct cgroup_counts, memory_peak) },
    { true, CONTROLLER_MEMORY, "memory.usage_in_bytes", NULL, offsetof(struct cgroup_counts, memory_now) },
    { true, CONTROLLER_MEMORY, "memory.oom_control", "oom_kill",
      offsetof(struct cgroup_counts, killed_for_memory) },
    { true, CONTROLLER_CPU, "cpu.stat", "nr_throttled", offsetof(struct cgroup_counts, throttled) },
    { false, CONTROLLER_MEMORY, "memory.peak", NULL, offsetof(struct cgroup_counts, memory_peak) },
    { false, CONTROLLER_MEMORY, "memory.current", NULL, offsetof(struct cgroup_counts, memory_now) },
    { false, CONTROLLER_MEMORY, "memory.events", "oom_kill",
      offsetof(struct cgroup_counts, killed_for_memory) },
    { false, CONTROLLER_CPU, "cpu.stat", "user_usec", offsetof(struct cgroup_counts, user_us) },
    { false, CONTROLLER_CPU, "cpu.stat", "system_usec", offsetof(struct cgroup_counts, system_us) },
    { false, CONTROLLER_CPU, "cpu.stat", "nr_throttled", offsetof(struct cgroup_counts, throttled) },
    { true, CONTROLLER_PIDS, "pids.peak", NULL, offsetof(struct cgroup_counts, processes_peak) },
    { true, CONTROLLER_PIDS, "pids.current", NULL, offsetof(struct cgroup_counts, processes_now) },
    { true, CONTROLLER_PIDS, "pids.events", "max", offsetof(struct cgroup_counts, refused_forks) },
    { false, CONTROLLER_PIDS, "pids.peak", NULL, offsetof(struct cgroup_counts, processes_peak) },
    { false, CONTROLLER_PIDS, "pids.current", NULL, offsetof(struct cgroup_counts, processes_now) },
    { false, CONTROLLER_PIDS, "pids.events", "max", offsetof(struct cgroup_counts, refused_forks) },
};

static bool find_number(const char *content, const char *key, uint64_t *out)
{
    const char *at = content;
    char *end;

    while (key && *at) {
        size_t len = strlen(key);

        if (strncmp(at, key, len) == 0 && at[len] == ' ') {
            at += len + 1;
            break;
        }
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    *out = strtoull(at, &end, 10);
    return end != at;
}

void cgroup_read(const struct cgroup *cgroup, struct cgroup_counts *out)
{
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        const char *dir = dir_of(cgroup, counts[i].controller);
        char content[1024];
        uint64_t number;

        if (counts[i].v1 == (cgroup->kind == CGROUP_V1) && cgroup->have >> counts[i].controller & 1 && dir &&
            read_value(dir, counts[i].file, content, sizeof content) &&
            find_number(content, counts[i].key, &number))
            *(uint64_t *)(void *)((char *)out + counts[i].at) = number;
    }
}

int cgroup_remove_dir(const char *dir, unsigned patience_ms)
{
    while (rmdir(dir) < 0 && errno == EBUSY && patience_ms) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        patience_ms--;
    }
    return access(dir, F_OK) == 0 ? -1 : 0;
}

int cgroup_remove(const struct cgroup *cgroup, unsigned patience_ms)
{
    int result = 0;

    for (size_t i = 0; cgroup->kind != CGROUP_MANAGER && i < CONTROLLER_COUNT; i++)
        if (cgroup->dirs[i] && cgroup_remove_dir(cgroup->dirs[i], patience_ms) < 0)
            result = -1;
    return result;
}

/* One that is new may be waiting for its first process; rmdir() refuses one that has any. */
void cgroup_sweep_dir(const char *dir)
{
    enum { OLD_S = 60 };
    DIR *list = opendir(dir);
    const struct dirent *entry;
    struct stat info;

    while (list && (entry = readdir(list)))
        if (text_starts(entry->d_name, "cove-") && fstatat(dirfd(list), entry->d_name, &info, 0) == 0 &&
            info.st_mtime + OLD_S < time(NULL))
            (void)unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
    if (list)
        closedir(list);
}

void cgroup_sweep(const struct cgroup *cgroup)
{
    for (size_t i = 0; cgroup->kind != CGROUP_MANAGER && i < CONTROLLER_COUNT; i++) {
        if (!cgroup->dirs[i])
            continue;
        autofree char *parent = text_copy(cgroup->dirs[i]);

        *strrchr(parent, '/') = '\0';
        cgroup_sweep_dir(parent);
    }
}
