/* The filters in the kernel: each case forks a child that installs one and makes one call. */

#include "base/array.h"
#include "base/own.h"
#include "init/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <setjmp.h>

#include <cmocka.h>

/* A child says by its exit status what errno it got; 200 is taken by none. */
enum { BROKEN = 200, NOBODY = 0x7ffffffe };

static int install(unsigned kind, unsigned flags)
{
    static struct sock_filter code[BPF_MAXINSNS]; /* a copy, because the kernel's struct lacks const */
    struct sock_fprog program = { .len = filters[kind].len, .filter = code };

    memcpy(code, filters[kind].code, filters[kind].len * sizeof *code);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* The wait status of a child that calls `body`, which gives its exit status. */
static int in_child(int (*body)(const void *), const void *context)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(body(context));
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- Single calls ---- */

static const struct probe {
    const char *what;
    unsigned kind;
    int want; /* errno, 0 for success */
    long number;
    unsigned long args[6];
} probes[] = {
    { "clone3", 0, ENOSYS, SYS_clone3, { 0 } },
    { "unshare user", 0, EPERM, SYS_unshare, { CLONE_NEWUSER } },
    { "unshare user, high bits", 0, EPERM, SYS_unshare, { CLONE_NEWUSER | 0xf00000000 } },
    { "unshare files", 0, 0, SYS_unshare, { CLONE_FILES } },
    { "clone user", 0, EPERM, SYS_clone, { CLONE_NEWUSER | SIGCHLD } },
    { "setns", 0, EPERM, SYS_setns, { -1UL } },
    { "mount", 0, EPERM, SYS_mount, { 0 } },
    { "umount2", 0, EPERM, SYS_umount2, { 0 } },
    { "pivot_root", 0, EPERM, SYS_pivot_root, { 0 } },
    { "chroot", 0, EPERM, SYS_chroot, { 0 } },
    { "fsopen", 0, ENOSYS, SYS_fsopen, { 0 } },
    { "open_tree", 0, ENOSYS, SYS_open_tree, { 0 } },
    { "mount_setattr", 0, ENOSYS, SYS_mount_setattr, { 0 } },
    { "io_uring_setup", 0, ENOSYS, SYS_io_uring_setup, { 1 } },
    { "bpf", 0, EPERM, SYS_bpf, { 0 } },
    { "perf_event_open", 0, EPERM, SYS_perf_event_open, { 0 } },
    { "userfaultfd", 0, EPERM, SYS_userfaultfd, { 0 } },
    { "keyctl", 0, EPERM, SYS_keyctl, { 0 } },
    { "add_key", 0, EPERM, SYS_add_key, { 0 } },
    { "open_by_handle_at", 0, EPERM, SYS_open_by_handle_at, { -1UL } },
    { "kcmp", 0, EPERM, SYS_kcmp, { 0 } },
    { "reboot", 0, EPERM, SYS_reboot, { 0 } },
    { "syslog", 0, EPERM, SYS_syslog, { 10 } },
    { "clock_settime", 0, EPERM, SYS_clock_settime, { 0 } },
    { "a number without a call", 0, ENOSYS, 1000, { 0 } },
    { "socket AF_ALG", 0, EAFNOSUPPORT, SYS_socket, { 38, SOCK_SEQPACKET } },
    { "socket AF_ALG, high bits", 0, EAFNOSUPPORT, SYS_socket, { 38 | 1UL << 32, SOCK_SEQPACKET } },
    { "socket AF_VSOCK", 0, EAFNOSUPPORT, SYS_socket, { AF_VSOCK, SOCK_STREAM } },
    { "socket MPTCP", 0, EPROTONOSUPPORT, SYS_socket, { AF_INET, SOCK_STREAM, 262 } },
    { "socket raw", 0, EPERM, SYS_socket, { AF_INET, SOCK_RAW, 1 } },
    { "socket netfilter", 0, EPROTONOSUPPORT, SYS_socket, { AF_NETLINK, SOCK_RAW, 12 } },
    { "socket AF_INET, strict", FILTER_STRICT, EAFNOSUPPORT, SYS_socket, { AF_INET, SOCK_STREAM } },
    { "socket AF_UNIX, strict", FILTER_STRICT, 0, SYS_socket, { AF_UNIX, SOCK_STREAM } },
    { "socketpair AF_TIPC", 0, EAFNOSUPPORT, SYS_socketpair, { 30, SOCK_STREAM } },
    { "setsockopt TCP_ULP", 0, ENOPROTOOPT, SYS_setsockopt, { -1UL, 6, 31 } },
    { "setsockopt NODELAY", 0, EBADF, SYS_setsockopt, { -1UL, 6, 1 } },
    { "ioctl TIOCSTI", 0, EPERM, SYS_ioctl, { -1UL, 0x5412 } },
    { "ioctl TIOCSTI, high bits", 0, EPERM, SYS_ioctl, { -1UL, 0x5412 | 1UL << 32 } },
    { "ioctl TCGETS", 0, EBADF, SYS_ioctl, { -1UL, 0x5401 } },
    { "personality: question", 0, 0, SYS_personality, { 0xffffffff } },
    { "personality: executable data", 0, EPERM, SYS_personality, { 0x400000 } },
    { "mknodat: device", 0, EPERM, SYS_mknodat, { -1UL, 0, 0020666 } },
    { "mknodat: pipe", 0, EFAULT, SYS_mknodat, { -1UL, 0, 0010666 } },
    { "mknodat: device, fake root", FILTER_FAKEROOT, 0, SYS_mknodat, { -1UL, 0, 0020666 } },
    { "fchown, fake root", FILTER_FAKEROOT, 0, SYS_fchown, { -1UL } },
    { "fchown", 0, EBADF, SYS_fchown, { -1UL } },
    { "setresuid, fake root", FILTER_FAKEROOT, 0, SYS_setresuid, { 7, 7, 7 } },
    { "prlimit of another", 0, EPERM, SYS_prlimit64, { NOBODY, 7, 1 } },
    { "prlimit of another, question", 0, ESRCH, SYS_prlimit64, { NOBODY, 7, 0 } },
    { "prlimit of oneself", 0, EFAULT, SYS_prlimit64, { 0, 7, 1 } },
    { "prctl PR_SET_MM", 0, EPERM, SYS_prctl, { 35 } },
    { "prctl of the future", 0, EINVAL, SYS_prctl, { 5000 } },
    { "ptrace", 0, ESRCH, SYS_ptrace, { 16, NOBODY } },
    { "ptrace, strict", FILTER_STRICT, EPERM, SYS_ptrace, { 16, NOBODY } },
    { "io_setup, strict", FILTER_STRICT, ENOSYS, SYS_io_setup, { 0 } },
    { "getppid", FILTER_STRICT, 0, SYS_getppid, { 0 } },
    { "init: mount", FILTER_INIT, EFAULT, SYS_mount, { 1, 1, 1 } },
    { "init: bpf", FILTER_INIT, ENOSYS, SYS_bpf, { 0 } },
    { "explained, supervisor gone: keyctl", FILTER_EXPLAIN, ENOSYS, SYS_keyctl, { 0 } },
};

static int make_call(const struct probe *probe)
{
    const unsigned long *args = probe->args;

    errno = 0;
    if (syscall(probe->number, args[0], args[1], args[2], args[3], args[4], args[5]) >= 0)
        return 0;
    return errno;
}

static int probe_alone(const void *probe)
{
    return install(((const struct probe *)probe)->kind, 0) < 0 ? BROKEN : make_call(probe);
}

/* As it is in a sandbox: the filter of init below that of the command. */
static int probe_below_init(const void *probe)
{
    return install(FILTER_INIT, 0) < 0 ? BROKEN : probe_alone(probe);
}

static void check_status(const char *what, int status, int want)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
        fail_msg("%s: wait status %x, expected errno %d", what, (unsigned)status, want);
}

