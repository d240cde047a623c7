/* The clone: from a copy of the keeper in new namespaces to the program of PID 1.
 *
 * Should: map its ids (or wait for them), assemble the root, give up the host's root, and exec.
 * Must not: open anything by a path that somebody else could have changed in between; keep a
 * descriptor that init does not need. */

#include "box/clone.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "box/execute.h"
#include "box/host.h"
#include "init/protocol.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void fail(const struct clone_context *context, const struct error *err)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = 125, .error = *err };

    wire_send(context->init_fd, &message, NULL, 0);
    _exit(125);
}

/* One row, our own id: the kernel lets an ordinary user write that much. */
static int map_own_ids(const struct ids *ids, struct error *err)
{
    char uids[64], gids[64];

    snprintf(uids, sizeof uids, "%u %u 1", ids->uids[0].inside, ids->uids[0].outside);
    snprintf(gids, sizeof gids, "%u %u 1", ids->gids[0].inside, ids->gids[0].outside);
    if (sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 && errno != ENOENT)
        return error_sys(err, "deny setgroups");
    if (sys_write_file(AT_FDCWD, "/proc/self/uid_map", uids) < 0 ||
        sys_write_file(AT_FDCWD, "/proc/self/gid_map", gids) < 0)
        return error_sys(err, "map the user's ids");
    return 0;
}

static int wait_for_ids(int go, struct error *err)
{
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    if (wire_receive(go, &message, fds, &count, err) != WIRE_MESSAGE)
        return error_set(err, ERROR_SYSTEM, "the keeper gave up");
    return 0;
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

/* Clone and mounter on two processors.  Left to itself the scheduler queues a new task behind us,
 * and wakes us on the processor of who sends us a message, though another one is idle. */
struct processors {
    cpu_set_t allowed;
    int here; /* -1: they are not parted */
};

static void part_from_mounter(struct processors *processors)
{
    cpu_set_t only;

    processors->here = sched_getcpu();
    if (processors->here < 0 || processors->here >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof processors->allowed, &processors->allowed) < 0 ||
        CPU_COUNT(&processors->allowed) < 2) {
        processors->here = -1;
        return;
    }
    CPU_ZERO(&only);
    CPU_SET((unsigned)processors->here, &only);
    (void)sched_setaffinity(0, sizeof only, &only);
}

static void move_away(const struct processors *processors, pid_t pid)
{
    cpu_set_t others = processors->allowed;

    if (processors->here < 0)
        return;
    CPU_CLR((unsigned)processors->here, &others);
    (void)sched_setaffinity(pid, sizeof others, &others);
}

static int take_all(const struct processors *processors, struct error *err)
{
    if (processors->here >= 0 && sched_setaffinity(0, sizeof processors->allowed, &processors->allowed) < 0)
        return error_sys(err, "take all processors again");
    return 0;
}

/* The mounter of an ordinary user: a copy of us, which assembles the root while we do the rest. */
static int fork_mounter(const struct clone_context *context, const struct processors *processors,
                        struct executor *x, struct error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make sockets");
    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork the mounter");
    if (pid == 0) {
        close(pair[0]);
        x->go = pair[1];
        if (executor_mount(x, err) < 0)
            fail(context, err);
        _exit(0);
    }
    move_away(processors, pid);
    close(pair[1]);
    x->go = pair[0];
    return 0;
}

/* What root's mounter does with the host's rights an ordinary user's does with those of the clone. */
static int begin(const struct clone_context *context, struct processors *processors, struct executor *x,
                 struct error *err)
{
    const struct ids *ids = &context->plan->ids;

    if ((context->go >= 0 ? wait_for_ids(context->go, err) : map_own_ids(ids, err)) < 0 ||
        become_inside_root(ids, err) < 0)
        return -1;
    x->go = context->go;
    part_from_mounter(processors);
    return ids->shifted ? 0 : fork_mounter(context, processors, x, err);
}

/* No process but us comes over: what is left of the mounter has the keeper's memory and all rights. */
static int end_mounter(struct error *err)
{
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    return errno == ECHILD ? 0 : error_sys(err, "wait for the mounter");
}

/* What init keeps: to mount layers, to give commands their user, to take rights from them; and
 * what root in the box may have, because nobody can give what they have not. */
static const unsigned init_capabilities[] = {
    CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,  CAP_FSETID,           CAP_KILL,
    CAP_SETGID, CAP_SETUID,       CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_ADMIN,
};

static int keep_capabilities(const struct ids *ids, struct error *err)
{
    uint64_t kept = 0;

    for (size_t i = 0; i < ARRAY_LEN(init_capabilities); i++)
        kept |= 1ULL << init_capabilities[i];
    prctl(PR_SET_KEEPCAPS, 1);
    if ((ids->shifted || ids->helpers) &&
        (setresgid(ids->init, ids->init, ids->init) < 0 || setresuid(ids->init, ids->init, ids->init) < 0))
        return error_sys(err, "become the user of init");
    if (sys_capabilities_set(kept, kept, kept) < 0)
        return error_sys(err, "keep the capabilities of init");
    for (size_t i = 0; i < ARRAY_LEN(init_capabilities); i++)
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, init_capabilities[i], 0, 0) < 0)
            return error_sys(err, "keep the capabilities of init over exec");
    return 0;
}

/* Exactly the descriptors that protocol.h names, and /dev/null of the sandbox as 0, 1 and 2. */
static int arrange_descriptors(const struct clone_context *context, int landlock, int *program,
                               struct error *err)
{
    enum { ABOVE = 16 };
    int init_fd = fcntl(context->init_fd, F_DUPFD, ABOVE);
    int rules = landlock >= 0 ? fcntl(landlock, F_DUPFD, ABOVE) : -1;
    int null = open("/dev/null", O_RDWR);

    *program = fcntl(context->program, F_DUPFD_CLOEXEC, ABOVE);
    if (init_fd < 0 || null < 0 || *program < 0 || (landlock >= 0 && rules < 0))
        return error_sys(err, "arrange descriptors");
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || dup2(init_fd, PROTOCOL_INIT_FD) < 0)
        return error_sys(err, "arrange descriptors");
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

void clone_main(const struct clone_context *context)
{
    char *argv[] = { (char *)(uintptr_t) "cove-init", NULL, NULL }, *envp[] = { NULL };
    struct executor x = {
        .plan = context->plan, .state = context->host->state, .id = context->id, .userns = -1
    };
    struct clone_context inside = *context;
    struct processors processors;
    struct error err = { 0 };
    int program;

    leave_session(context->plan);
    umask(0);
    if (begin(context, &processors, &x, &err) < 0 || executor_clone(&x, &err) < 0 || end_mounter(&err) < 0 ||
        take_all(&processors, &err) < 0 || keep_capabilities(&context->plan->ids, &err) < 0)
        fail(context, &err);
    if (arrange_descriptors(context, x.landlock, &program, &err) < 0)
        fail(context, &err);
    inside.init_fd = PROTOCOL_INIT_FD;
#ifdef COVE_UNSAFE
    argv[1] = context->plan->start_flags & START_NO_SECCOMP ? (char *)(uintptr_t) "unfiltered" : NULL;
#endif
    syscall(SYS_execveat, program, "", argv, envp, AT_EMPTY_PATH);
    error_sys(&err, "run the program of PID 1");
    fail(&inside, &err);
}
