/* From a plan to a running PID 1, seen from the keeper. */

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/beside.h"
#include "box/box.h"
#include "box/clone.h"
#include "box/execute.h"
#include "box/host.h"
#include "box/idmap.h"
#include "box/init_program.h"
#include "box/lent.h"
#include "box/network.h"
#include "box/orders.h"
#include "box/processors.h"
#include "init/protocol.h"
#include "init/wire.h"
#include "limits/manager.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUP_PATIENCE_MS = 2000 };

static int wake(const struct box *box, int program, struct error *err)
{
    struct message message = { .kind = MESSAGE_GO };

    return wire_send(box->go, &message, &program, program >= 0) < 0 ? error_sys(err, "wake the clone") : 0;
}

static int enter_mounts(int namespace, struct error *err)
{
    struct stat wanted, ours;

    if (setns(namespace, CLONE_NEWNS) < 0)
        return error_sys(err, "enter the sandbox's mount namespace");
    /* Read back: what is mounted from here on must not be mounted on the host. */
    if (fstat(namespace, &wanted) < 0 || stat("/proc/self/ns/mnt", &ours) < 0)
        return error_sys(err, "look which mount namespace this is");
    if (wanted.st_ino != ours.st_ino)
        return error_set(err, ERROR_REFUSED, "read back: this is not the sandbox's mount namespace");
    return 0;
}

/* Has the host's rights: enters the clone's mount namespace, and only that, and assembles the root
 * there. */
static int mounter_work(void *argument, struct error *err)
{
    const struct box *box = argument;
    struct executor x = { .orders = box->orders, .plan = &box->orders->plan, .go = box->go };
    autofree char *mounts = text_format("/proc/%d/ns/mnt", box->pid);
    autofree char *users = text_format("/proc/%d/ns/user", box->pid);
    int namespace = open(mounts, O_RDONLY | O_CLOEXEC);

    x.userns = open(users, O_RDONLY | O_CLOEXEC);
    umask(0);
    if (namespace < 0 || x.userns < 0)
        return error_sys(err, "open the sandbox's namespaces");
    if (executor_prepare(&x, err) < 0 || enter_mounts(namespace, err) < 0)
        return -1;
    return executor_mount(&x, err);
}

static int run_mounter(const struct box *box, struct error *err)
{
    return beside_run(mounter_work, (void *)(uintptr_t)box, "the process that assembles the root", err);
}

static int clone_failed(struct error *err)
{
    error_sys(err, "step 1, namespaces: clone into new namespaces");
    if (getenv("COVE_SANDBOX"))
        return error_hint(err, "this is a sandbox of Cove already, and none can be made inside another");
    return error_hint(err, "this needs %s (`cove doctor` tells more)", step_needs(STEP_NAMESPACES));
}

/* In the clone.  What it would keep of our ends would keep us from being missed. */
static _Noreturn void be_clone(const struct box *box, struct processors *processors, int init_fd, int go)
{
    struct clone_context context = { box->orders, box->namespaces, box->own_mounter, processors, init_fd, go };

    close(box->go);
    close(box->init_fd);
    clone_main(&context);
}

int box_open(uint64_t namespaces, bool own_mounter, int group, struct box *out, struct error *err)
{
    struct processors processors;
    struct box box = BOX_NONE;
    int init[2] = { -1, -1 }, go[2] = { -1, -1 };
    bool made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, init) == 0 &&
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, go) == 0;
    autoclose int its_init = init[1], its_go = go[1];

    box.init_fd = init[0];
    box.go = go[0];
    box.namespaces = namespaces;
    box.own_mounter = own_mounter;
    box.orders = made ? orders_new() : NULL;
    if (!box.orders) {
        error_sys(err, "make sockets and memory for a clone");
        box_end(&box);
        return -1;
    }
    processors_read(&processors);
    box.pid = sys_clone(namespaces & ~(uint64_t)CLONE_NEWNET, group, &box.pidfd); /* that one: network.c */
    if (box.pid == 0)
        be_clone(&box, &processors, its_init, its_go);
    if (box.pid < 0) {
        clone_failed(err);
        box_end(&box);
        return -1;
    }
    processors_move_away(&processors, box.pid);
    *out = box;
    return 0;
}

int box_open_freezable(uint64_t namespaces, bool own_mounter, struct box *out, struct error *err)
{
    struct freezer freezer;

    freezer_make(&freezer);

    autoclose int group = freezer_open(&freezer);
    int opened = box_open(namespaces, own_mounter, group, out, err);

    if (opened == 0) {
        out->freezer = freezer;
        return 0;
    }
    freezer_remove(&freezer, 0);
    freezer_free(&freezer);
    return -1;
}

void box_drop_orders(struct box *box)
{
    orders_free(box->orders);
    box->orders = NULL;
}

static void drop_go(struct box *box)
{
    if (box->go >= 0)
        close(steal_fd(&box->go));
}

/* Root, or a user with subordinate ids: we map ids, and root also mounts. */
static int give_orders(const struct plan *plan, const struct host *host, const char *id, const struct box *box,
                       struct error *err)
{
    const struct ids *ids = &plan->ids;
    autostrings struct strings joins = STRINGS_NONE;

