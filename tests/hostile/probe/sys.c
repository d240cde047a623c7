/* System calls and the surface of the kernel. */

#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- every number --- */

/* These end, split or stop the process that calls them, or shake the whole disk. */
static int makes_no_sense(long number)
{
    return number == SYS_exit || number == SYS_exit_group || number == SYS_fork || number == SYS_vfork ||
           number == SYS_rt_sigreturn || number == SYS_sync || number == SYS_pause;
}

/* -1 everywhere: bad descriptors, bad pointers, unknown flags. */
static int sweep_one(long number)
{
    long result;

    alarm(1);
    result = syscall(number, -1L, -1L, -1L, -1L, -1L, -1L);
    return result < 0 && result >= -4095 ? errno : 0;
}

static int sweep(int argc, char **argv)
{
    int *answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)argc, (void)argv;
    signal(SIGPIPE, SIG_IGN);
    for (long number = 0; number < 1024; number++) {
        int status = 0;

        if (makes_no_sense(number))
            continue;
        *answer = -1;
        fflush(stdout);
        pid_t pid = fork();

        if (pid == 0) {
            *answer = sweep_one(number);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        if (*answer >= 0)
            say("sys", "%ld errno %d", number, *answer);
        else
            say("sys", "%ld signal %d", number, WTERMSIG(status));
    }
    return 0;
}

/* --- other ABIs --- */