static void calls_get_the_errno_of_the_policy(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        check_status(probes[i].what, in_child(probe_alone, &probes[i]), probes[i].want);
}

static void the_filter_of_init_changes_no_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        check_status(probes[i].what, in_child(probe_below_init, &probes[i]), probes[i].want);
}

/* ---- Foreign calls ---- */

#ifdef __x86_64__
static int call_i386(const void *context)
{
    int result = 20; /* getpid of i386 */

    (void)context;
    if (install(FILTER_DEFAULT, 0) < 0)
        return BROKEN;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return 0;
}

static int call_x32(const void *context)
{
    (void)context;
    if (install(FILTER_DEFAULT, 0) < 0)
        return BROKEN;
    syscall(0x40000000 | SYS_getpid);
    return 0;
}

/* A kernel without 32-bit support faults before any filter is asked. */
static void foreign_calls_kill(void **state)
{
    int i386 = in_child(call_i386, NULL), x32 = in_child(call_x32, NULL);

    (void)state;
    assert_true(WIFSIGNALED(i386) && (WTERMSIG(i386) == SIGSYS || WTERMSIG(i386) == SIGSEGV));
    assert_true(WIFSIGNALED(x32) && WTERMSIG(x32) == SIGSYS);
}
#endif

/* ---- What must go on working ---- */

