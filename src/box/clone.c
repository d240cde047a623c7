/* The clone: from a copy of the keeper in new namespaces to the program of PID 1.
 *
 * Should: do what needs no plan, wait for its orders, map its ids, assemble the root, give up the
 * host's root, and exec.
 * Must not: open anything by a path that somebody else could have changed in between; keep a
 * descriptor that init does not need. */

#include "box/clone.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/confine.h"
#include "box/execute.h"
#include "box/idmap.h"
#include "box/init_program.h"
#include "box/network.h"
#include "box/orders.h"
#include "box/processors.h"
#include "init/protocol.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Noreturn void fail(const struct clone_context *context, const struct error *err)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = 125, .error = *err };

    wire_send(context->init_fd, &message, NULL, 0);
    _exit(125);
}

/* A keeper that gave up, or died, needs no answer.  One message is for all who wait: a keeper that
 * sent two would be pushed off its processor by whom the first one woke, and the second come late. */
static void wait_for_orders(const struct clone_context *context, int *program)
{
    struct pollfd polled = { .fd = context->go, .events = POLLIN };
    int fds[PROTOCOL_FDS_MAX];
    struct message message = { .kind = MESSAGE_GO };
    struct error ignored = { 0 };
    size_t count = 0;

    if (poll(&polled, 1, -1) != 1 || (context->own_mounter ? wire_peek : wire_receive)(
                                         context->go, &message, fds, &count, &ignored) != WIRE_MESSAGE)
        _exit(125);
    if (count)
        own_close(program ? program : &fds[0]);
    if (program && count)
        *program = fds[0]; /* what is lent takes the place of what we made ourselves */
}

/* With a range: root inside, whose ids own what we make. */
static int become_inside_root(const struct ids *ids, struct error *err)
{
    if (!ids->shifted && !ids->helpers)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return error_sys(err, "become root of the user namespace");
    return 0;
}

/* Off the owner's terminal, and out of the session that shares its scheduling. */
static void leave_session(const struct plan *plan)
{
#ifdef COVE_UNSAFE
    if (plan->start_flags & START_NO_SESSION)
        return;
#endif
    (void)plan;
    setsid();
}

static int take_ids(const struct ids *ids, struct error *err)
{
    if (!ids->shifted && !ids->helpers && idmap_own(ids, err) < 0)
        return -1;
    return become_inside_root(ids, err);
}

static _Noreturn void be_mounter(const struct clone_context *context, struct executor *x)
{
    struct error err = { 0 };

    wait_for_orders(context, NULL);
    umask(0);
    if (take_ids(&x->plan->ids, &err) < 0 || executor_mount(x, &err) < 0)
        fail(context, &err);
    _exit(0);
}

/* The mounter of an ordinary user: a copy of us, which assembles the root while we do the rest.  What
 * root's does with the host's rights it does with ours. */
static int fork_mounter(const struct clone_context *context, struct executor *x, struct error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");
    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork the mounter");
    x->go = pair[pid == 0];
    close(pair[pid != 0]);
    if (pid == 0)
        be_mounter(context, x);
    processors_move_away(context->processors, pid);
    return 0;
}

/* What needs no plan. */
static int prepare(const struct clone_context *context, struct executor *x, int *program, struct error *err)
{
    x->go = context->go;
    if (context->own_mounter && fork_mounter(context, x, err) < 0)
        return -1;
    if (context->namespaces & CLONE_NEWNET)
        network_make(x->network);
    *program = sys_sealed_memfd("cove-init", init_program, init_program_size);
    return *program < 0 ? error_sys(err, "make a memfd for the program of PID 1") : 0;
}

/* While we are still the host's user, and alone: what a fresh process does to itself costs nothing. */
static int join_groups(const struct strings *files, struct error *err)
{
    for (size_t i = 0; i < files->len; i++)
        if (sys_write_file(AT_FDCWD, files->items[i], "0") < 0)
            return error_sys(err, "join a control group by %s", files->items[i]);
    return 0;
}

/* Ids of an ordinary user are mapped by the mounter before we have its root.  The mounter is busy with that
 * now, so there is time for more. */
static int begin(const struct executor *x, struct error *err)
{
    leave_session(x->plan);
    umask(0);
    if (join_groups(&x->orders->joins, err) < 0 || confine_early(x->plan, err) < 0)
        return -1;
    return become_inside_root(&x->plan->ids, err);
}

/* Exactly the descriptors that protocol.h names, and /dev/null of the sandbox as 0, 1 and 2. */
static int arrange_descriptors(int *init, int landlock, int *program, struct error *err)
{
    enum { ABOVE = 16 };
    int init_fd = fcntl(*init, F_DUPFD, ABOVE);
    int rules = landlock >= 0 ? fcntl(landlock, F_DUPFD, ABOVE) : -1;
    int null = open("/dev/null", O_RDWR);

    *program = fcntl(*program, F_DUPFD_CLOEXEC, ABOVE);
    if (init_fd < 0 || null < 0 || *program < 0 || (landlock >= 0 && rules < 0))
        return error_sys(err, "arrange descriptors");
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || dup2(init_fd, PROTOCOL_INIT_FD) < 0)
        return error_sys(err, "arrange descriptors");
    *init = PROTOCOL_INIT_FD; /* errors go there from now on */
    close(PROTOCOL_LANDLOCK_FD);
    if (rules >= 0 && dup2(rules, PROTOCOL_LANDLOCK_FD) < 0)
        return error_sys(err, "arrange descriptors");
    if (dup2(*program, PROTOCOL_LANDLOCK_FD + 1) < 0 ||
        fcntl(PROTOCOL_LANDLOCK_FD + 1, F_SETFD, FD_CLOEXEC) < 0)
        return error_sys(err, "arrange descriptors");
    *program = PROTOCOL_LANDLOCK_FD + 1;
    if (close_range((unsigned)*program + 1, ~0U, 0) < 0)
        return error_sys(err, "close descriptors");
    return 0;
}

/* The terminal's signals are the keeper's to hear; init sets its own mask. */
static void be_deaf(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

void clone_main(const struct clone_context *context)
{
    char *argv[] = { (char *)(uintptr_t) "cove-init", NULL, NULL }, *envp[] = { NULL };
    struct network network = NETWORK_CLOSED;
    struct error err = { 0 };
    struct executor x = {
        .orders = context->orders,
        .plan = &context->orders->plan,
        .network = &network,
        .userns = -1,
        .processors = context->processors,
        .init_fd = context->init_fd,
    };
    struct clone_context inside = *context;

    int program = -1;

    be_deaf();
    int prepared = prepare(context, &x, &program, &err);

    processors_stay(context->processors);
    wait_for_orders(context, &program);
    if (prepared < 0 || begin(&x, &err) < 0 || executor_clone(&x, &err) < 0 ||
        confine_rights(&x.plan->ids, &err) < 0)
        fail(context, &err);
    if (arrange_descriptors(&inside.init_fd, x.landlock, &program, &err) < 0)
        fail(&inside, &err);
#ifdef COVE_UNSAFE
    argv[1] = x.plan->start_flags & START_NO_SECCOMP ? (char *)(uintptr_t) "unfiltered" : NULL;
#endif
    syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH);
    error_sys(&err, "run the program of PID 1");
    fail(&inside, &err);
}
