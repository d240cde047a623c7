/* Identity, namespaces, capabilities. */

#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int status(int argc, char **argv)
{
    (void)argc, (void)argv;
    say_file("status", "/proc/self/status");
    return 0;
}

/* Stays until its input ends, so that the host can look at it. */
static int wait_here(int argc, char **argv)
{
    char byte;

    (void)argc, (void)argv;
    say("waiting", "%d", getpid());
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

static void try_write(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    long result = fd < 0 ? -1 : write(fd, content, strlen(content));

    chkf(result, "write:%s", path);
    if (fd >= 0)
        close(fd);
}

static int ids(int argc, char **argv)
{
    gid_t group = 0;

    (void)argc, (void)argv;
    say_file("uid_map", "/proc/self/uid_map");
    say_file("gid_map", "/proc/self/gid_map");
    say_file("setgroups", "/proc/self/setgroups");
    try_write("/proc/self/uid_map", "0 0 1");
    try_write("/proc/self/gid_map", "0 0 1");
    try_write("/proc/self/setgroups", "allow");
    chk("setgroups", syscall(SYS_setgroups, 1, &group));
    chk("setresuid-init", syscall(SYS_setresuid, 65535, 65535, 65535));
    chk("setuid-0", syscall(SYS_setuid, 0));
    return wait_here(0, NULL);
}

static void try_fork(const char *step, uint64_t flags, long (*how)(uint64_t))
{
    pid_t pid = fork();
    int result = 0;

    if (pid == 0) {
        long got = how(flags);

        if (got == 0 && how != NULL)
            _exit(0); /* the new process, or the same one after unshare */
        _exit(got < 0 ? errno : 0);
    }
    waitpid(pid, &result, 0);
    errno = WEXITSTATUS(result);
    chk(step, errno ? -1 : 0);
}

static long by_unshare(uint64_t flags)
{
    return syscall(SYS_unshare, flags);
}

static long by_clone(uint64_t flags)
{
    return syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);
}

static long by_clone3(uint64_t flags)
{
    struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };

    return syscall(SYS_clone3, &args, sizeof args);
}

/* Bits above the low half are garbage to the kernel where it takes an int. */
static int nest(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t flag;
    } kinds[] = { { "user", CLONE_NEWUSER },
                  { "user+mnt", CLONE_NEWUSER | CLONE_NEWNS },
                  { "user+all",
                    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS },
                  { "mnt", CLONE_NEWNS },
                  { "pid", CLONE_NEWPID },
                  { "net", CLONE_NEWNET },
                  { "ipc", CLONE_NEWIPC },
                  { "uts", CLONE_NEWUTS },
                  { "cgroup", CLONE_NEWCGROUP } };
    char step[80];

    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(step, sizeof step, "unshare:%s", kinds[i].name);
        try_fork(step, kinds[i].flag, by_unshare);
        snprintf(step, sizeof step, "unshare-high:%s", kinds[i].name);
        try_fork(step, kinds[i].flag | 0xdeadbeef00000000, by_unshare);
        snprintf(step, sizeof step, "clone:%s", kinds[i].name);
        try_fork(step, kinds[i].flag, by_clone);
        snprintf(step, sizeof step, "clone-high:%s", kinds[i].name);
        try_fork(step, kinds[i].flag | 0xdeadbeef00000000, by_clone);
        snprintf(step, sizeof step, "clone3:%s", kinds[i].name);
        try_fork(step, kinds[i].flag, by_clone3);
    }
    try_fork("unshare:time", CLONE_NEWTIME, by_unshare);
    try_fork("clone3:time", CLONE_NEWTIME, by_clone3);
    return 0;
}

static void enter(int pid)
{
    char path[300];
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    DIR *dir;

    if (pidfd >= 0) {
        chkf(syscall(SYS_setns, pidfd, CLONE_NEWNS | CLONE_NEWUTS), "setns-pidfd:%d", pid);
        close(pidfd);
    }
    snprintf(path, sizeof path, "/proc/%d/ns", pid);
    dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
            continue;
        chkf(syscall(SYS_setns, fd, 0), "setns:%d/%s", pid, entry->d_name);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

static int setns_all(int argc, char **argv)
{
    (void)argc, (void)argv;
    for_each_pid(enter);
    return 0;
}

static void put(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd >= 0) {
        (void)!write(fd, content, strlen(content));
        close(fd);
    }
}

