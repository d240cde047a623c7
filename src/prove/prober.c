/* The program that tries to get out, for `cove prove`.
 *
 * It runs once in a sandbox and once, as the control, on the host as the owner, with canaries in reach.
 *
 * Should: wait for a byte; try every row of its table once; say in one line each what came of it; hold what it
 * got, so that the host sees it; end when its standard input does. Must not: harm anything if an attempt works;
 * read anything that is no canary; be believed: the host judges.
 *
 *     prober try KEY=VALUE...     where the canaries are
 *     prober wait QUEUE           is itself a canary: a process with secrets in its environment */

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { GOT_MAX = 200 };
static char got[GOT_MAX]; /* what the attempt read, ended by NUL */

static char **words;

/* NULL if the host could not make that canary, or the policy grants what would be tried. */
static const char *word(const char *key)
{
    size_t len = strlen(key);

    for (char **at = words; *at; at++)
        if (strncmp(*at, key, len) == 0 && (*at)[len] == '=')
            return *at + len + 1;
    return NULL;
}

static long number(const char *key)
{
    const char *value = word(key);

    return value ? strtol(value, NULL, 10) : -1;
}

/* 0 for success, else why not. */
static int outcome(long result)
{
    return result < 0 ? errno : 0;
}

static int read_from(int fd)
{
    ssize_t len = fd < 0 ? -1 : read(fd, got, sizeof got - 1);
    int result = outcome(len);

    got[len > 0 ? len : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return result;
}

/* --- files ---------------------------------------------------------------------------------- */

static int read_file(void)
{
    return word("read") ? read_from(open(word("read"), O_RDONLY | O_CLOEXEC)) : ENODATA;
}

static int write_file(void)
{
    if (!word("write"))
        return ENODATA;

    int fd = open(word("write"), O_WRONLY | O_APPEND | O_CLOEXEC);
    int result = outcome(fd < 0 ? -1 : write(fd, "changed", 7));

    if (fd >= 0)
        close(fd);
    return result;
}

/* A directory of our own in `key`, named by the mark; or a device there, /dev/null: who is killed leaves it. */
static int make_in(const char *key, const char *suffix, mode_t mode)
{
    char path[4096];

    if (!word(key))
        return ENODATA;
    snprintf(path, sizeof path, "%s/.cove-%s%s", word(key), word("mark"), suffix);
    return outcome(S_ISDIR(mode) ? mkdir(path, 0700) : mknod(path, mode, makedev(1, 3)));
}

static int write_workspace(void)
{
    return make_in("work", "", S_IFDIR);
}

static int make_device(void)
{
    return make_in("devices", "-device", S_IFCHR | 0600);
}

static int write_root(void)
{
    return make_in("root", "-root", S_IFDIR);
}

/* Whether opening it would load a module: the file can be there before the device, which is then not listed. */
static bool is_only_a_name(const char *path)
{
    char list[8192], line[64];
    int fd = strcmp(path, "/dev/kvm") == 0 ? open("/proc/misc", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t len = fd < 0 ? -1 : read(fd, list, sizeof list - 1);

    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return false;
    list[len] = '\0';
    snprintf(line, sizeof line, " %s\n", path + strlen("/dev/"));
    return !strstr(list, line);
}

/* Opens each, and holds what opened. */
static int open_some(const char *const *paths, int flags)
{
    int result = ENOENT, opened = 0;

    for (; *paths; paths++) {
        errno = ENOENT;

        int fd = is_only_a_name(*paths) ? -1 : open(*paths, flags | O_NONBLOCK | O_NOCTTY);

        opened += fd >= 0;
        if (fd < 0 && errno != ENOENT)
            result = errno;
    }
    return opened ? 0 : result;
}

/* Only what is harmless to open, and makes the kernel load no module. */
static int open_devices(void)
{
    static const char *const paths[] = { "/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/dri/renderD128", NULL };

    return open_some(paths, O_RDWR);
}

static int open_kernel_settings(void)
{
    static const char *const paths[] = { "/proc/sys/kernel/core_pattern",
                                         "/proc/sys/kernel/modprobe",
                                         "/proc/sys/vm/overcommit_memory",
                                         "/proc/sys/net/ipv4/ip_forward",
                                         "/proc/sys/user/max_user_namespaces",
                                         "/proc/sysrq-trigger",
                                         NULL };

    return open_some(paths, O_WRONLY);
}

/* --- other processes ------------------------------------------------------------------------ */

static int signal_process(const char *key)
{
    return number(key) > 0 ? outcome(kill((pid_t)number(key), SIGUSR1)) : ENODATA;
}

static int signal_peer(void)
{
    return signal_process("peer");
}

static int signal_init(void)
{
    return signal_process("signal");
}

static int trace_process(const char *key)
{
    return number(key) > 0 ? outcome(ptrace(PTRACE_SEIZE, (pid_t)number(key), NULL, NULL)) : ENODATA;
}

static int trace_peer(void)
{
    return trace_process("peer");
}

static int trace_init(void)
{
    return trace_process("init");
}

static int open_process(const char *key, const char *file)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%ld/%s", number(key), file);
    return open(path, O_RDONLY);
}

static int open_init_memory(void)
{
    return number("init") > 0 ? outcome(open_process("init", "mem")) : ENODATA;
}

static int read_environment(void)
{
    return number("peer") > 0 ? read_from(open_process("peer", "environ")) : ENODATA;
}

static int read_memory(void)
{
    struct iovec to = { got, 64 };
    struct iovec from = { (void *)(uintptr_t)strtoull(word("address") ? word("address") : "0", NULL, 16), 64 };

    return from.iov_base ? outcome(process_vm_readv((pid_t)number("peer"), &to, 1, &from, 1, 0)) : ENODATA;
}

/* --- sockets and shared objects ------------------------------------------------------------- */

static int connect_to(int family, int type, const void *address, socklen_t len)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    int result = outcome(fd < 0 ? -1 : connect(fd, address, len));

    if (result == 0)
        result = outcome(write(fd, word("mark"), strlen(word("mark"))));
    if (fd >= 0)
        close(fd);
    return result;
}

