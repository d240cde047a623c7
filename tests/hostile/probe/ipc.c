/* Sockets, signals, shared memory. */

#include "probe.h"

#include "init/protocol.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* `name` begins with @ for an abstract address. */
static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
    size_t len = strlen(name);

    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (len >= sizeof out->sun_path)
        len = sizeof out->sun_path - 1;
    memcpy(out->sun_path, name, len);
    if (name[0] == '@')
        out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static void try_all_ways(const char *name, int type, const char *type_name)
{
    struct sockaddr_un address;
    socklen_t len = address_of(name, &address);
    struct iovec bytes = { (void *)(uintptr_t) "attack", 6 };
    struct msghdr message = { .msg_name = &address, .msg_namelen = len, .msg_iov = &bytes, .msg_iovlen = 1 };
    struct mmsghdr several = { .msg_hdr = message };
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);

    chkf(sendto(fd, "attack", 6, 0, (struct sockaddr *)&address, len), "sendto:%s:%s", type_name, name);
    chkf(sendmsg(fd, &message, 0), "sendmsg:%s:%s", type_name, name);
    chkf(sendmmsg(fd, &several, 1, 0), "sendmmsg:%s:%s", type_name, name);
    chkf(connect(fd, (struct sockaddr *)&address, len), "connect:%s:%s", type_name, name);
    (void)!write(fd, "attack", 6);
    if (fd >= 0)
        close(fd);
}

static int connect_all(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < argc; i++) {
        try_all_ways(argv[i], SOCK_STREAM, "stream");
        try_all_ways(argv[i], SOCK_DGRAM, "dgram");
        try_all_ways(argv[i], SOCK_SEQPACKET, "seqpacket");
    }
    return 0;
}

/* Every address with every protocol; ADDRESS PORT pairs. */
static int network(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i + 1 < argc; i += 2) {
        struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                    .sin6_port = htons((unsigned short)atoi(argv[i + 1])) };
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = six.sin6_port };
        int is_six = inet_pton(AF_INET6, argv[i], &six.sin6_addr) == 1;
        struct sockaddr *to = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
        socklen_t len = is_six ? sizeof six : sizeof four;
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };

        if (!is_six)
            inet_pton(AF_INET, argv[i], &four.sin_addr);
        for (int t = 0; t < 3; t++) {
            int fd = socket(to->sa_family, types[t], types[t] == SOCK_RAW ? 1 : 0);
            struct timeval soon = { 0, 300000 };

            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
            chkf(fd < 0 ? -1 : sendto(fd, "attack", 6, MSG_FASTOPEN * (types[t] == SOCK_STREAM), to, len),
                 "%d:%s:%s", types[t], argv[i], argv[i + 1]);
            if (fd >= 0) {
                (void)!connect(fd, to, len);
                (void)!send(fd, "attack", 6, MSG_DONTWAIT);
                close(fd);
            }
        }
    }
    return 0;
}

/* Asks HOST for PATH, at PORT: with the resolver that was linked in, and without a variable or a library of the
 * system. */
static int fetch(int argc, char **argv)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    char text[600];
    int size =
        argc < 3 ? 0 : snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[2], argv[0]);

    if (size <= 0 || size >= (int)sizeof text || getaddrinfo(argv[0], argv[1], &hints, &found) != 0)
        return 1;
    int fd = socket(found->ai_family, SOCK_STREAM, 0);

    chk("connect", connect(fd, found->ai_addr, found->ai_addrlen));
    chk("send", send(fd, text, (size_t)size, MSG_NOSIGNAL));
    chk("hear", recv(fd, text, sizeof text, 0));
    close(fd);
    freeaddrinfo(found);
    return 0;
}

static int system_v(int argc, char **argv)
{
    int shm = 0, sem = 0, msg = 0;
    key_t key = argc > 0 ? (key_t)strtol(argv[0], NULL, 0) : 1;
    const char *queue = argc > 1 ? argv[1] : "/none";
    struct shmid_ds segment;
    struct msqid_ds messages;

    chk("shmget", shmget(key, 0, 0));
    chk("semget", semget(key, 0, 0));
    chk("msgget", msgget(key, 0));
    for (int i = 0; i < 1000; i++) {
        shm += shmctl(i, 13 /* SHM_STAT */, &segment) >= 0;
        msg += msgctl(i, 11 /* MSG_STAT */, &messages) >= 0;
        sem += semctl(i, 0, 18 /* SEM_STAT */, &segment) >= 0;
    }
    say("found", "%d shm %d sem %d msg", shm, sem, msg);
    chk("mq_open", mq_open(queue, O_RDWR));
    return 0;
}

static void no_action(int number)
{
    (void)number;
}