    cgroup_joins(&box->cgroup, &joins);
    freezer_joins(&box->freezer, &joins);
    if (orders_write(box->orders, plan, &joins, host->state, id, err) < 0)
        return -1;
    if ((ids->shifted || ids->helpers) && idmap_write(ids, box->pid, err) < 0)
        return error_while(err, "map ids");

    const struct lent shared = init_lent();
    autoclose int program = plan->stays ? lent_take(host->state, &shared) : -1;

    if (wake(box, program, err) < 0)
        return -1;
    if (ids->shifted)
        return run_mounter(box, err);
    /* The start waits for the mounter, and nobody for what we do next; alone it would not get a processor
     * before us. */
    (void)sched_yield();
    return 0;
}

/* What went wrong here may be that the clone is gone; then that is seen within moments. */
static bool is_over(const struct box *box)
{
    struct pollfd polled = { .fd = box->pidfd, .events = POLLIN };

    return poll(&polled, 1, 100) > 0;
}

/* The clone that was made before there was a plan, if it will do, else another one. */
static int take_clone(const struct plan *plan, const struct cgroup *cgroup, struct box *box, struct error *err)
{
    bool own_mounter = !plan->ids.shifted, inside = cgroup->kind == CGROUP_V2;
    bool by_manager =
        plan->limits.place.kind == CGROUP_MANAGER; /* who will move it, but nobody it has forked */
    autoclose int group = inside ? cgroup_open(cgroup, err) : -1;

    if (inside && group < 0)
        return -1;
    if (box->orders && (box->namespaces != plan->namespaces || box->own_mounter != own_mounter || inside ||
                        (by_manager && box->freezer.dir)))
        box_end(box);
    if (box->orders)
        return 0;
    return plan->limits.freezable && !inside && !by_manager
               ? box_open_freezable(plan->namespaces, own_mounter, box, err)
               : box_open(plan->namespaces, own_mounter, group, box, err);
}

/* In a group with its limits before it does anything. */
static int take_grouped_clone(const struct plan *plan, const char *id, struct box *box, struct error *err)
{
    struct cgroup cgroup = CGROUP_INIT;

    if (cgroup_make(&plan->limits, id, &cgroup, err) < 0)
        return -1;
    if (take_clone(plan, &cgroup, box, err) < 0 ||
        (plan->limits.place.kind == CGROUP_MANAGER &&
         manager_scope(&plan->limits, id, box->pid, &cgroup, err) < 0)) {
        box_end(box);
        (void)cgroup_remove(&cgroup, GROUP_PATIENCE_MS);
        cgroup_free(&cgroup);
        return -1;
    }
    box->cgroup = cgroup;
    if (cgroup.kind == CGROUP_V2 || cgroup.kind == CGROUP_MANAGER)
        freezer_borrow(cgroup.dirs[0], &box->freezer);
    return 0;
}

int box_start(const struct plan *plan, const struct host *host, const char *id, struct box *box,
              struct error *err)
{
    if (take_grouped_clone(plan, id, box, err) < 0)
        return -1;

    int result = give_orders(plan, host, id, box, err);

    if (result < 0 && is_over(box))
        result = 0; /* it has said why, over init_fd, and that is what counts */
    drop_go(box);
    if (result < 0)
        box_end(box);
    return result;
}

static bool may_differ(const struct plan *plan)
{
#ifdef COVE_UNSAFE
    return plan->without && strstr(plan->without, "verify");
#else
    (void)plan;
    return false;
#endif
}

int box_verify(struct box *box, const struct message *mounted, int *fds, size_t count, struct error *err)
{
    const struct orders *orders = box->orders;

    if (!orders)
        return error_set(err, ERROR_REFUSED, "there is nothing to compare the mounts with");
    if (count < 1)
        return error_set(err, ERROR_REFUSED, "the sandbox did not send a list of its mounts");

    autofree struct made *all = made_join(orders->by_mounter, orders->by_clone);

    if (!may_differ(&orders->plan) && verify_mounts(all, steal_fd(&fds[0]), err) < 0)
        return error_while(err, "%s", step_name(STEP_VERIFY));
    if (network_unpack(&box->network, fds + 1, count - 1, err) < 0)
        return -1;
    box->network.lacking = mounted->error;
    box->mounted = steal_ptr(&all);
    return 0;
}

void box_forget(struct box *box)
{
    network_close(&box->network);
    cgroup_free(&box->cgroup);
    freezer_free(&box->freezer);
    free(box->mounted);
    box->mounted = NULL;
}

void box_end(struct box *box)
{
    box_drop_orders(box);
    drop_go(box);
    if (box->pidfd >= 0) {
        sys_pidfd_kill(box->pidfd, SIGKILL);
        while (box->pid > 0 && waitpid(box->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        close(box->pidfd);
    }
    if (box->init_fd >= 0)
        close(box->init_fd);
    (void)cgroup_remove(&box->cgroup, GROUP_PATIENCE_MS);
    freezer_remove(&box->freezer, GROUP_PATIENCE_MS);
    box_forget(box);
    *box = BOX_NONE;
}
