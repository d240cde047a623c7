#include "limits/force.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "limits/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As /proc/PID/limits names them.  PID 1 of the sandbox may count as one more process. */
static const struct {
    enum limit_id limit;
    const char *name;
    uint64_t more;
} bounds[] = {
    { LIMIT_PROCESSES, "Max processes", 1 },
    { LIMIT_OPEN_FILES, "Max open files", 0 },
    { LIMIT_FILE_SIZE, "Max file size", 0 },
};

static bool is_rlimit(enum limit_way way)
{
    return way == WAY_RLIMIT || way == WAY_PER_USER;
}

static bool is_group(enum limit_way way)
{
    return way == WAY_CGROUP1 || way == WAY_CGROUP2 || way == WAY_MANAGER;
}

bool limits_of_the_kernel(const struct limits *limits)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        if (limits->items[i].max && (is_rlimit(limits->items[i].way) || is_group(limits->items[i].way)))
            return true;
    return false;
}

/* "unlimited" is not below any bound. */
static bool below(const char *limits, const char *name, uint64_t most)
{
    const char *line = strstr(limits, name);
    char soft[24], hard[24];

    return line && sscanf(line + strlen(name), "%23s %23s", soft, hard) == 2 && *hard >= '0' && *hard <= '9' &&
           strtoull(hard, NULL, 10) <= most;
}

static int rlimits_in_force(const struct limits *limits, pid_t pid, struct error *err)
{
    autofree char *path = text_format("/proc/%d/limits", (int)pid);
    autofree char *have = file_text(AT_FDCWD, path, 8192);

    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        const struct limit_choice *choice = &limits->items[bounds[i].limit];
        autotext struct text shown = TEXT_NONE;

        if (!choice->max || !is_rlimit(choice->way))
            continue;
        limit_show(bounds[i].limit, choice->max, &shown);
        if (!have || !below(have, bounds[i].name, choice->max + bounds[i].more))
            return error_set(err, ERROR_REFUSED, "the limit %s is not in %s", text_string(&shown), path);
    }
    return 0;
}

/* The groups of a process, whether we made them or not. */
static int find_groups(const struct limits *limits, pid_t pid, struct cgroup *out, struct error *err)
{
    bool v1 = limits->place.kind == CGROUP_V1;

    *out = (struct cgroup){ .kind = limits->place.kind, .have = limits->place.have };
    for (unsigned i = 0; i < (v1 ? CONTROLLER_COUNT : 1); i++) {
        if (v1 && !(out->have >> i & 1))
            continue;
        out->dirs[i] = cgroup_dir_of(pid, v1 ? controller_name(i) : "");
        if (!out->dirs[i])
            return error_set(err, ERROR_REFUSED, "the control group of process %d cannot be found", (int)pid);
    }
    return 0;
}

static int groups_in_force(const struct limits *limits, pid_t pid, struct error *err)
{
    struct cgroup groups = CGROUP_INIT;
    int result = find_groups(limits, pid, &groups, err);

    if (result == 0)
        result = cgroup_check(&groups, limits, err);
    cgroup_free(&groups);
    return result;
}

int limits_in_force(const struct limits *limits, pid_t pid, struct error *err)
{
    if (limits->place.kind != CGROUP_NONE && groups_in_force(limits, pid, err) < 0)
        return -1;
    return rlimits_in_force(limits, pid, err);
}