/* An abstract name begins with NUL. */
static int connect_unix(const char *key, bool abstract)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = word(key) ? strlen(word(key)) : 0;

    if (!len || len + 2 > sizeof address.sun_path)
        return ENODATA;
    memcpy(address.sun_path + abstract, word(key), len);
    return connect_to(AF_UNIX, SOCK_STREAM, &address,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1));
}

static int connect_abstract(void)
{
    return connect_unix("abstract", true);
}

static int connect_path(void)
{
    return connect_unix("socket", false);
}

static int connect_loopback(const char *key, int type)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)number(key)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    return number(key) > 0 ? connect_to(AF_INET, type, &address, sizeof address) : ENODATA;
}

static int connect_tcp(void)
{
    return connect_loopback("tcp", SOCK_STREAM);
}

static int send_udp(void)
{
    return connect_loopback("udp", SOCK_DGRAM);
}

static int attach_shared_memory(void)
{
    if (!word("shm"))
        return ENODATA;

    const char *at = shmat((int)number("shm"), NULL, SHM_RDONLY);

    if ((intptr_t)at == -1)
        return errno;
    memcpy(got, at, 64);
    shmdt(at);
    return 0;
}

/* Without waiting: it holds one message, or none is ours. */
static int read_message_queue(void)
{
    mqd_t queue = word("queue") ? mq_open(word("queue"), O_RDONLY | O_NONBLOCK) : -1;
    int result = word("queue") ? outcome(queue < 0 ? -1 : mq_receive(queue, got, GOT_MAX, NULL)) : ENODATA;

    if (queue >= 0)
        mq_close(queue);
    return result;
}

/* --- what came with the start --------------------------------------------------------------- */

static int read_descriptors(void)
{
    for (int fd = 3; fd < 1024; fd++)
        if (pread(fd, got, sizeof got - 1, 0) > 0)
            return 0;
    return EBADF;
}

static int read_variable(void)
{
    const char *value = word("variable") ? getenv(word("variable")) : NULL;

    if (value)
        snprintf(got, sizeof got, "%s", value);
    return value ? 0 : ENOENT;
}

static int read_key(void)
{
    if (!word("key"))
        return ENODATA;

    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", word("key"), 0);

    return outcome(key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, got, sizeof got - 1));
}

static int write_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    int result = outcome(fd < 0 ? -1 : write(fd, word("mark"), strlen(word("mark"))));

    if (fd >= 0)
        close(fd);
    return result;
}

static int type_on_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    int result = outcome(fd < 0 ? -1 : ioctl(fd, TIOCSTI, "x"));

    if (fd >= 0)
        close(fd);
    return result;
}

/* --- the kernel's wider surface: what opens is held ------------------------------------------ */

enum { PARAMETERS = 512 }; /* more than any struct that is handed over below */

static int make_io_uring(void)
{
    static char parameters[PARAMETERS];

    return outcome(syscall(SYS_io_uring_setup, 1, parameters));
}

static int make_userfaultfd(void)
{
    enum { USER_MODE_ONLY = 1 };

    return outcome(syscall(SYS_userfaultfd, USER_MODE_ONLY));
}

static int make_bpf_map(void)
{
    union bpf_attr attributes = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1
    };

    return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

static int open_perf_event(void)
{
    struct perf_event_attr attributes = { .type = PERF_TYPE_SOFTWARE,
                                          .size = sizeof attributes,
                                          .config = PERF_COUNT_SW_TASK_CLOCK,
                                          .disabled = 1,
                                          .exclude_kernel = 1,
                                          .exclude_hv = 1 };

    return outcome(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0UL));
}

static int make_fanotify(void)
{
    return outcome(syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID, 0));
}

