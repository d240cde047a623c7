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
#include "box/init_program.h"
#include "init/protocol.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int wake_clone(int go, struct error *err)
{
    struct message message = { .kind = MESSAGE_GO };

    return wire_send(go, &message, NULL, 0) < 0 ? error_sys(err, "wake the clone") : 0;
}

static int enter_mounts(int namespace, struct error *err)
{
    return setns(namespace, CLONE_NEWNS) < 0 ? error_sys(err, "enter the sandbox's mount namespace") : 0;
}

struct mounter {
    const struct clone_context *context;
    pid_t pid; /* of the clone */
    int go;
    bool done;
    struct error error;
};

/* Has the host's rights: enters the clone's mount namespace, and only that, and assembles the root
 * there. */
static int mounter_work(struct mounter *mounter, struct error *err)
{
    const struct clone_context *context = mounter->context;
    struct executor x = {
        .plan = context->plan, .state = context->host->state, .id = context->id, .go = mounter->go
    };
    autofree char *mounts = text_format("/proc/%d/ns/mnt", mounter->pid);
    autofree char *users = text_format("/proc/%d/ns/user", mounter->pid);
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
static int run_mounter(const struct clone_context *context, pid_t pid, int go, struct error *err)
{
    enum { STACK = 256 << 10 };
    struct mounter mounter = { .context = context, .pid = pid, .go = go };
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

/* Root, or a user with subordinate ids: the parent maps ids and root also mounts. */
static int finish_from_outside(const struct clone_context *context, pid_t pid, int go, struct error *err)
{
    if (idmap_write(&context->plan->ids, pid, err) < 0)
        return error_while(err, "map ids");
    if (wake_clone(go, err) < 0)
        return -1;
    return context->plan->ids.shifted ? run_mounter(context, pid, go, err) : 0;
}

struct pairs {
    int init[2], go[2];
};

static void close_pairs(struct pairs *pairs)
{
    int *const all[] = { pairs->init, pairs->go };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (int side = 0; side < 2; side++)
            if (all[i][side] >= 0)
                close(all[i][side]);
}

static int open_pairs(struct pairs *pairs, struct error *err)
{
    *pairs = (struct pairs){ { -1, -1 }, { -1, -1 } };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs->init) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs->go) < 0)
        return error_sys(err, "make sockets");
    return 0;
}

static int clone_failed(struct error *err)
{
    error_sys(err, "step 1, namespaces: clone into new namespaces");
    if (getenv("COVE_SANDBOX"))
        return error_hint(err, "this is a sandbox of Cove already, and none can be made inside another");
    return error_hint(err, "this needs %s", step_needs(STEP_NAMESPACES));
}

int box_start(const struct plan *plan, const struct host *host, const char *id, struct box *out,
              struct error *err)
{
    __attribute__((cleanup(close_pairs))) struct pairs pairs;
    autoclose int program = sys_sealed_memfd("cove-init", init_program, init_program_size);
    bool outside = plan->ids.shifted || plan->ids.helpers;
    struct box box = BOX_NONE;

    if (open_pairs(&pairs, err) < 0)
        return -1;
    if (program < 0)
        return error_sys(err, "make a memfd for the program of PID 1");

    struct clone_context context = { plan, host, id, pairs.init[1], program, outside ? pairs.go[0] : -1 };

    box.pid = sys_clone(plan->namespaces & ~(uint64_t)CLONE_NEWNET, &box.pidfd); /* that one: network.c */
    if (box.pid == 0) {
        close(pairs.go[1]); /* else the clone would wait for itself when the keeper dies */
        close(pairs.init[0]);
        clone_main(&context);
    }
    if (box.pid < 0)
        return clone_failed(err);
    if (outside && finish_from_outside(&context, box.pid, pairs.go[1], err) < 0) {
        box_end(&box);
        return -1;
    }
    box.init_fd = steal_fd(&pairs.init[0]);
    *out = box;
    return 0;
}

void box_end(struct box *box)
{
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