#ifdef __x86_64__
static long by_interrupt(long number)
{
    long result;

    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(0L), "c"(0L), "d"(0L)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static void foreign(const char *step, long (*how)(long), long number)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(how(number) > 0 ? 77 : 78);
    waitpid(pid, &status, 0);
    say(step, "%s %d", WIFSIGNALED(status) ? "signal" : "exit",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static long by_x32(long number)
{
    return syscall(number | 0x40000000);
}
#endif

static int abis(int argc, char **argv)
{
    (void)argc, (void)argv;
#ifdef __x86_64__
    foreign("i386-getpid", by_interrupt, 20);
    foreign("i386-unshare", by_interrupt, 310);
    foreign("i386-socketcall", by_interrupt, 102);
    foreign("x32-getpid", by_x32, SYS_getpid);
    foreign("x32-ioctl", by_x32, 514);
#endif
    return 0;
}

/* --- groups of calls; with bad pointers the answer tells who gave it --- */

static int io_uring(int argc, char **argv)
{
    (void)argc, (void)argv;
    chk("io_uring_setup", call3(425, 1, BAD_NUMBER, 0));
    chk("io_uring_enter", call3(426, -1, 0, 0));
    chk("io_uring_register", call3(427, -1, 0, 0));
    return 0;
}

static int faults(int argc, char **argv)
{
    static const int flags[] = { 0, 1 /* user mode only */, O_CLOEXEC, O_NONBLOCK, -1 };

    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        chkf(call3(SYS_userfaultfd, flags[i], 0, 0), "userfaultfd:%d", flags[i]);
    chk("dev-userfaultfd", open("/dev/userfaultfd", O_RDWR));
    return 0;
}

static int programmable(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int cmd = 0; cmd < 40; cmd++)
        chkf(call3(SYS_bpf, cmd, BAD_NUMBER, 1 << 20), "bpf:%d", cmd);
    chk("perf_event_open", syscall(SYS_perf_event_open, BAD_NUMBER, 0, -1, -1, 0L));
    chk("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 99, 0, 0));
    chk("process_madvise", syscall(440, -1, BAD_NUMBER, 1, 4, 0));
    chk("process_mrelease", call3(448, -1, 0, 0));
    chk("pidfd_getfd", call3(438, -1, 0, 0));
    chk("lookup_dcookie", call3(212, 0, BAD_NUMBER, 10));
    return 0;
}

static int keys(int argc, char **argv)
{
    const char *description = argc > 0 ? argv[0] : "none";
    char text[256];
    long key;

    chk("add_key", syscall(SYS_add_key, BAD, BAD, BAD, 1L, -3L));
    chk("request_key", syscall(SYS_request_key, "user", description, NULL, 0L));
    key = syscall(SYS_keyctl, 10L /* SEARCH */, -3L /* session */, "user", description, 0L);
    chk("search-session", key);
    if (key > 0 && syscall(SYS_keyctl, 11L /* READ */, key, text, sizeof text - 1, 0L) > 0)
        say("key", "%.200s", text);
    chk("search-user", syscall(SYS_keyctl, 10L, -4L, "user", description, 0L));
    chk("search-user-session", syscall(SYS_keyctl, 10L, -5L, "user", description, 0L));
    chk("persistent", syscall(SYS_keyctl, 22L, -1L, -3L, 0L, 0L));
    chk("describe", syscall(SYS_keyctl, 6L, -3L, BAD, 0L, 0L));
    return 0;
}

static int sockets(int argc, char **argv)
{
    static const int types[] = { 1, 2, 3, 4, 5, 6, 10 },
                     protocols[] = { 0, 1, 2, 6, 17, 33, 58, 132, 136, 255, 262 };

    (void)argc, (void)argv;
    for (int family = 0; family < 64; family++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t p = 0; p < sizeof protocols / sizeof *protocols; p++) {
                int fd = socket(family, types[t], protocols[p]);

                say("socket", "%d %d %d %d", family, types[t], protocols[p], fd < 0 ? errno : 0);
                if (fd >= 0)
                    close(fd);
            }
    return 0;
}

static int pairs(int argc, char **argv)
{
    static const int types[] = { 1, 2, 3, 4, 5, 6, 10 };

    (void)argc, (void)argv;
    for (int family = 0; family < 64; family++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            int fds[2];
            int result = socketpair(family, types[t], 0, fds);

            say("pair", "%d %d %d", family, types[t], result < 0 ? errno : 0);
            if (result == 0) {
                close(fds[0]);
                close(fds[1]);
            }
        }
    return 0;
}

static int options(int argc, char **argv)
{
    static const char *const ulps[] = { "tls", "espintcp", "smc", "mptcp" };
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    (void)argc, (void)argv;
    for (size_t i = 0; i < 4; i++)
        chkf(setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, ulps[i], (socklen_t)strlen(ulps[i])), "ulp:%s",
             ulps[i]);
    chk("attach-bpf", setsockopt(fd, SOL_SOCKET, 50, &one, sizeof one));
    chk("reuseport-ebpf", setsockopt(fd, SOL_SOCKET, 52, &one, sizeof one));
    chk("transparent", setsockopt(fd, IPPROTO_IP, 19, &one, sizeof one));
    chk("bindtodevice", setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2));
    chk("bindtoifindex", setsockopt(fd, SOL_SOCKET, 62, &one, sizeof one));
    chk("mark", setsockopt(fd, SOL_SOCKET, SO_MARK, &one, sizeof one));
    chk("keepalive", setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one));
    return 0;
}

/* Asks for one change of the network and waits for the answer. */
static void ask_netlink(const char *step, unsigned short type, const void *body, size_t len)
{
    struct {
        struct nlmsghdr head;
        char body[128];
    } request = { .head = { .nlmsg_len = (unsigned)(NLMSG_HDRLEN + len),
                            .nlmsg_type = type,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE } };
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

    memcpy(request.body, body, len);
    if (fd < 0 || send(fd, &request, request.head.nlmsg_len, 0) < 0 ||
        recv(fd, &answer, sizeof answer, 0) < 0) {
        chk(step, -1);
    } else {
        errno =
            answer.head.nlmsg_type == NLMSG_ERROR ? -((struct nlmsgerr *)NLMSG_DATA(&answer.head))->error : 0;
        chk(step, errno ? -1 : 0);
    }
    if (fd >= 0)
        close(fd);
}

