/* Whether limits can be hard: the place that a run with limits would choose is found by the same code, and a
 * group with limits is really made there.  What a start would have to switch on for that in a group that is not
 * ours is only looked at: that would stay. */

#include "limits/cgroup.h"
#include "base/array.h"
#include "base/own.h"
#include "doctor/probes.h"
#include "limits/manager.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALL = (1 << CONTROLLER_COUNT) - 1, PATIENCE_MS = 1000 };

/* Limits that anything stays below; each is of the controller of the same place. */
static const struct {
    enum limit_id limit;
    enum controller controller;
    uint64_t max;
} samples[] = {
    { LIMIT_MEMORY, CONTROLLER_MEMORY, 1 << 30 },
    { LIMIT_CPUS, CONTROLLER_CPU, 1000 },
    { LIMIT_PROCESSES, CONTROLLER_PIDS, LIMIT_PROCESSES_USUAL },
};

static void choose(unsigned controllers, enum limit_way way, struct limits *limits)
{
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        if (controllers >> samples[i].controller & 1)
            limits->items[samples[i].limit] = (struct limit_choice){ samples[i].max, way };
}

static int try_own(struct limits *limits, const char *id, struct error *err)
{
    struct cgroup made = CGROUP_INIT;

    if (cgroup_make(limits, id, &made, err) < 0)
        return -1;
    if (cgroup_remove(&made, PATIENCE_MS) < 0)
        error_set(err, ERROR_SYSTEM, "the group %s could not be removed", made.dirs[0]);
    cgroup_free(&made);
    return err->kind == ERROR_NONE ? 0 : -1;
}

/* A scope needs a process to be around, and is gone with it. */
static int try_manager(const struct limits *limits, const char *id, struct error *err)
{
    struct cgroup made = CGROUP_INIT;
    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    int result = manager_scope(limits, id, pid, &made, err);

    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    for (unsigned i = 0; made.dirs[0] && i < PATIENCE_MS && access(made.dirs[0], F_OK) == 0; i++)
        usleep(1000);
    cgroup_free(&made);
    return result;
}

static int try_place(struct cgroup_place *place_take, struct error *err)
{
    struct limits limits = { .place = *place_take };
    autofree char *id = text_format("doctor-%d", getpid());
    int result;

    *place_take = CGROUP_PLACE_NONE;
    limits.place.have &= ~limits.place.enable;
    limits.place.enable = 0;
    if (limits.place.kind == CGROUP_MANAGER) {
        choose(limits.place.have, WAY_MANAGER, &limits);
        result = try_manager(&limits, id, err);
    } else {
        choose(limits.place.have, limits.place.kind == CGROUP_V2 ? WAY_CGROUP2 : WAY_CGROUP1, &limits);
        result = try_own(&limits, id, err);
    }
    limits_free(&limits);
    return result;
}

static void list_controllers(unsigned set, struct text *out)
{
    for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
        if (set >> i & 1)
            text_addf(out, "%s%s", out->len ? ", " : "", controller_name((enum controller)i));
}

void probe_cgroup(const struct patient *patient, struct finding *finding)
{
    static const char *const versions[] = { [CGROUP_V1] = "version 1, groups below",
                                            [CGROUP_V2] = "version 2, groups below",
                                            [CGROUP_MANAGER] = "version 2, scopes of your service manager," };
    autotext struct text have = TEXT_NONE, lack = TEXT_NONE;
    struct cgroup_place place;
    struct error err = { 0 };

    (void)patient;
    cgroup_place_find(ALL, &place);
    if (place.kind == CGROUP_NONE || !place.have) {
        found(finding, DOCTOR_FALLBACK,
              "none: there is no group below which we could make one, and no service manager of ours that "
              "makes one");
        cgroup_place_free(&place);
        return;
    }
    const char *version = versions[place.kind];
    unsigned set = place.have;
    autofree char *dir = NULL;

    for (size_t i = 0; !dir; i++)
        dir = place.dirs[i] ? text_copy(place.dirs[i]) : NULL;
    list_controllers(set, &have);
    list_controllers(ALL & ~set, &lack);
    if (try_place(&place, &err) < 0)
        found_error(finding, DOCTOR_FALLBACK, &err);
    else if (set == ALL)
        found(finding, DOCTOR_OK, "%s %s: %s", version, dir, text_string(&have));
    else
        found(finding, DOCTOR_FALLBACK, "%s %s: %s, but not %s", version, dir, text_string(&have),
              text_string(&lack));
}