/* Holds a protected directory by handle, makes namespaces, and replaces a file in it. */
static int chain(int argc, char **argv)
{
    char map[64];
    int held = open(argc > 0 ? argv[0] : ".", O_PATH | O_DIRECTORY);
    uid_t uid = getuid();
    gid_t gid = getgid();

    chk("hold", held);
    chk("unshare", syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS));
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", uid);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", gid);
    put("/proc/self/gid_map", map);
    chk("private", mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    chk("remount", mount(NULL, argc > 0 ? argv[0] : ".", NULL, MS_REMOUNT | MS_BIND, NULL));
    chk("umount", umount2(argc > 0 ? argv[0] : ".", MNT_DETACH));
    chk("tmpfs", mount("t", "/tmp", "tmpfs", 0, NULL));
    mkdir("/tmp/old", 0700);
    chk("bind", mount("/tmp", "/tmp", NULL, MS_BIND, NULL));
    chk("pivot", syscall(SYS_pivot_root, "/tmp", "/tmp/old"));
    chk("umount-old", umount2("/old", MNT_DETACH));
    chk("fchdir", fchdir(held));
    put("attacker", "replaced by the attacker\n");
    chk("rename", rename("attacker", "protected"));
    return 0;
}

static int clock_set(int argc, char **argv)
{
    (void)argc, (void)argv;
    chk("clock_settime", call3(SYS_clock_settime, 0, BAD_NUMBER, 0));
    chk("settimeofday", call3(SYS_settimeofday, BAD_NUMBER, 0, 0));
    chk("adjtimex", call3(SYS_adjtimex, BAD_NUMBER, 0, 0));
    chk("clock_adjtime", call3(SYS_clock_adjtime, 0, BAD_NUMBER, 0));
    return 0;
}

static int name_set(int argc, char **argv)
{
    (void)argc, (void)argv;
    chk("sethostname", sethostname("attacker", 8));
    chk("setdomainname", setdomainname("attacker", 8));
    return 0;
}

static void attack_process(const char *role)
{
    int pid = 1;
    static const char *const files[] = { "mem",  "environ", "exe",  "root",  "cwd",
                                         "fd/0", "maps",    "auxv", "ns/mnt" };
    struct iovec local = { (void *)(uintptr_t) "x", 1 }, remote = { (void *)0x400000, 1 };
    char path[64];
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    chkf(ptrace(PTRACE_SEIZE, pid, 0, 0), "%s:seize", role);
    chkf(ptrace(PTRACE_ATTACH, pid, 0, 0), "%s:attach", role);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        int fd = open(path, i == 0 ? O_RDWR : O_RDONLY | O_NONBLOCK);

        chkf(fd, "%s:open:%s", role, files[i]); /* the kernel checks these when they are opened */
        if (fd >= 0)
            close(fd);
    }
    chkf(process_vm_writev(pid, &local, 1, &remote, 1, 0), "%s:vm_writev", role);
    chkf(process_vm_readv(pid, &local, 0, &remote, 0, 0) == 0 &&
                 process_vm_readv(pid, &remote, 1, &remote, 1, 0) >= 0
             ? 0
             : -1,
         "%s:vm_readv", role);
    chkf(syscall(SYS_pidfd_getfd, pidfd, 3, 0), "%s:pidfd_getfd", role);
    chkf(syscall(SYS_kcmp, pid, getpid(), 0, 0, 0), "%s:kcmp", role);
    chkf(syscall(SYS_prlimit64, pid, 7 /* NOFILE */, (uint64_t[]){ 3, 3 }, NULL), "%s:prlimit", role);
    if (pidfd >= 0)
        close(pidfd);
}

static int inits(int argc, char **argv)
{
    (void)argc, (void)argv;
    attack_process("init");
    return 0;
}

/* Many short processes, for an observer on the host to look at. */
static int swarm(int argc, char **argv)
{
    int count = argc > 0 ? atoi(argv[0]) : 50;
    char *again[] = { (char *)(uintptr_t) "probe", (char *)(uintptr_t) "pause-a-little", NULL };

    for (int i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            execve("/proc/self/exe", again, (char *[]){ NULL });
            _exit(1);
        }
        waitpid(pid, NULL, 0);
    }
    return 0;
}

static int pause_a_little(int argc, char **argv)
{
    (void)argc, (void)argv;
    usleep(3000);
    return 0;
}

static int who(int argc, char **argv)
{
    (void)argc, (void)argv;
    say("uid", "%u", getuid());
    say("euid", "%u", geteuid());
    say("egid", "%u", getegid());
    say_file("status", "/proc/self/status");
    return 0;
}

const struct attack ns_attacks[] = {
    { "status", status },
    { "wait", wait_here },
    { "ids", ids },
    { "nest", nest },
    { "setns", setns_all },
    { "chain", chain },
    { "clock", clock_set },
    { "hostname", name_set },
    { "inits", inits },
    { "swarm", swarm },
    { "pause-a-little", pause_a_little },
    { "who", who },
    { NULL, NULL },
};
