/* Control arms (docs/testing.md).  In a release build this file is empty. */

#include "cli/run.h"

#ifdef COVE_UNSAFE

#include "base/array.h"
#include "base/text.h"
#include "box/plan.h"
#include "init/protocol.h"

#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Guards that are no step of their own: bits of START, and namespaces. */
static const struct {
    const char *name;
    uint32_t start_flags;
    uint64_t namespaces;
} guards[] = {
    { "seccomp", START_NO_SECCOMP, 0 },   { "capabilities", START_NO_CAPS, 0 },
    { "session", START_NO_SESSION, 0 },   { "descriptors", START_NO_CLOSE, 0 },
    { "network", 0, CLONE_NEWNET },       { "ipc", 0, CLONE_NEWIPC },
    { "uts", 0, CLONE_NEWUTS },           { "time", 0, CLONE_NEWTIME },
    { "cgroup", 0, CLONE_NEWCGROUP },     { "environment", 0, 0 },
    { "dumpable", START_NO_DUMPABLE, 0 }, { "limits", 0, 0 },
};

static bool named(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

bool unsafe_without(const char *guard)
{
    return named(getenv("COVE_UNSAFE_WITHOUT"), guard);
}

void unsafe_apply(struct plan *plan)
{
    const char *list = getenv("COVE_UNSAFE_WITHOUT");

    if (!list)
        return;
    plan->without = list;
    for (size_t i = 0; i < ARRAY_LEN(guards); i++)
        if (named(list, guards[i].name)) {
            plan->start_flags |= guards[i].start_flags;
            plan->namespaces &= ~guards[i].namespaces;
        }
    for (size_t i = 0; named(list, "source") && i < plan->trees.len; i++)
        plan->trees.items[i].inode = 0; /* what lies there at the mount is not compared with what was judged */
    if (named(list, "limits"))
        limits_free(&plan->limits);
    if (named(list, "environment"))
        for (char **variable = environ; *variable; variable++)
            strings_add(&plan->env, *variable);
}

#endif
