/* From a child of PID 1 to the command.
 *
 * Should: give up, in this order, everything the command must not have, and look afterwards
 * whether it is really gone.
 * Must not: become dumpable before exec (the memory is still that of PID 1); go on
 * after a failure. */

#include "init/filters.h"
#include "init/init.h"
#include "init/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* What root in the box keeps: enough for apt and dpkg, nothing that reaches the kernel's own
 * tables, devices or other namespaces. */
static const uint64_t root_capabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
                                          1ULL << CAP_FSETID | 1ULL << CAP_SETUID | 1ULL << CAP_SETGID |
                                          1ULL << CAP_KILL | 1ULL << CAP_NET_BIND_SERVICE;

static _Noreturn void fail(struct start *start, int status, const char *what)
{
    error_sys(&start->error, "%s", what);
    start->failed = status;
    _exit(status);
}

static bool left_out(const struct start *start, uint32_t guard)
{
    return start_leaves_out(start->message.flags, guard);
}

static uint64_t kept_capabilities(const struct start *start)
{
    return start->message.flags & START_ROOT ? root_capabilities : 0;
}

static void take_stdio(struct start *start)
{
    if (start->terminal >= 0 && ioctl(start->terminal, TIOCSCTTY, 0) < 0)
        fail(start, 125, "take the terminal");
    for (int fd = 0; fd < 3; fd++)
        if (dup2(start->terminal >= 0 ? start->terminal : start->stdio[fd], fd) < 0)
            fail(start, 125, "connect standard input and output");
}

static void drop_bounding_set(struct start *start)
{
    int have;

    /* To look is cheaper than to drop again.  The kernel says when there are no more of them; verify() counts.
     */
    for (unsigned cap = 0; (have = prctl(PR_CAPBSET_READ, cap)) >= 0; cap++)
        if (have && !(kept_capabilities(start) >> cap & 1) && prctl(PR_CAPBSET_DROP, cap) < 0)
            fail(start, 125, "drop the capability bounding set");
}

static void set_capabilities(struct start *start, uint64_t set)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = {
        { (uint32_t)set, (uint32_t)set, 0 },
        { (uint32_t)(set >> 32), (uint32_t)(set >> 32), 0 },
    };

    if (syscall(SYS_capset, &header, data) < 0)
        fail(start, 125, "drop capabilities");
}

/* The hard ones, which nobody inside can raise again; never above what we were given ourselves. */
static const struct bound {
    int resource;
    size_t at; /* in struct message */
} bounds[] = {
    { RLIMIT_NPROC, offsetof(struct message, processes) },
    { RLIMIT_NOFILE, offsetof(struct message, open_files) },
    { RLIMIT_FSIZE, offsetof(struct message, file_size) },
};

static uint64_t bound_of(const struct start *start, const struct bound *bound)
{
    return *(const uint64_t *)(const void *)((const char *)&start->message + bound->at);
}

static void set_limits(struct start *start)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        uint64_t most = bound_of(start, &bounds[i]);
        struct rlimit limit;

        if (!most)
            continue;
        if (getrlimit(bounds[i].resource, &limit) < 0)
            fail(start, 125, "read a limit");
        limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
        limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
        if (setrlimit(bounds[i].resource, &limit) < 0)
            fail(start, 125, "set a limit");
    }
}

/* Counted for each user of the machine, over all namespaces: most of it is left to the owner's own programs.
 * Timers count as signals. */
static void leave_a_part(struct start *start)
{
    enum { SHARE = 8 };
    static const int shared[] = { RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE };

    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

        if (getrlimit(shared[i], &limit) < 0)
            fail(start, 125, "read a limit");
        if (limit.rlim_max == RLIM_INFINITY)
            continue;
        limit.rlim_cur = limit.rlim_max = limit.rlim_max / SHARE;
        if (setrlimit(shared[i], &limit) < 0)
            fail(start, 125, "set a limit");
    }
}

static bool limits_hold(const struct start *start)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY }; /* a call that only says yes fills in nothing */

        if (bound_of(start, &bounds[i]) &&
            (getrlimit(bounds[i].resource, &limit) < 0 || limit.rlim_max > bound_of(start, &bounds[i])))
            return false;
    }
    return true;
}

/* Uid 0 gains nothing by being 0, unless it was asked to be root in the box. */
static void become_user(struct start *start)
{
    uint64_t kept = kept_capabilities(start);

    if (left_out(start, START_NO_CAPS))
        return;
    drop_bounding_set(start);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    prctl(PR_SET_KEEPCAPS, 1);
    /* Refused where an ordinary user mapped only one group: those groups stay, unnamed. */
    (void)setgroups(0, NULL);
    if (syscall(SYS_setresgid, start->message.gid, start->message.gid, start->message.gid) < 0)
        fail(start, 125, "become the group of the command");
    if (syscall(SYS_setresuid, start->message.uid, start->message.uid, start->message.uid) < 0)
        fail(start, 125, "become the user of the command");
    if (!kept && prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                              SECBIT_NO_SETUID_FIXUP_LOCKED) < 0)
        fail(start, 125, "lock the secure bits");
    /* With fs.suid_dumpable=1 the kernel opens the memory of whoever changes users; it is PID 1's too.  As long
     * as we have rights that a command has not, none can trace us all the same. */
    if (prctl(PR_GET_DUMPABLE) == 1 && !left_out(start, START_NO_DUMPABLE))
        prctl(PR_SET_DUMPABLE, 0);
    set_capabilities(start, kept);
}

