/* stepping-clock WAY -- COMMAND...
 *
 * Runs COMMAND on a machine whose wall clock somebody sets while it runs: forth and back by a year at every
 * look (swing), or a year ahead for the first second (ahead).  Nobody else's clock is touched.
 *
 * A program reads the clock from memory that the kernel shows it, so its first program is started without
 * that (no AT_SYSINFO_EHDR), and the system calls it makes instead are answered by us. */

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { YEAR = 31557600, VDSO = 33, IGNORED = 1 };

static int *listener; /* shared with the child, as the table of descriptors is until it executes */
static char **command;

static int become(void *unused)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettimeofday, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_time, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME_COARSE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };

    (void)unused;
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    *listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (*listener < 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        *listener =
            (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (*listener >= 0)
        execvp(command[0], command);
    perror("stepping-clock");
    return 2;
}

/* At the first instruction the stack has: count, arguments, 0, variables, 0, pairs of numbers. */
static void take_clock_away(pid_t child)
{
    struct user_regs_struct registers;
    unsigned long at;

    ptrace(PTRACE_GETREGS, child, 0, &registers);
    at = registers.rsp + 8 * (2 + (unsigned long)ptrace(PTRACE_PEEKDATA, child, registers.rsp, 0));
    while (ptrace(PTRACE_PEEKDATA, child, at, 0) != 0)
        at += 8;
    for (at += 8; ptrace(PTRACE_PEEKDATA, child, at, 0) != 0; at += 16)
        if (ptrace(PTRACE_PEEKDATA, child, at, 0) == VDSO)
            ptrace(PTRACE_POKEDATA, child, at, IGNORED);
}

static time_t uptime(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static long offset(const char *way, long looks)
{
    static time_t began;

    began = began ? began : uptime();
    if (strcmp(way, "ahead") == 0)
        return uptime() <= began + 1 ? YEAR : 0;
    return looks % 2 ? -YEAR : YEAR;
}

static void answer(int fd, const char *way, long *looks)
{
    struct seccomp_notif asked = { 0 };
    struct seccomp_notif_resp said = { 0 };
    struct timespec now;

    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += offset(way, (*looks)++);

    long micro[] = { now.tv_sec, now.tv_nsec / 1000 };
    bool exact = asked.data.nr == SYS_clock_gettime;
    struct iovec from = { exact ? (void *)&now : (void *)micro, asked.data.nr == SYS_time ? 8 : 16 };
    struct iovec to = { (void *)asked.data.args[exact ? 1 : 0], from.iov_len };

    said.id = asked.id;
    said.val = asked.data.nr == SYS_time ? now.tv_sec : 0;
    if (to.iov_base && process_vm_writev((pid_t)asked.pid, &from, 1, &to, 1, 0) < 0)
        said.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE; /* PID 1 of a sandbox: it lets nobody write there */
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &said);
}

int main(int argc, char **argv)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    int status;
    long looks = 0;

    if (argc < 4)
        return 2;
    command = argv + 3;
    listener = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    pid_t child = clone(become, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);

    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
        return 2;
    take_clock_away(child);
    ptrace(PTRACE_DETACH, child, 0, 0);
    for (;;) {
        struct pollfd event = { .fd = *listener, .events = POLLIN };

        if (poll(&event, 1, 20) > 0 && event.revents & POLLIN)
            answer(*listener, argv[1], &looks);
        if (waitpid(child, &status, WNOHANG) == child)
            break;
    }
    fprintf(stderr, "looks %ld\n", looks);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
