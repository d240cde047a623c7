/* Taking all there is.  Every attack ends by itself at a bound that does not hurt the machine, should
 * nothing else stop it. */

#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static char block[MIB];

/* How far it came, and why no further. */
static void came(const char *what, long count)
{
    say(what, "%ld errno %d", count, errno);
}

static int wait_here(int seconds)
{
    say("waiting", "%d", getpid());
    sleep((unsigned)seconds);
    return 0;
}

/* Stays until its input ends, for what the host looks at. */
static int wait_for_host(void)
{
    char byte;

    say("waiting", "%d", getpid());
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

static void *sleep_long(void *unused)
{
    (void)unused;
    sleep(30);
    return NULL;
}

/* fork-bomb KIND MOST: sleepers, as many as there can be. */
static int fork_bomb(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "fork";
    long most = argc > 1 ? atol(argv[1]) : 300, count = 0;
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (errno = 0; count < most; count++) {
        if (strcmp(kind, "thread") == 0) {
            errno = pthread_create(&thread, &small, sleep_long, NULL);
            if (errno)
                break;
            continue;
        }
        pid_t pid = strcmp(kind, "exec") == 0 ? vfork() : fork();

        if (pid < 0)
            break;
        if (pid == 0 && strcmp(kind, "exec") == 0)
            execl("/proc/self/exe", "probe", "sleeper", (char *)NULL);
        if (pid == 0)
            sleep(30);
        if (pid == 0)
            _exit(0);
    }
    came("tasks", count);
    return wait_here(30);
}

static int sleeper(int argc, char **argv)
{
    (void)argc, (void)argv;
    sleep(30);
    return 0;
}

/* memory-bomb KIND MEBIBYTES: takes and touches so much. */
static long take_anonymous(int flags)
{
    char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

    return at == MAP_FAILED ? -1 : (long)(intptr_t)memset(at, 1, MIB) & 0;
}

static long take_file(const char *path, int flags)
{
    static int fd = -1;

    if (fd < 0)
        fd = path ? open(path, O_RDWR | O_CREAT, 0600) : memfd_create("bomb", 0);
    (void)flags;
    return write(fd, block, MIB) == MIB ? 0 : -1;
}

static long take_pipe(void)
{
    long sum = 0;

    while (sum < MIB) {
        int ends[2];

        if (pipe2(ends, O_NONBLOCK) < 0)
            return -1;
        sum += write(ends[1], block, 64 << 10);
    }
    return 0;
}

static int memory_bomb(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "anon";
    long most = argc > 1 ? atol(argv[1]) : 200, count = 0, got = 0;

    memset(block, 1, sizeof block);
    for (errno = 0; count < most && got >= 0; count++) {
        if (strcmp(kind, "anon") == 0)
            got = take_anonymous(MAP_PRIVATE);
        else if (strcmp(kind, "shared") == 0)
            got = take_anonymous(MAP_SHARED);
        else if (strcmp(kind, "tmpfs") == 0)
            got = take_file("/dev/shm/bomb", 0);
        else if (strcmp(kind, "memfd") == 0)
            got = take_file(NULL, 0);
        else if (strcmp(kind, "cache") == 0)
            got = take_file("bomb", 0);
        else
            got = take_pipe();
        usleep(2000);
    }
    came("mebibytes", count);
    return wait_here(3);
}

/* disk-bomb KIND MEBIBYTES */
static int disk_bomb(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "write";
    long most = argc > 1 ? atol(argv[1]) : 80, count = 0, got = 0;
    int fd = open("bomb", O_RDWR | O_CREAT, 0600);
    char name[64];

    if (strcmp(kind, "fallocate") == 0)
        got = posix_fallocate(fd, 0, most * MIB) ? -1 : 0;
    if (strcmp(kind, "sparse") == 0)
        got = ftruncate(fd, most * MIB);
    if (strcmp(kind, "unlinked") == 0)
        unlink("bomb");
    for (errno = 0; count < most && got >= 0 && strcmp(kind, "fallocate") != 0; count++) {
        if (strcmp(kind, "small") == 0) {
            for (int i = 0; i < 64 && got >= 0; i++) {
                snprintf(name, sizeof name, "small-%ld-%d", count, i);
                int small = open(name, O_WRONLY | O_CREAT, 0600);

                got = write(small, block, MIB / 64);
                close(small);
            }
        } else {
            got = pwrite(fd, block, MIB, count * MIB);
        }
    }
    came("mebibytes", count);
    return wait_here(20);
}

/* inode-bomb KIND MOST */
static int inode_bomb(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "files";
    long most = argc > 1 ? atol(argv[1]) : 3000, count = 0, got = 0;
    char name[300];

    close(open("first", O_WRONLY | O_CREAT, 0600));
    for (errno = 0; count < most && got >= 0; count++) {
        memset(name, 'x', sizeof name);
        snprintf(name, sizeof name, "%ld", count);
        if (strcmp(kind, "deep") == 0) {
            got = mkdir("d", 0700) < 0 ? -1 : chdir("d");
        } else if (strcmp(kind, "links") == 0) {
            got = link("first", name);
        } else if (strcmp(kind, "names") == 0) {
            name[strlen(name)] = 'x';
            name[250] = '\0';
            got = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            close((int)got);
        } else {
            got = mknod(name, S_IFREG | 0600, 0);
        }
    }
    came("files", count);
    return wait_here(20);
}

/* descriptor-bomb KIND MOST */
static int descriptor_bomb(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "sockets";
    long most = argc > 1 ? atol(argv[1]) : 2000, count = 0, got = 0;
    int pair[2];

    for (errno = 0; count < most && got >= 0; count++) {
        if (strcmp(kind, "sockets") == 0)
            got = socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        else if (strcmp(kind, "pipes") == 0)
            got = pipe(pair);
        else if (strcmp(kind, "epoll") == 0)
            got = epoll_create1(0);
        else if (strcmp(kind, "memfd") == 0)
            got = memfd_create("bomb", 0);
        else
            got = inotify_init1(0);
    }
    came("descriptors", count - (got < 0));
    return wait_for_host();
}

/* In flight: descriptors that no process has open any more. */
static int flying_bomb(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 2000, count = 0;
    int pair[2], sent = open("/dev/null", O_RDONLY);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { 0 };
    struct iovec part = { block, 1 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };

    control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.align), &sent, sizeof sent);
    for (errno = 0; count < most; count++) {
        if (count % 100 == 0 && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) < 0)
            break;
        if (sendmsg(pair[0], &message, 0) < 0 && errno != EAGAIN)
            break;
    }
    came("flying", count);
    return wait_for_host();
}