/* From inside the domain PID 1, which is outside, cannot be signalled; older kernels do not scope
 * signals, there nothing may be made in the root unless it is writable as a whole. */
static bool domain_holds(void)
{
    enum { SCOPES = 6 };
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U);

    if (abi >= SCOPES)
        return kill(1, 0) < 0 && errno == EPERM;
    if (mkdir("/.cove", 0700) < 0)
        return true;
    rmdir("/.cove");
    return access("/usr", W_OK) == 0;
}

/* With its rights still in hand, so that what it is refused is refused by the domain. */
int command_enter_domain(struct error *err)
{
    if (syscall(SYS_landlock_restrict_self, PROTOCOL_LANDLOCK_FD, 0) < 0)
        return error_sys(err, "enter the Landlock domain");
    if (domain_holds())
        return 0;
    errno = EPERM;
    return error_sys(err, "read back: the Landlock domain does not hold");
}

static void enter_domain(struct start *start)
{
    if (start->as != LAUNCH_OWN || command_enter_domain(&start->error) == 0)
        return; /* it is inside, or this kernel has no Landlock: the plan said so */
    start->failed = 125;
    _exit(125);
}

static unsigned choose_filter(const struct start *start)
{
    uint32_t flags = start->message.flags;

    return (flags & START_STRICT ? FILTER_STRICT : 0U) | (flags & START_FAKEROOT ? FILTER_FAKEROOT : 0U) |
           (flags & START_EXPLAIN ? FILTER_EXPLAIN : 0U);
}

static void install_filter(struct start *start)
{
    const struct filter *filter = &filters[choose_filter(start)];
    struct sock_fprog program = { .len = filter->len, .filter = (struct sock_filter *)(uintptr_t)filter->code };
    bool explain = start->message.flags & START_EXPLAIN;
    unsigned long flags =
        explain ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV : 0;

    if (left_out(start, START_NO_SECCOMP))
        return;
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

    if (listener < 0 && explain && errno == EINVAL) /* before Linux 5.19 */
        listener =
            (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        fail(start, 125, "install the seccomp filter");
    if (explain) {
        struct message message = { .kind = MESSAGE_LISTENER, .job = start->message.job };

        if (wire_send(PROTOCOL_INIT_FD, &message, &listener, 1) < 0)
            fail(start, 125, "hand out the seccomp listener");
        close(listener);
    }
}

static bool bounding_set_is(uint64_t wanted)
{
    int have;

    for (unsigned cap = 0; (have = prctl(PR_CAPBSET_READ, cap)) >= 0; cap++)
        if ((unsigned)have != (wanted >> cap & 1))
            return false;
    return true;
}

static bool capabilities_are(uint64_t wanted)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return (data[0].permitted | (uint64_t)data[1].permitted << 32) == wanted &&
           (data[0].effective | (uint64_t)data[1].effective << 32) == wanted && !data[0].inheritable &&
           !data[1].inheritable;
}

/* A call that PID 1's filter lets pass to the kernel, which would say EBADF, and the command's refuses.
 * Under --explain it would be noted; there the listener shows that the filter is in place. */
static bool filter_answers(const struct start *start)
{
    if (start->message.flags & START_EXPLAIN)
        return true;
    return syscall(SYS_setns, -1, 0) < 0 && errno == EPERM;
}

/* Reads back what was set: a call that succeeded without effect must not go unnoticed. */
static void verify(struct start *start)
{
    uint64_t kept = kept_capabilities(start);
    const char *wrong = NULL;

    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        wrong = "read back: no-new-privileges is not set";
    else if (!left_out(start, START_NO_SECCOMP) &&
             (prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER || !filter_answers(start)))
        wrong = "read back: there is no seccomp filter";
    else if (!left_out(start, START_NO_CAPS) && !(capabilities_are(kept) && bounding_set_is(kept)))
        wrong = "read back: capabilities are not what was asked for";
    else if (!left_out(start, START_NO_CAPS) &&
             (getuid() != start->message.uid || geteuid() != start->message.uid ||
              getgid() != start->message.gid))
        wrong = "read back: the user is not what was asked for";
    else if (!left_out(start, START_NO_SESSION) && getsid(0) != getpid())
        wrong = "read back: the session is not its own";
    else if (!left_out(start, START_NO_CLOSE) && fcntl(PROTOCOL_INIT_FD, F_GETFD) != FD_CLOEXEC)
        wrong = "read back: descriptors would be inherited";
    else if (!limits_hold(start))
        wrong = "read back: limits are not what was asked for";
    errno = EPERM;
    if (wrong)
        fail(start, 125, wrong);
}