static int routes(int argc, char **argv)
{
    struct {
        struct ifaddrmsg head;
        struct rtattr attribute;
        unsigned char address[4];
    } address = { { AF_INET, 32, 0, 0, 1 }, { 8, IFA_LOCAL }, { 10, 9, 8, 7 } };
    struct ifinfomsg link = { .ifi_index = 1, .ifi_flags = 0, .ifi_change = IFF_UP };
    struct rtmsg route = {
        .rtm_family = AF_INET, .rtm_table = 254, .rtm_protocol = 3, .rtm_scope = 253, .rtm_type = 7
    };
    struct tcmsg queue = { .tcm_ifindex = 1, .tcm_parent = 0xffffffffU };

    (void)argc, (void)argv;
    ask_netlink("address", RTM_NEWADDR, &address, sizeof address);
    ask_netlink("link-down", RTM_NEWLINK, &link, sizeof link);
    ask_netlink("route", RTM_NEWROUTE, &route, sizeof route);
    ask_netlink("qdisc", RTM_NEWQDISC, &queue, sizeof queue);
    ask_netlink("filter", RTM_NEWTFILTER, &queue, sizeof queue);
    chk("nfnetlink", socket(AF_NETLINK, SOCK_RAW, 12));
    chk("xfrm", socket(AF_NETLINK, SOCK_RAW, 6));
    chk("generic", socket(AF_NETLINK, SOCK_RAW, 16));
    say_file("addresses", "/proc/net/fib_trie");
    return 0;
}

static int personalities(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int bit = 0; bit < 32; bit++) {
        personality(0);
        chkf(personality(1UL << bit) < 0 ? -1 : 0, "personality:%08lx", 1UL << bit);
    }
    personality(0);
#ifdef __x86_64__
    chk("modify_ldt", call3(SYS_modify_ldt, 99, 0, 0));
    chk("iopl", call3(SYS_iopl, 99, 0, 0));
    chk("ioperm", call3(SYS_ioperm, 0x378, 70000, 0));
    chk("uselib", call3(134, BAD_NUMBER, 0, 0));
#endif
    return 0;
}

