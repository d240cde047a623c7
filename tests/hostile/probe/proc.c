/* What the kernel's own file systems show, and what can be written there. */

#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reports what can be opened for writing.  Nothing is written: opening is the permission. */
static int try_open_for_writing(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    int fd;

    (void)status, (void)ftw;
    if (type != FTW_F)
        return 0;
    fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return 0;
    say("writable", "%s", path);
    close(fd);
    return 0;
}

static int writable_below(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        nftw(argv[i], try_open_for_writing, 16, FTW_PHYS);
    say("walked", "yes");
    return 0;
}

static void write_to(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK);
    long result = fd < 0 ? -1 : write(fd, content, strlen(content));

    chkf(result, "write:%s", path);
    if (fd >= 0)
        close(fd);
}

/* Harmless values: what would change is only whether it could be changed. */
static int knobs(int argc, char **argv)
{
    (void)argc, (void)argv;
    write_to("/proc/sys/kernel/core_pattern", "core");
    write_to("/proc/sys/kernel/modprobe", "/sbin/modprobe");
    write_to("/proc/sys/kernel/hotplug", "");
    write_to("/proc/sys/kernel/ns_last_pid", "300");
    write_to("/proc/sys/kernel/randomize_va_space", "2");
    write_to("/proc/sys/fs/binfmt_misc/register", ":attack:M::AT::/bin/false:");
    write_to("/proc/sys/vm/overcommit_memory", "0");
    write_to("/proc/sys/user/max_user_namespaces", "1000");
    write_to("/proc/sysrq-trigger", "h");
    write_to("/proc/self/oom_score_adj", "-1000");
    write_to("/proc/1/oom_score_adj", "1000");
    return 0;
}

/* Whether there is anything to read; reading never waits. */
static int readable(int argc, char **argv)
{
    char buffer[4096];

    for (int i = 0; i < argc; i++) {
        struct stat status;
        ssize_t got = -1;
        int fd = open(argv[i], O_RDONLY | O_NONBLOCK);

        if (fd >= 0 && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
            DIR *dir = fdopendir(fd);

            got = 0;
            for (struct dirent *entry; dir && (entry = readdir(dir));)
                got += entry->d_name[0] != '.';
            if (dir)
                closedir(dir);
        } else if (fd >= 0) {
            got = read(fd, buffer, sizeof buffer);
            close(fd);
        }
        if (got > 0)
            say("readable", "%s %zd", argv[i], got);
    }
    say("walked", "yes");
    return 0;
}

static int mounts(int argc, char **argv)
{
    (void)argc, (void)argv;
    say_file("mountinfo", "/proc/self/mountinfo");
    say_file("mounts", "/proc/self/mounts");
    say_file("mountstats", "/proc/self/mountstats");
    say_file("mountinfo-1", "/proc/1/mountinfo");
    chk("statmount", call3(457, BAD_NUMBER, BAD_NUMBER, 0));
    chk("listmount", call3(458, BAD_NUMBER, BAD_NUMBER, 0));
    return 0;
}

static void show_link(const char *path)
{
    char target[4096];
    struct stat status;
    ssize_t len = readlink(path, target, sizeof target - 1);

    if (len < 0)
        return;
    target[len] = '\0';
    if (stat(path, &status) < 0)
        memset(&status, 0, sizeof status);
    say("link", "%s -> %s (%llx:%llu)", path, target, (unsigned long long)status.st_dev,
        (unsigned long long)status.st_ino);
}

static void show_links_of(int pid)
{
    static const char *const single[] = { "root", "cwd", "exe" };
    static const char *const folders[] = { "fd", "map_files", "ns" };
    char path[400];

    say("pid", "%d", pid);
    say("role", "%d %s", pid, role_of(pid));
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, single[i]);
        show_link(path);
        snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, pid, single[i]);
        show_link(path);
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, folders[i]);
        DIR *dir = opendir(path);

        for (struct dirent *entry; dir && (entry = readdir(dir));) {
            snprintf(path, sizeof path, "/proc/%d/%s/%.200s", pid, folders[i], entry->d_name);
            show_link(path);
        }
        if (dir)
            closedir(dir);
    }
}

static int links(int argc, char **argv)
{
    (void)argc, (void)argv;
    for_each_pid(show_links_of);
    return 0;
}

static void crash(int signal_number, volatile int *where)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

        if (setrlimit(RLIMIT_CORE, &all) < 0) {
            getrlimit(RLIMIT_CORE, &all);
            all.rlim_cur = all.rlim_max;
            setrlimit(RLIMIT_CORE, &all);
        }
        if (signal_number == SIGSEGV)
            *where = 1;
        abort();
    }
    waitpid(pid, &status, 0);
    say("crash", "signal %d core %d", WTERMSIG(status), WCOREDUMP(status) ? 1 : 0);
}

static int crashes(int argc, char **argv)
{
    struct rlimit core;

    (void)argc, (void)argv;
    getrlimit(RLIMIT_CORE, &core);
    say("core-limit", "%llu %llu", (unsigned long long)core.rlim_cur, (unsigned long long)core.rlim_max);
    say_file("core-pattern", "/proc/sys/kernel/core_pattern");
    crash(SIGSEGV, NULL);
    crash(SIGABRT, NULL);
    return 0;
}