/* Signals at everything that has a number here, then at numbers of the host. */
static int signals(int argc, char **argv)
{
    static const int deadly[] = { SIGKILL, SIGTERM, SIGSEGV, SIGSTOP, SIGABRT, SIGUSR1, SIGHUP };
    int pipes[2];

    signal(SIGTERM, no_action);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        chkf(kill(1, deadly[i]), "init:%d", deadly[i]);
    for (int i = 0; i < argc; i++) {
        pid_t pid = atoi(argv[i]);
        siginfo_t info = { .si_signo = SIGTERM, .si_code = SI_QUEUE };
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

        chkf(kill(pid, SIGTERM), "kill:%d", pid);
        chkf(syscall(SYS_tgkill, pid, pid, SIGTERM), "tgkill:%d", pid);
        chkf(syscall(SYS_rt_sigqueueinfo, pid, SIGTERM, &info), "sigqueue:%d", pid);
        chkf(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGTERM, &info), "tgsigqueue:%d", pid);
        chkf(pidfd < 0 ? -1 : syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0), "pidfd:%d", pid);
        if (pipe(pipes) == 0) {
            chkf(fcntl(pipes[0], F_SETOWN, pid), "setown:%d", pid);
            close(pipes[0]);
            close(pipes[1]);
        }
    }
    chk("kill-all", kill(-1, SIGTERM));
    say("alive", "yes");
    return 0;
}

/* The kernel's own: that of musl refuses more than a kilobyte of control data. */
static long send_raw(int fd, const struct msghdr *message, int flags)
{
    return syscall(SYS_sendmsg, fd, message, flags | MSG_NOSIGNAL);
}

/* Sends as many descriptors as fit, with forged credentials, over everything that is open. */
static int send_descriptors(int argc, char **argv)
{
    enum { MANY = 253 };
    static union {
        char bytes[CMSG_SPACE(MANY * sizeof(int))];
        struct cmsghdr align;
    } control;

    (void)argc, (void)argv;
    for (int fd = 0; fd < 64; fd++) {
        struct iovec bytes = { (void *)(uintptr_t) "x", 1 };
        struct msghdr message = {
            .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
        };
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        int type;

        if (fcntl(fd, F_GETFD) < 0)
            continue;
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(MANY * sizeof(int));
        for (int i = 0; i < MANY; i++)
            memcpy(CMSG_DATA(head) + (size_t)i * sizeof(int), &(int){ 0 }, sizeof(int));
        chkf(send_raw(fd, &message, MSG_DONTWAIT), "send:%d", fd);
        chkf(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof type }), "socket:%d", fd);
    }
    say("waiting", "yes");
    char byte;
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

/* The socket between PID 1 and the keeper, which a command only has where a guard was left out. */
static int find_channel(void)
{
    for (int fd = 3; fd < 64; fd++) {
        int type = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof type }) == 0 &&
            type == SOCK_SEQPACKET)
            return fd;
    }
    return -1;
}

/* One message as PID 1 would send it, but of so many bytes and with so many descriptors. */
static long forge(int channel, struct message forged, size_t size, size_t fds)
{
    enum { MANY = 253, ROOM = 1 << 17 };
    static char bytes[ROOM];
    static union {
        char bytes[CMSG_SPACE(MANY * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = { bytes, size < ROOM ? size : ROOM };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    memcpy(bytes, &forged, sizeof forged);
    if (fds) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);

        *head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(fds * sizeof(int)),
                                  .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS };
        memset(CMSG_DATA(head), 0, fds * sizeof(int)); /* standard input, so many times */
    }
    return send_raw(channel, &message, 0);
}

/* KIND PID STATUS SIZE FDS TIMES, again and again: what a PID 1 that somebody has taken over could say.
 * PID 0 is our own; SIZE +1 is a byte more than a message has, =1 a single one.  Waits for a byte, and
 * stays afterwards: it is the keeper that has to make an end. */
static int channel(int argc, char **argv)
{
    int fd = find_channel();

    chk("found", fd);
    say("waiting", "yes");
    (void)!read(0, &(char){ 0 }, 1);
    for (int i = 0; i + 5 < argc; i += 6) {
        struct message forged = { .kind = (uint32_t)strtol(argv[i], NULL, 0),
                                  .pid = atoi(argv[i + 1]) ? atoi(argv[i + 1]) : getpid(),
                                  .status = atoi(argv[i + 2]),
                                  .error.kind = (enum error_kind) ~0 };
        const char *size = argv[i + 3];
        size_t bytes = (size_t)atol(size + 1) * (*size == '-' ? -1UL : 1) + (*size == '=' ? 0 : sizeof forged);
        size_t fds = (size_t)atoi(argv[i + 4]);

        memset(forged.error.text, 'x', sizeof forged.error.text); /* without an end */
        long sent = forge(fd, forged, bytes, fds);

        chkf(sent, "sent:%d", i / 6);
        for (long times = atol(argv[i + 5]); times > 1 && sent >= 0; times--)
            sent = forge(fd, forged, bytes, fds);
    }
    while (pause() < 0) /* always */
        continue;
    return 0;
}

const struct attack ipc_attacks[] = {
    { "connect", connect_all }, { "network", network }, { "fetch", fetch },
    { "system-v", system_v },   { "signals", signals }, { "send-descriptors", send_descriptors },
    { "channel", channel },     { NULL, NULL },
};