static int open_mount_api(void)
{
    long tree = syscall(SYS_open_tree, AT_FDCWD, "/", 0);
    int result = outcome(tree);
    long context = syscall(SYS_fsopen, "tmpfs", 0);

    return context >= 0 ? 0 : result;
}

static int make_sockets(void)
{
    static const int families[][3] = { { AF_NETLINK, SOCK_RAW, 15 /* the kernel's device events */ },
                                       { AF_PACKET, SOCK_RAW, 0 } };
    int result = 0, made = 0;

    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        int fd = socket(families[i][0], families[i][1], families[i][2]); /* held */

        made += fd >= 0;
        result = errno;
    }
    return made ? 0 : result;
}

/* In a child that stays, so that the host can look at it. */
static int in_child(long (*attempt)(void))
{
    int ends[2], result = ECHILD;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;

    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd = 3; fd < 1024; fd++) /* what others before it got is theirs */
            if (fd != ends[1])
                close(fd);
        result = outcome(attempt());
        (void)!write(ends[1], &result, sizeof result);
        close(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &result, sizeof result) != (ssize_t)sizeof result)
        result = ECHILD; /* it was ended by the attempt */
    close(ends[0]);
    return result;
}

static long unshare_user(void)
{
    return unshare(CLONE_NEWUSER);
}

static int make_user_namespace(void)
{
    return in_child(unshare_user);
}

/* The calls of 32 bits have a table of their own. */
static long call_as_32_bit(void)
{
#ifdef __x86_64__
    enum { IO_URING_SETUP_32 = 425 };
    void *parameters =
        mmap(NULL, PARAMETERS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    long result = IO_URING_SETUP_32;

    __asm__ volatile("int $0x80"
                     : "+a"(result)
                     : "b"(1L), "c"(parameters)
                     : "memory", "r8", "r9", "r10", "r11");
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int use_other_calls(void)
{
    return in_child(call_as_32_bit);
}

/* The names are those of the rows (rows.c).  A row that has none here is a gap. */
static const struct {
    const char *name;
    int (*attempt)(void);
} attempts[] = {
    { "read-descriptors", read_descriptors }, /* first: before others fill them */
    { "read-file", read_file },
    { "write-file", write_file },
    { "write-workspace", write_workspace },
    { "write-root", write_root },
    { "make-device", make_device },
    { "open-devices", open_devices },
    { "open-kernel-settings", open_kernel_settings },
    { "signal-process", signal_peer },
    { "read-environment", read_environment },
    { "read-memory", read_memory },
    { "trace-process", trace_peer },
    { "signal-init", signal_init },
    { "open-init-memory", open_init_memory },
    { "trace-init", trace_init },
    { "connect-abstract", connect_abstract },
    { "connect-path", connect_path },
    { "connect-tcp", connect_tcp },
    { "send-udp", send_udp },
    { "attach-shared-memory", attach_shared_memory },
    { "read-message-queue", read_message_queue },
    { "read-variable", read_variable },
    { "read-key", read_key },
    { "write-terminal", write_terminal },
    { "type-on-terminal", type_on_terminal },
    { "make-io-uring", make_io_uring },
    { "use-other-calls", use_other_calls },
    { "make-userfaultfd", make_userfaultfd },
    { "make-bpf-map", make_bpf_map },
    { "open-perf-event", open_perf_event },
    { "make-fanotify", make_fanotify },
    { "open-mount-api", open_mount_api },
    { "make-sockets", make_sockets },
    { "make-user-namespace", make_user_namespace },
};

/* One line: name, error, and what was read as letters and digits. */
static void tell(const char *name, int result)
{
    size_t len = sizeof got;

    while (len > 0 && !got[len - 1])
        len--;
    for (size_t i = 0; i < len; i++)
        if (got[i] <= ' ' || got[i] > '~')
            got[i] = '.';
    got[sizeof got - 1] = '\0';
    dprintf(1, "%s %d %s\n", name, result, got);
}

static void wait_for_end(void)
{
    char byte;

    while (read(0, &byte, 1) > 0)
        continue;
}

static int try_all(void)
{
    char byte;

    if (read(0, &byte, 1) != 1)
        return 1;
    signal(SIGUSR1, SIG_IGN); /* a number that means one of our own here */
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        memset(got, 0, sizeof got);
        tell(attempts[i].name, attempts[i].attempt());
    }
    memset(got, 0, sizeof got);
    tell("done", 0);
    wait_for_end();
    return 0;
}

/* Signals wait where the host sees them.  Yama may let only ancestors trace: here everybody may.  The end of
 * standard input is that of our parent, however it came: a message queue would outlive it. */
static int be_canary(const char *queue)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    dprintf(1, "%llx\n", (unsigned long long)(uintptr_t)getenv("MEMORY"));
    wait_for_end();
    if (queue)
        mq_unlink(queue);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    words = argv + 2;
    return strcmp(argv[1], "wait") == 0 ? be_canary(argv[2]) : try_all();
}
