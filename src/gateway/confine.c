/* What a gateway takes from itself before it reads a byte: files, rights, and nearly all calls. */

#include "gateway/gate.h"

#include "base/array.h"
#include "gateway/tape.h"
#include "sys/sys.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534, FILES_MAX = 32768 };

/* The sandbox's limit does not count what its gateway takes: whoever opens as many connections as they can is
 * cut off with all of them, and the next gateway begins anew. */
#ifdef COVE_SANITIZED
static const rlim_t memory_max = RLIM_INFINITY; /* its shadow counts */
#else
static const rlim_t memory_max = 512 << 20;
#endif

#if defined(__x86_64__)
enum { ARCHITECTURE = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { ARCHITECTURE = AUDIT_ARCH_AARCH64 };
#endif

static const int calls[] = {
    SYS_read,        SYS_write,     SYS_close,       SYS_recvfrom,      SYS_sendto,       SYS_recvmsg,
    SYS_sendmsg,     SYS_accept4,   SYS_connect,     SYS_shutdown,      SYS_getsockopt,   SYS_brk,
    SYS_munmap,      SYS_epoll_ctl, SYS_epoll_pwait, SYS_exit_group,    SYS_rt_sigreturn, SYS_getrandom,
    SYS_mremap,      SYS_exit,      SYS_madvise,     SYS_clock_gettime, SYS_getsockname,  SYS_restart_syscall,
    SYS_getpid, /* OpenSSL asks whether it was forked, lest two have the same random numbers */
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef COVE_SANITIZED
    SYS_sigaltstack, /* at its end, and it would complain */
#endif
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))

/* A sanitizer makes calls of its own, which are refused but not the end. */
#ifdef COVE_SANITIZED
enum { OTHERWISE = SECCOMP_RET_ERRNO | ENOSYS };
#else
#define OTHERWISE SECCOMP_RET_KILL_PROCESS
#endif

/* New sockets only for TCP and UDP, with the options that are set; new memory only such as holds no code.
 */
static int filter_calls(void)
{
    static const struct sock_filter head[] = {
        LOAD(arch),
        IF(ARCHITECTURE, 1, 0),
        ANSWER(SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
        IF(SYS_socket, 0, 11),
        LOAD(args[0]),
        IF(AF_INET, 1, 0),
        IF(AF_INET6, 0, 7),
        LOAD(args[1]),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf), /* without SOCK_NONBLOCK and SOCK_CLOEXEC */
        IF(SOCK_STREAM, 1, 0),
        IF(SOCK_DGRAM, 0, 3),
        LOAD(args[2]),
        IF(0, 0, 1), /* the usual protocol of these */
        ANSWER(SECCOMP_RET_ALLOW),
        ANSWER(SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        IF(SYS_setsockopt, 0, 10),
        LOAD(args[1]),
        IF(SOL_SOCKET, 0, 2),
        LOAD(args[2]),
        IF(SO_LINGER, 4, 5),
        IF(IPPROTO_TCP, 0, 4),
        LOAD(args[2]),
        IF(TCP_NODELAY, 1, 0),
        IF(TCP_NOTSENT_LOWAT, 0, 1),
        ANSWER(SECCOMP_RET_ALLOW),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
        IF(SYS_mmap, 0, 4),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
        ANSWER(SECCOMP_RET_ALLOW),
        ANSWER(SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_filter code[ARRAY_LEN(head) + 2 * ARRAY_LEN(calls) + 1];
    size_t len = ARRAY_LEN(head);

    memcpy(code, head, sizeof head);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        code[len++] = (struct sock_filter)IF((unsigned)calls[i], 0, 1);
        code[len++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    }
    code[len++] = (struct sock_filter)ANSWER(OTHERWISE);

    const struct sock_fprog program = { .len = (unsigned short)len, .filter = code };

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* A root with nothing in it, and nothing can be put there. */
static int leave_files(void)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555") < 0)
        return -1;
    if (chdir("/proc") < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
        return -1;
    return chdir("/");
}

/* Root becomes nobody.  Where nobody has no number, that is in a user namespace of one id, we are not root but
 * whoever made it. */
static int drop_user(void)
{
    if (geteuid() != 0)
        return 0;
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0)
        return errno == EINVAL ? 0 : -1;
    if (setgroups(0, NULL) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return -1;
    return prctl(PR_SET_DUMPABLE, 1); /* or we could not map our own id */
}

/* Where there is no Landlock, the empty root and the filter have to do. */
static int forbid_files(void)
{
    const uint64_t everything = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
    int ruleset = sys_landlock_create(&everything, sizeof everything);

    if (ruleset < 0)
        return 0;
    int result = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);

    close(ruleset);
    return result;
}

/* Gives what it is then. */
static rlim_t limit(__rlimit_resource_t what, rlim_t most)
{
    struct rlimit limit = { 0 };

    (void)getrlimit(what, &limit);
    limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(what, &limit);
    return limit.rlim_cur;
}

int gateway_confine(size_t *descriptors)
{
    limit(RLIMIT_CORE, 0);
    *descriptors = limit(RLIMIT_NOFILE, FILES_MAX);
    if (drop_user() < 0 || sys_own_user_namespace() < 0 || leave_files() < 0 ||
        sys_capabilities_set(0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0 || forbid_files() < 0)
        return -1;
    /* Not before: whoever becomes another user loses it.  A keeper that is gone by now has closed the channel.
     */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -1;
    limit(RLIMIT_FSIZE, the_gate.recorder.fd < 0 && !the_gate.packages ? 0 : TAPE_BYTES_MAX);
    limit(RLIMIT_DATA, memory_max);
    return filter_calls();
}