static void *burn(void *unused)
{
    for (volatile unsigned long i = 0;; i++)
        if (i % 1000 == 0)
            getppid();
    return unused;
}

/* burn THREADS SECONDS, after asking for a better place in the queue. */
static int burn_all(int argc, char **argv)
{
    long threads = argc > 0 ? atol(argv[0]) : 4;
    struct sched_param realtime = { .sched_priority = 1 };
    pthread_attr_t small;
    pthread_t thread;

    chk("sched_setscheduler", sched_setscheduler(0, SCHED_FIFO, &realtime));
    errno = 0;
    chk("nice", nice(-5) == -1 && errno ? -1 : 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (long i = 0; i < threads; i++)
        (void)pthread_create(&thread, &small, burn, NULL);
    return wait_here(argc > 1 ? atoi(argv[1]) : 3);
}

/* Processes whose parents are gone, and children nobody waits for. */
static int zombies(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 2000, count = 0;

    for (errno = 0; count < most; count++) {
        pid_t pid = fork();

        if (pid < 0)
            break;
        if (pid == 0) {
            if (fork() == 0)
                _exit(0);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    came("orphans", count);
    return wait_for_host();
}

static int terminals(int argc, char **argv)
{
    long most = argc > 0 ? atol(argv[0]) : 1000, count = 0;

    for (errno = 0; count < most; count++)
        if (open("/dev/ptmx", O_RDWR | O_NOCTTY) < 0)
            break;
    came("terminals", count);
    return wait_for_host();
}

/* table-bomb KIND MOST [SECONDS]: entries of tables that the kernel keeps for each user. */
static int table_bomb(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "timers";
    long most = argc > 1 ? atol(argv[1]) : 1000, count = 0, got = 0;
    struct sigevent silent = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
    struct mq_attr size = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
    char name[32];
    sigset_t all;
    timer_t timer;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (errno = 0; count < most && got >= 0; count++) {
        snprintf(name, sizeof name, "/bomb-%ld", count);
        if (strcmp(kind, "timers") == 0)
            got = timer_create(CLOCK_MONOTONIC, &silent, &timer);
        else if (strcmp(kind, "signals") == 0)
            got = sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 });
        else if (strcmp(kind, "queues") == 0)
            got = mq_open(name, O_CREAT | O_RDWR, 0600, &size);
        else if (strcmp(kind, "keys") == 0)
            got = syscall(SYS_add_key, "user", name, "x", 1, -2);
        else if (strcmp(kind, "segments") == 0)
            got = shmget(IPC_PRIVATE, 4096, 0600);
    }
    came("entries", count - (got < 0));
    return wait_here(argc > 2 ? atoi(argv[2]) : 3);
}

/* One that writes here and there and waits for the disk each time. */
static void storm(long index, int seconds)
{
    enum { PART = 64 << 10, PARTS = 64 };
    char name[32];
    struct timespec began, now;
    long count = 0;

    snprintf(name, sizeof name, "storm-%ld", index);
    int fd = open(name, O_RDWR | O_CREAT, 0600);

    clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        (void)!pwrite(fd, block, PART, (random() % PARTS) * PART);
        fsync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)!pread(fd, block, PART, (random() % PARTS) * PART);
        clock_gettime(CLOCK_MONOTONIC, &now);
        count++;
    } while (now.tv_sec - began.tv_sec < seconds);
    say("storm", "%ld", count);
}