/* Every way to another limit; whether one led there is seen from outside. */
static int core_limits(int argc, char **argv)
{
    char end;
    struct rlimit none = { 0, 0 }, all = { RLIM_INFINITY, RLIM_INFINITY };

    setrlimit(RLIMIT_CORE, &all);
    syscall(SYS_setrlimit, RLIMIT_CORE, &none);
    syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
    syscall(SYS_prlimit64, getpid(), RLIMIT_CORE, &none, NULL);
    (void)argc, (void)argv;
    say("waiting", "yes");
    return read(STDIN_FILENO, &end, 1) < 0;
}

static int find_cgroup(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    const char *name = path + ftw->base;

    (void)status, (void)type;
    if (strncmp(name, "cgroup.", 7) == 0 || strcmp(name, "release_agent") == 0 ||
        strcmp(name, "notify_on_release") == 0)
        say("cgroup-file", "%s", path);
    return 0;
}

static int cgroups(int argc, char **argv)
{
    (void)argc, (void)argv;
    say_file("cgroup", "/proc/self/cgroup");
    say_file("mountinfo", "/proc/self/mountinfo");
    nftw("/sys", find_cgroup, 16, FTW_PHYS);
    mkdir("/tmp/cgroup", 0755);
    chk("mount:cgroup2", mount("none", "/tmp/cgroup", "cgroup2", 0, NULL));
    mkdir("/tmp/cgroup1", 0755);
    chk("mount:cgroup", mount("none", "/tmp/cgroup1", "cgroup", 0, "none,name=attack"));
    write_to("/sys/fs/cgroup/release_agent", "/bin/false");
    write_to("/sys/fs/cgroup/cgroup.procs", "0");
    write_to("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    return 0;
}

static void open_program(int pid)
{
    char path[64];
    int fd;

    if (pid == getpid())
        return;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    fd = open(path, O_PATH);
    chkf(fd, "%s:hold", role_of(pid));
    if (fd >= 0) {
        char again[64];

        snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
        int writing = open(again, O_WRONLY);

        chkf(writing, "%s:write", role_of(pid));
        if (writing >= 0)
            close(writing);
        close(fd);
    }
    fd = open(path, O_WRONLY);
    chkf(fd, "%s:open-write", role_of(pid));
    if (fd >= 0)
        close(fd);
}

/* The programs of init and of whoever enters, held and then written to. */
static int programs(int argc, char **argv)
{
    int rounds = argc > 0 ? atoi(argv[0]) : 1;

    for (int i = 0; i < rounds; i++)
        for_each_pid(open_program);
    return 0;
}

static int netlinks(int argc, char **argv)
{
    static const int types[] = { SOCK_RAW, SOCK_DGRAM };

    (void)argc, (void)argv;
    for (int protocol = 0; protocol < 32; protocol++)
        for (int i = 0; i < 2; i++) {
            int fd = socket(AF_NETLINK, types[i], protocol);
            struct sockaddr_nl all = { .nl_family = AF_NETLINK, .nl_groups = ~0U };

            chkf(fd, "netlink:%d:%d", protocol, types[i]);
            if (fd < 0)
                continue;
            chkf(bind(fd, (struct sockaddr *)&all, sizeof all), "groups:%d:%d", protocol, types[i]);
            close(fd);
        }
    return 0;
}

static int kernel_log(int argc, char **argv)
{
    char buffer[16];

    (void)argc, (void)argv;
    for (int type = 0; type <= 10; type++)
        if (type != 5) /* 5 would clear the log */
            chkf(klogctl(type, type == 8 ? NULL : buffer, 0), "syslog:%d", type);
    chk("kmsg-read", open("/dev/kmsg", O_RDONLY | O_NONBLOCK));
    chk("kmsg-write", open("/dev/kmsg", O_WRONLY | O_NONBLOCK));
    return 0;
}

static void show_words(int pid, const char *file)
{
    char path[64], buffer[65536];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return;
    ssize_t got = read(fd, buffer, sizeof buffer - 1);
    close(fd);
    if (got < 0)
        return;
    buffer[got] = '\0';
    for (char *at = buffer; at < buffer + got; at += strlen(at) + 1)
        say(file, "%d %s", pid, at);
}

static void show_words_of(int pid)
{
    show_words(pid, "environ");
    show_words(pid, "cmdline");
    show_words(pid, "comm");
}

static int words(int argc, char **argv)
{
    (void)argc, (void)argv;
    for_each_pid(show_words_of);
    return 0;
}

static int network_tables(int argc, char **argv)
{
    static const char *const files[] = { "/proc/net/dev", "/proc/net/tcp",      "/proc/net/tcp6",
                                         "/proc/net/udp", "/proc/net/unix",     "/proc/net/route",
                                         "/proc/net/arp", "/proc/net/fib_trie", "/proc/self/net/dev" };
    static const char *const machine[] = { "/proc/loadavg", "/proc/uptime", "/proc/meminfo", "/proc/diskstats",
                                           "/proc/partitions" };

    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        say_file(files[i], files[i]);
    for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
        say_file(machine[i], machine[i]);
    return 0;
}

const struct attack proc_attacks[] = {
    { "writable-below", writable_below },
    { "knobs", knobs },
    { "readable", readable },
    { "mounts", mounts },
    { "links", links },
    { "crash", crashes },
    { "core-limits", core_limits },
    { "cgroups", cgroups },
    { "programs", programs },
    { "netlinks", netlinks },
    { "kernel-log", kernel_log },
    { "words", words },
    { "network-tables", network_tables },
    { NULL, NULL },
};
