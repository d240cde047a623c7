#include "fake_init.h"

#include "box/box.h"
#include "init/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    enum fake fake;
    int init, master;
    pid_t pid;
};

static void tell(int fd, struct message message, const int *fds, size_t count)
{
    (void)wire_send(fd, &message, fds, count);
}

static char **split(char **at, uint32_t count)
{
    char **words = calloc(count + 1, sizeof *words);

    for (uint32_t i = 0; i < count; i++) {
        words[i] = *at;
        *at += strlen(*at) + 1;
    }
    return words;
}

static _Noreturn void become(const struct message *message, const int *fds, int terminal)
{
    struct stat info;
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    fstat(fds[0], &info);
    char *words = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[0], 0);
    char **cwd = split(&words, 1), **argv = split(&words, message->arguments);
    char **envp = split(&words, message->variables);

    if (terminal >= 0)
        ioctl(terminal, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++)
        dup2(terminal >= 0 ? terminal : fds[fd + 1], fd);
    close_range(3, ~0U, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (chdir(cwd[0]) == 0)
        execve(argv[0], argv, envp);
    _exit(127);
}

static int open_terminal(struct world *world, const struct message *message)
{
    struct winsize size = { .ws_row = (unsigned short)message->rows,
                            .ws_col = (unsigned short)message->columns };
    int unlock = 0;

    world->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    ioctl(world->master, TIOCSPTLCK, &unlock);
    ioctl(world->master, TIOCSWINSZ, &size);
    return ioctl(world->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static void violate(struct world *world)
{
    int fds[PROTOCOL_FDS_MAX] = { 0 };
    struct message exited = { .kind = MESSAGE_EXITED, .pid = world->pid };

    switch (world->fake) {
    case FAKE_UNKNOWN_KIND:
        tell(world->init, (struct message){ .kind = 4711 }, NULL, 0);
        break;
    case FAKE_SHORT:
        send(world->init, "x", 1, MSG_NOSIGNAL);
        break;
    case FAKE_TWICE_STARTED:
        tell(world->init, (struct message){ .kind = MESSAGE_STARTED, .pid = 77 }, NULL, 0);
        break;
    case FAKE_OTHER_PID:
        exited.pid++;
        tell(world->init, exited, NULL, 0);
        break;
    case FAKE_BAD_STATUS:
        exited.status = 0x137f; /* stopped */
        tell(world->init, exited, NULL, 0);
        break;
    case FAKE_DESCRIPTORS:
        tell(world->init, exited, fds, 1);
        break;
    case FAKE_MANY_DESCRIPTORS:
        tell(world->init, (struct message){ .kind = MESSAGE_EXITED }, fds, PROTOCOL_FDS_MAX);
        break;
    case FAKE_LISTENER:
        tell(world->init, (struct message){ .kind = MESSAGE_LISTENER }, fds, 1);
        break;
    case FAKE_DIES:
        usleep(20000);
        _exit(3);
    case FAKE_HONEST:
    case FAKE_NOT_FOUND:
    case FAKE_SETUP_FAILED:
    case FAKE_DEAF:
    case FAKE_NO_TERMINAL:
    case FAKE_END:
        break;
    }
}

/* As a held command does. */
static void await_word(const struct world *world, const struct message *message)
{
    struct message go = { 0 };

    if (message->flags & START_HELD &&
        (read(world->init, &go, sizeof go) != sizeof go || go.kind != MESSAGE_GO))
        _exit(0);
}

static void start(struct world *world, const struct message *message, const int *fds)
{
    int terminal = message->flags & START_TTY ? open_terminal(world, message) : -1;
    struct message failed = { .kind = MESSAGE_FAILED,
                              .status = 127,
                              .error = { ERROR_SYSTEM, ENOENT, "run it" } };
    int other = STDIN_FILENO;

    if (world->fake == FAKE_NOT_FOUND) {
        tell(world->init, failed, NULL, 0);
        return;
    }
    await_word(world, message);
    world->pid = fork();
    if (world->pid == 0)
        become(message, fds, terminal);
    tell(world->init, (struct message){ .kind = MESSAGE_STARTED, .pid = world->pid },
         world->fake == FAKE_NO_TERMINAL ? &other : &world->master, terminal >= 0);
    if (terminal >= 0) {
        close(terminal);
        close(world->master);
    }
    violate(world);
}

static _Noreturn void end(struct world *world)
{
    struct rusage usage;

    if (world->fake == FAKE_DEAF)
        pause();
    if (world->pid > 0)
        kill(-world->pid, SIGKILL);
    while (wait(NULL) > 0)
        ;
    getrusage(RUSAGE_CHILDREN, &usage);
    tell(world->init, (struct message){ .kind = MESSAGE_EMPTY, .peak_kib = (uint64_t)usage.ru_maxrss }, NULL,
         0);
    _exit(0);
}

static void handle_message(struct world *world)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error err;
    size_t count;

    if (wire_receive(world->init, &message, fds, &count, &err) != WIRE_MESSAGE)
        _exit(0);
    if (message.kind == MESSAGE_END)
        end(world);
    if (message.kind == MESSAGE_START)
        start(world, &message, fds);
    else if (message.kind == MESSAGE_SIGNAL)
        kill(-message.pid, message.signal);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void reap(struct world *world)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        if (pid == world->pid) {
            tell(world->init,
                 (struct message){ .kind = MESSAGE_EXITED,
                                   .pid = pid,
                                   .status = status,
                                   .user_us = (uint64_t)usage.ru_utime.tv_usec,
                                   .peak_kib = (uint64_t)usage.ru_maxrss },
                 NULL, 0);
            end(world);
        }
}

static _Noreturn void live(struct world *world)
{
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);

    if (world->fake == FAKE_SETUP_FAILED) {
        struct message failed = { .kind = MESSAGE_FAILED, .status = 125 };

        error_set(&failed.error, ERROR_UNSUPPORTED, "mount something");
        tell(world->init, failed, NULL, 0);
        _exit(125);
    }
    tell(world->init, (struct message){ .kind = MESSAGE_MOUNTED }, &signals, 1);
    for (;;) {
        struct pollfd events[] = { { world->init, POLLIN, 0 }, { signals, POLLIN, 0 } };
        struct signalfd_siginfo info;

        if (poll(events, 2, -1) < 0)
            continue;
        if (events[0].revents)
            handle_message(world);
        while (read(signals, &info, sizeof info) > 0)
            ;
        reap(world);
    }
}

/* It has mounted nothing. */
int __wrap_box_verify(struct box *box, const struct message *mounted, int *fds, size_t count,
                      struct error *err);
int __wrap_box_verify(struct box *box, const struct message *mounted, int *fds, size_t count, struct error *err)
{
    (void)box, (void)mounted, (void)fds, (void)count, (void)err;
    return 0;
}

void fake_start(enum fake fake, struct box *out)
{
    int init[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, init) < 0)
        abort();
    out->pid = fork();
    if (out->pid == 0) {
        close(init[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        live(&(struct world){ fake, init[1], -1, -1 });
    }
    close(init[1]);
    out->init_fd = init[0];
    out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
}