static int tracing(int argc, char **argv)
{
    pid_t child = fork();
    int status;

    (void)argc, (void)argv;
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(child, &status, WUNTRACED);
    chk("own-child", ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    chk("init", ptrace(PTRACE_SEIZE, 1, 0, PTRACE_O_EXITKILL));
    for (int i = 0; i < argc; i++)
        chkf(ptrace(PTRACE_SEIZE, atoi(argv[i]), 0, 0), "host:%s", argv[i]);
    return 0;
}

/* With arguments on which the kernel, if it were asked, would do nothing. */
static int machine(int argc, char **argv)
{
    static const struct {
        const char *name;
        long number, a, b, c;
    } list[] = {
        { "mount", SYS_mount, BAD_NUMBER, BAD_NUMBER, BAD_NUMBER },
        { "umount2", SYS_umount2, BAD_NUMBER, -1, 0 },
        { "pivot_root", SYS_pivot_root, BAD_NUMBER, BAD_NUMBER, 0 },
        { "chroot", SYS_chroot, BAD_NUMBER, 0, 0 },
        { "open_tree", 428, -1, BAD_NUMBER, 0 },
        { "move_mount", 429, -1, BAD_NUMBER, -1 },
        { "fsopen", 430, BAD_NUMBER, -1, 0 },
        { "fsconfig", 431, -1, 99, 0 },
        { "fsmount", 432, -1, -1, -1 },
        { "fspick", 433, -1, BAD_NUMBER, -1 },
        { "mount_setattr", 442, -1, BAD_NUMBER, -1 },
        { "statmount", 457, BAD_NUMBER, BAD_NUMBER, 0 },
        { "listmount", 458, BAD_NUMBER, BAD_NUMBER, 0 },
        { "quotactl", SYS_quotactl, -1, BAD_NUMBER, 0 },
        { "quotactl_fd", 443, -1, -1, 0 },
        { "swapon", SYS_swapon, BAD_NUMBER, -1, 0 },
        { "swapoff", SYS_swapoff, BAD_NUMBER, 0, 0 },
        { "acct", SYS_acct, BAD_NUMBER, 0, 0 },
        { "reboot", SYS_reboot, 0, 0, 0 },
        { "kexec_load", SYS_kexec_load, 0, -1, BAD_NUMBER },
        { "kexec_file_load", SYS_kexec_file_load, -1, -1, 0 },
        { "init_module", SYS_init_module, BAD_NUMBER, 1, BAD_NUMBER },
        { "finit_module", SYS_finit_module, -1, BAD_NUMBER, -1 },
        { "delete_module", SYS_delete_module, BAD_NUMBER, 0, 0 },
        { "fanotify_init", SYS_fanotify_init, -1, -1, 0 },
        { "fanotify_mark", SYS_fanotify_mark, -1, -1, 0 },
        { "nfsservctl", 180, 0, 0, 0 },
        { "uselib", 134, BAD_NUMBER, 0, 0 },
        { "vhangup", SYS_vhangup, 0, 0, 0 },
        { "setns", SYS_setns, -1, -1, 0 },
        { "memfd_secret", 447, -1, 0, 0 },
        { "vmsplice", SYS_vmsplice, -1, BAD_NUMBER, 1 },
        { "remap_file_pages", SYS_remap_file_pages, -1, -1, -1 },
        { "open_by_handle_at", SYS_open_by_handle_at, -1, BAD_NUMBER, 0 },
    };

    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        chk(list[i].name, call3(list[i].number, list[i].a, list[i].b, list[i].c));
    return 0;
}

/* A filter of our own that allows everything, then the attacks again. */
static int stacked(int argc, char **argv)
{
    struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog program = { 1, allow };

    chk("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    chk("prctl-seccomp", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    chk("disable", prctl(PR_SET_SECCOMP, SECCOMP_MODE_DISABLED, 0));
    chk("tsync", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
    io_uring(argc, argv);
    faults(argc, argv);
    programmable(argc, argv);
    keys(argc, argv);
    sockets(argc, argv);
    return 0;
}

static int unstacked(int argc, char **argv)
{
    io_uring(argc, argv);
    faults(argc, argv);
    programmable(argc, argv);
    keys(argc, argv);
    sockets(argc, argv);
    return 0;
}

/* With a bad descriptor the kernel says EBADF before it looks at the request. */
static int terminal_requests(int argc, char **argv)
{
    static const struct {
        const char *name;
        unsigned long request;
    } list[] = { { "TIOCSTI", 0x5412 },     { "TIOCLINUX", 0x541c }, { "TIOCCONS", 0x541d },
                 { "TIOCSETD", 0x5423 },    { "KDSKBENT", 0x4b47 },  { "KDSETMODE", 0x4b3a },
                 { "VT_ACTIVATE", 0x5606 }, { "VT_SETMODE", 0x5602 } };

    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        chkf(syscall(SYS_ioctl, -1, list[i].request, 0L), "%s", list[i].name);
        chkf(syscall(SYS_ioctl, -1, list[i].request | 0xdeadbeef00000000UL, 0L), "%s-high", list[i].name);
    }
    chk("harmless", syscall(SYS_ioctl, -1, 0x5401UL /* TCGETS */, 0L));
    return 0;
}

static int leaks;

static void *from_thread(void *unused)
{
    (void)unused;
    if (call3(425, 1, BAD_NUMBER, 0) >= 0 || errno != ENOSYS)
        __atomic_add_fetch(&leaks, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static int from_clone(void *unused)
{
    from_thread(unused);
    return 0;
}

/* Every way to a new task, before and after exec. */
static int threads(int argc, char **argv)
{
    pthread_t ids[256];
    int count = 0, status;

    for (; count < 256; count++)
        if (pthread_create(&ids[count], NULL, from_thread, NULL) != 0)
            break;
    for (int i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
    char *stack = malloc(65536);
    pid_t sharing = clone(from_clone, stack + 65536, CLONE_VM | SIGCHLD, NULL);
    waitpid(sharing, &status, 0);
    say(argc > 0 ? "after-exec" : "before-exec", "%d tasks, %d not filtered", count + 1, leaks);
    fflush(stdout);
    if (argc == 0) {
        char *again[] = { (char *)(uintptr_t) "probe", argv ? (char *)(uintptr_t) "threads" : NULL,
                          (char *)(uintptr_t) "again", NULL };

        execve("/proc/self/exe", again, (char *[]){ NULL });
    }
    return 0;
}

static int prctls(int argc, char **argv)
{
    (void)argc, (void)argv;
    chk("PR_SET_MM", prctl(PR_SET_MM, 1, 0, 0, 0));
    chk("PR_SCHED_CORE", prctl(62, 1, 0, 0, 0));
    chk("PR_SET_MEMORY_MERGE", prctl(67, 1, 0, 0, 0));
    chk("PR_CAP_AMBIENT", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
    chk("PR_CAPBSET_READ", prctl(PR_CAPBSET_READ, 21) == 1 ? 0 : -1);
    chk("PR_SET_SECUREBITS", prctl(PR_SET_SECUREBITS, 0));
    chk("PR_UNSET_NNP", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    chk("unknown", prctl(4242, 0, 0, 0, 0));
    chk("PR_SET_NAME", prctl(PR_SET_NAME, "name"));
    say_file("status", "/proc/self/status");
    return 0;
}

static int scheduling(int argc, char **argv)
{
    struct sched_param one = { .sched_priority = 1 }, zero = { .sched_priority = 0 };

    (void)argc, (void)argv;
    chk("fifo", syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &one));
    chk("rr", syscall(SYS_sched_setscheduler, 0, SCHED_RR, &one));
    chk("deadline", syscall(SYS_sched_setattr, 0, &(struct {
                                uint32_t size, policy;
                                uint64_t flags;
                                int32_t nice;
                                uint32_t priority;
                                uint64_t runtime, deadline, period;
                            }){ 48, 6, 0, 0, 0, 1000000, 10000000, 10000000 },
                            0));
    chk("nice", setpriority(PRIO_PROCESS, 0, -20));
    chk("ioprio-rt", call3(SYS_ioprio_set, 1, 0, 1 << 13));
    chk("set_mempolicy", call3(SYS_set_mempolicy, 0, 0, 0));
    chk("mbind", call3(SYS_mbind, 0, 0, 0));
    struct rlimit more;
    getrlimit(RLIMIT_MEMLOCK, &more);
    say("memlock", "%llu", (unsigned long long)more.rlim_max);
    getrlimit(RLIMIT_NOFILE, &more);
    more.rlim_cur = more.rlim_max = more.rlim_max + 1;
    chk("raise-nofile", setrlimit(RLIMIT_NOFILE, &more));
    chk("batch", syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &zero));
    return 0;
}

const struct attack sys_attacks[] = {
    { "sweep", sweep },
    { "abis", abis },
    { "io-uring", io_uring },
    { "faults", faults },
    { "programmable", programmable },
    { "keys", keys },
    { "sockets", sockets },
    { "pairs", pairs },
    { "options", options },
    { "routes", routes },
    { "personalities", personalities },
    { "tracing", tracing },
    { "machine", machine },
    { "stacked", stacked },
    { "unstacked", unstacked },
    { "terminal-requests", terminal_requests },
    { "threads", threads },
    { "prctls", prctls },
    { "scheduling", scheduling },
    { NULL, NULL },
};