static void *thread_body(void *out)
{
    *(int *)out = socket(38, SOCK_SEQPACKET, 0) < 0 && errno == EAFNOSUPPORT;
    return NULL;
}

static int start_thread(const void *context)
{
    pthread_t thread;
    int refused = 0;

    (void)context;
    if (install(FILTER_STRICT, 0) < 0 || pthread_create(&thread, NULL, thread_body, &refused) != 0)
        return BROKEN;
    pthread_join(thread, NULL);
    return refused ? 0 : 1;
}

static void threads_start_and_are_filtered(void **state)
{
    (void)state;
    check_status("thread", in_child(start_thread, NULL), 0);
}

static int add_allow_all(const void *context)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { .len = 1, .filter = &all };

    (void)context;
    if (install(FILTER_DEFAULT, 0) < 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return BROKEN;
    return syscall(SYS_keyctl, 0) < 0 ? errno : 0;
}

static void a_further_filter_loosens_nothing(void **state)
{
    (void)state;
    check_status("keyctl", in_child(add_allow_all, NULL), EPERM);
}

static int run_shell(const void *kind)
{
    if (install(FILTER_INIT, 0) < 0 || install(*(const unsigned *)kind, 0) < 0)
        return BROKEN;
    execl("/bin/sh", "sh", "-c", "x=$(echo a | cat) && test \"$x\" = a && ls / >/dev/null", (char *)NULL);
    return BROKEN;
}

static void a_shell_runs_under_every_profile(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < FILTER_EXPLAIN; kind++)
        check_status("shell", in_child(run_shell, &kind), 0);
}

/* ---- Explained commands ---- */

static int send_fd(int to, int fd)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { { 0 } };
    struct iovec nothing = { &(char){ 0 }, 1 };
    struct msghdr message = { .msg_iov = &nothing,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof control.space };
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);

    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
    return sendmsg(to, &message, 0) < 0 ? -1 : 0;
}

static int receive_fd(int from)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { { 0 } };
    char byte;
    struct iovec nothing = { &byte, 1 };
    struct msghdr message = { .msg_iov = &nothing,
                              .msg_iovlen = 1,
                              .msg_control = control.space,
                              .msg_controllen = sizeof control.space };
    int fd = -1;

    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Two refused calls, one that is only looked at, and clone3, which must not ask. */
static int explained(int socket)
{
    int listener, fd;

    if (install(FILTER_INIT, 0) < 0)
        return 1;
    listener = install(FILTER_EXPLAIN, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (listener < 0 || send_fd(socket, listener) < 0)
        return 2;
    close(listener);
    if (syscall(SYS_keyctl, 0) != -1 || errno != EPERM)
        return 3;
    if (syscall(SYS_clone3, 0, 0) != -1 || errno != ENOSYS)
        return 4;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 5;
    return syscall(SYS_io_uring_setup, 1, 0) == -1 && errno == ENOSYS ? 0 : 6;
}

static int answer(int listener)
{
    struct seccomp_notif question = { 0 };
    struct seccomp_notif_resp reply = { 0 };
    int verdict;

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) < 0)
        return -1;
    verdict = filter_verdict(FILTER_EXPLAIN, &question.data);
    reply.id = question.id;
    reply.error = verdict > 0 ? -verdict : 0;
    reply.flags = verdict == VERDICT_ALLOW ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply) < 0 ? -1 : question.data.nr;
}

static void refusals_of_an_explained_command_reach_the_supervisor(void **state)
{
    int pair[2], status = 0;
    pid_t pid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid = fork();
    if (pid == 0)
        _exit(explained(pair[1]));
    close(pair[1]);

    autoclose int listener = receive_fd(pair[0]);
    assert_true(listener >= 0);
    assert_int_equal(answer(listener), SYS_keyctl);
    assert_int_equal(answer(listener), SYS_openat);
    assert_int_equal(answer(listener), SYS_io_uring_setup);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    check_status("explained command", status, 0);
    close(pair[0]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_get_the_errno_of_the_policy),
        cmocka_unit_test(the_filter_of_init_changes_no_answer),
#ifdef __x86_64__
        cmocka_unit_test(foreign_calls_kill),
#endif
        cmocka_unit_test(threads_start_and_are_filtered),
        cmocka_unit_test(a_further_filter_loosens_nothing),
        cmocka_unit_test(a_shell_runs_under_every_profile),
        cmocka_unit_test(refusals_of_an_explained_command_reach_the_supervisor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
