#include "box/fresh.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/host.h"
#include "box/steps.h"
#include "store/store.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

void fresh_prepare(struct fresh *fresh, const struct box *box, const struct plan *plan, const struct host *host,
                   const struct sandbox_dir *dir, const struct strings *stack)
{
    fresh->box = box;
    fresh->orders = (struct orders){ .plan = *plan, .state = host->state, .id = dir->id };
    fresh->orders.plan.stack = *stack;
    fresh->orders.plan.resumed = true;
    fresh->x = (struct executor){
        .orders = &fresh->orders, .plan = &fresh->orders.plan, .userns = -1, .go = -1, .overlays_only = true
    };
}

/* Read back: what is mounted from here on must not be mounted on the host. */
static int leave_mounts(const struct stat *before, bool root, struct error *err)
{
    struct stat after;

    if (unshare(CLONE_NEWNS) < 0)
        return error_sys(err, "make a mount namespace");
    if (stat("/proc/self/ns/mnt", &after) < 0)
        return error_sys(err, "look which mount namespace this is");
    if (before->st_ino == after.st_ino)
        return error_set(err, ERROR_REFUSED, "read back: this is not a mount namespace of its own");
    if (root && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_sys(err, "keep what is mounted here from the host");
    return 0;
}

static int leave(struct fresh *fresh, struct error *err)
{
    bool root = fresh->orders.plan.ids.shifted;
    autofree char *users = text_format("/proc/%d/ns/user", fresh->box->pid);
    autoclose int namespace = open(users, O_RDONLY | O_CLOEXEC);
    struct stat before;

    umask(0);
    if (namespace < 0 || stat("/proc/self/ns/mnt", &before) < 0)
        return error_sys(err, "open the sandbox's namespaces");
    if (!root && setns(namespace, CLONE_NEWUSER) < 0)
        return error_sys(err, "enter the sandbox's user namespace");
    if (leave_mounts(&before, root, err) < 0)
        return -1;
    fresh->x.userns = root ? steal_fd(&namespace) : -1;
    return 0;
}

int fresh_enter(struct fresh *fresh, struct error *err)
{
    return leave(fresh, err) < 0 || executor_prepare(&fresh->x, err) < 0 || executor_open(&fresh->x, err) < 0
               ? -1
               : 0;
}

/* Over the sandbox's own directory, one over another: nobody but us ever sees them there. */
int fresh_overlay(struct fresh *fresh, const struct step *step, struct error *err)
{
    autofree char *spot = text_format("%s/sandboxes/%s", fresh->orders.state, fresh->orders.id);
    autoclose int target = open(spot, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), made = -1;

    if (target < 0)
        return error_sys(err, "open the sandbox's directory");
    if (overlay_mount(&fresh->x, step, target, err) < 0)
        return -1;
    made = open(spot, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0 || sys_mount_id(made, "") == sys_mount_id(target, ""))
        return error_set(err, ERROR_SYSTEM, "the overlay for %s is not where it was mounted", step->target);

    int copy = sys_open_tree(made, "", AT_EMPTY_PATH);

    return copy < 0 ? error_sys(err, "take the overlay for %s", step->target) : copy;
}