/* io-storm PROCESSES SECONDS */
static int io_storm(int argc, char **argv)
{
    long processes = argc > 0 ? atol(argv[0]) : 4;

    for (long i = 0; i < processes; i++)
        if (fork() == 0) {
            storm(i, argc > 1 ? atoi(argv[1]) : 3);
            _exit(0);
        }
    say("waiting", "%d", getpid());
    while (wait(NULL) > 0)
        continue;
    return 0;
}

/* exec-bomb TIMES: starts itself with two megabytes of arguments, again and again. */
static int exec_bomb(int argc, char **argv)
{
    long left = argc > 0 ? atol(argv[0]) : 100;
    enum { WORDS = 20 };
    char *words[WORDS + 4] = { (char *)(uintptr_t) "probe", (char *)(uintptr_t) "exec-bomb" }, number[32];

    if (left == 0) {
        say("done", "yes");
        return 0;
    }
    snprintf(number, sizeof number, "%ld", left - 1);
    words[2] = number;
    for (int i = 0; i < WORDS; i++) {
        words[3 + i] = malloc(100001);
        memset(words[3 + i], 'x', 100000);
        words[3 + i][100000] = '\0';
    }
    execv("/proc/self/exe", words);
    chk("execv", -1);
    return 0;
}

static int stubborn(int argc, char **argv)
{
    sigset_t all;

    (void)argc, (void)argv;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    if (vfork() == 0) {
        say("waiting", "%d", getpid());
        for (;;)
            pause();
    }
    return 0;
}

const struct attack res_attacks[] = {
    { "fork-bomb", fork_bomb },     { "sleeper", sleeper },       { "memory-bomb", memory_bomb },
    { "disk-bomb", disk_bomb },     { "inode-bomb", inode_bomb }, { "descriptor-bomb", descriptor_bomb },
    { "flying-bomb", flying_bomb }, { "burn", burn_all },         { "zombies", zombies },
    { "terminals", terminals },     { "table-bomb", table_bomb }, { "io-storm", io_storm },
    { "exec-bomb", exec_bomb },     { "stubborn", stubborn },     { NULL, NULL },
};