/* /proc/self/exe is not yet the command's: our own program is nobody's to run. */
static bool is_our_own(const char *path)
{
    struct stat ours, its;

    return stat("/proc/self/exe", &ours) == 0 && stat(path, &its) == 0 && ours.st_dev == its.st_dev &&
           ours.st_ino == its.st_ino;
}

/* We are made ready while the keeper still reads back what the mounts are; nobody executes anything before that
 * is done.  PID 1 sleeps, so what comes over its socket is for us. */
static void await_word(struct start *start)
{
    struct message message;

    if (!(start->message.flags & START_HELD))
        return;
    errno = ECANCELED;
    if (read(PROTOCOL_INIT_FD, &message, sizeof message) != sizeof message || message.kind != MESSAGE_GO)
        fail(start, 125, "wait for the word to begin");
    start->message.flags &= ~(uint32_t)START_HELD;
}

/* A script with no interpreter line is run by the shell, as every shell does. */
static void execute(const char *path, struct start *start)
{
    await_word(start); /* first: what a path leads to may be changed from outside meanwhile */
    errno = EACCES;
    if (is_our_own(path))
        return;
    execve(path, start->argv, start->envp);
    if (errno != ENOEXEC)
        return;

    size_t count = 0;

    while (start->argv[count])
        count++;
    char **argv = calloc(count + 2, sizeof *argv);
    if (!argv)
        return;
    argv[0] = (char *)(uintptr_t) "sh";
    argv[1] = (char *)(uintptr_t)path;
    memcpy(argv + 2, start->argv + 1, count * sizeof *argv);
    execve("/bin/sh", argv, start->envp);
    free(argv);
}

static const char *variable(char **envp, const char *name)
{
    size_t len = strlen(name);

    for (; *envp; envp++)
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
            return *envp + len + 1;
    return NULL;
}

/* The way of execvp, on the command's own PATH.  EACCES is remembered: "found, but not allowed"
 * is what a user wants to hear when nothing better comes. */
static void search_and_execute(struct start *start)
{
    const char *path = variable(start->envp, "PATH"), *name = start->argv[0];
    bool refused = false;
    char file[4096];

    if (strchr(name, '/') || !*name) {
        execute(name, start);
        return;
    }
    for (path = path ? path : "/usr/bin:/bin"; *path; path += *path == ':') {
        size_t len = strcspn(path, ":");

        if (len + strlen(name) + 2 < sizeof file) {
            snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name);
            if (access(file, F_OK) == 0 || errno == EACCES) /* much cheaper than an exec that fails */
                execute(file, start);
            if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
                return; /* found, and no other place would make it better */
            refused = refused || errno == EACCES;
        }
        path += len;
    }
    errno = refused ? EACCES : ENOENT;
}

/* Nobody inside can have changed it: a memfd of the keeper's, sealed.  No path leads to it before the exec, and
 * what /proc/self/exe leads to afterwards cannot be written to either. */
static void execute_program(struct start *start)
{
    enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
    int seals = fcntl(start->program, F_GET_SEALS);

    if (seals < 0)
        return;
    await_word(start);
    errno = EPERM;
    if ((seals & SEALS) == SEALS)
        syscall(SYS_execveat, start->program, "", start->argv, start->envp, AT_EMPTY_PATH);
}

void command_become(struct start *start)
{
    char what[200];
    sigset_t none;

    if (!left_out(start, START_NO_SESSION))
        setsid();
    take_stdio(start);
    enter_domain(start);
    if (!left_out(start, START_NO_CLOSE))
        syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    umask(022);
    become_user(start);
    set_limits(start);
    leave_a_part(start);
    if (chdir(start->cwd) < 0) {
        snprintf(what, sizeof what, "enter the directory %.150s", start->cwd);
        fail(start, 125, what);
    }
    sigemptyset(&none); /* PID 1 has them all blocked; their actions are plain */
    sigprocmask(SIG_SETMASK, &none, NULL);
    install_filter(start);
    verify(start);
    if (start->program >= 0) {
        execute_program(start);
        snprintf(what, sizeof what, "run the program for %.150s", start->argv[0]);
        fail(start, 126, what);
    }
    search_and_execute(start);
    int number = errno;

    if (number == ENOENT && !strchr(start->argv[0], '/'))
        snprintf(what, sizeof what, "find '%.150s' in the PATH of the sandbox", start->argv[0]);
    else if (number == ENOENT && access(start->argv[0], F_OK) == 0)
        snprintf(what, sizeof what, "run the interpreter of %.150s", start->argv[0]);
    else
        snprintf(what, sizeof what, "run %.150s", start->argv[0]);
    errno = number;
    fail(start, number == ENOENT ? 127 : 126, what);
}
