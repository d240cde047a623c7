/* From a plan to a running PID 1, seen from the keeper. */

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/clone.h"
#include "box/execute.h"
#include "box/host.h"
#include "box/idmap.h"
#include "box/orders.h"
#include "box/processors.h"
#include "init/protocol.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int wake(const struct box *box, struct error *err)
{
    struct message message = { .kind = MESSAGE_GO };

    return wire_send(box->go, &message, NULL, 0) < 0 ? error_sys(err, "wake the clone") : 0;
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

struct mounter {
    const struct box *box;
    bool done;
    struct error error;
};

/* Has the host's rights: enters the clone's mount namespace, and only that, and assembles the root
 * there. */
static int mounter_work(struct mounter *mounter, struct error *err)
{
    const struct box *box = mounter->box;
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

static int mounter_main(void *argument)
{
    struct mounter *mounter = argument;

    mounter->done = mounter_work(mounter, &mounter->error) == 0;
    return 0; /* its descriptors go with it */
}

/* The mounter shares our memory, and we sleep until it is over: nothing is copied for it, and its
 * result is simply there. */
static int run_mounter(const struct box *box, struct error *err)
{
    enum { STACK = 256 << 10 };
    struct mounter mounter = { .box = box };
    autofree char *stack = memory_resize(NULL, STACK);
    pid_t child;

    error_set(&mounter.error, ERROR_SYSTEM, "the process that assembles the root died");
    child = clone(mounter_main, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &mounter);
    if (child < 0)
        return error_sys(err, "fork the mounter");
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    *err = mounter.error;
    return mounter.done ? 0 : -1;
}

static int clone_failed(struct error *err)
{
    error_sys(err, "step 1, namespaces: clone into new namespaces");
    if (getenv("COVE_SANDBOX"))
        return error_hint(err, "this is a sandbox of Cove already, and none can be made inside another");
    return error_hint(err, "this needs %s", step_needs(STEP_NAMESPACES));
}

/* In the clone.  What it would keep of our ends would keep us from being missed. */
static _Noreturn void be_clone(const struct box *box, struct processors *processors, int init_fd, int go)
{
    struct clone_context context = { box->orders, box->namespaces, box->own_mounter, processors, init_fd, go };

    close(box->go);
    close(box->init_fd);
    clone_main(&context);
}

int box_open(uint64_t namespaces, bool own_mounter, struct box *out, struct error *err)
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
    box.pid = sys_clone(namespaces & ~(uint64_t)CLONE_NEWNET, &box.pidfd); /* that one: network.c */
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

static void drop_orders(struct box *box)
{
    orders_free(box->orders);
    box->orders = NULL;
    if (box->go >= 0)
        close(steal_fd(&box->go));
}

/* Root, or a user with subordinate ids: we map ids, and root also mounts. */
static int give_orders(const struct plan *plan, const struct host *host, const char *id, const struct box *box,
                       struct error *err)
{
    const struct ids *ids = &plan->ids;

    if (orders_write(box->orders, plan, host->state, id, err) < 0)
        return -1;
    if ((ids->shifted || ids->helpers) && idmap_write(ids, box->pid, err) < 0)
        return error_while(err, "map ids");
    if (wake(box, err) < 0)
        return -1;
    return ids->shifted ? run_mounter(box, err) : 0;
}

/* What went wrong here may be that the clone is gone; then that is seen within moments. */
static bool is_over(const struct box *box)
{
    struct pollfd polled = { .fd = box->pidfd, .events = POLLIN };

    return poll(&polled, 1, 100) > 0;
}

int box_start(const struct plan *plan, const struct host *host, const char *id, struct box *box,
              struct error *err)
{
    bool own_mounter = !plan->ids.shifted;

    if (box->orders && (box->namespaces != plan->namespaces || box->own_mounter != own_mounter))
        box_end(box);
    if (!box->orders && box_open(plan->namespaces, own_mounter, box, err) < 0)
        return -1;

    int result = give_orders(plan, host, id, box, err);

    if (result < 0 && is_over(box))
        result = 0; /* it has said why, over init_fd, and that is what counts */
    drop_orders(box);
    if (result < 0)
        box_end(box);
    return result;
}

void box_end(struct box *box)
{
    drop_orders(box);
    if (box->pidfd >= 0) {
        sys_pidfd_kill(box->pidfd, SIGKILL);
        while (box->pid > 0 && waitpid(box->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        close(box->pidfd);
    }
    if (box->init_fd >= 0)
        close(box->init_fd);
    *box = BOX_NONE;
}
