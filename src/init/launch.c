/* From START to a running command.
 *
 * The child shares our memory until its exec and we sleep until then (CLONE_VM, CLONE_VFORK):
 * nothing is copied, and what goes wrong in it we simply find in memory.  That is no hole: our
 * memory is not dumpable, so nobody inside can reach into the child before its exec. */

#include "init/init.h"
#include "init/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* The kernel's own bound on arguments and environment is a quarter of the stack limit, 6 MiB at
 * most for one exec; more words than that can never be started. */
enum { WORDS_MAX = 8 << 20 };

void launch_failed(const struct message *message, int status, const struct error *error)
{
    struct message failed = { .kind = MESSAGE_FAILED, .job = message->job, .status = status, .error = *error };

    wire_send(PROTOCOL_INIT_FD, &failed, NULL, 0);
}

/* Splits the next `count` strings off the words; false if there are fewer. */
static bool take_words(char **at, const char *end, uint32_t count, char **words)
{
    for (uint32_t i = 0; i < count; i++) {
        char *stop = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

        if (!stop)
            return false;
        words[i] = *at;
        *at = stop + 1;
    }
    return true;
}

static int read_words(struct start *start, int fd, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0 || status.st_size <= 0 || status.st_size > WORDS_MAX)
        return error_set(err, ERROR_INVALID, "arguments and environment are larger than %d bytes", WORDS_MAX);

    size_t size = (size_t)status.st_size;
    char *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

    if (words == MAP_FAILED)
        return error_sys(err, "map the words of a command");

    const char *end = words + size;
    uint32_t arguments = start->message.arguments, variables = start->message.variables;
    size_t room = ((size_t)arguments + variables + 2) * sizeof *start->argv;

    /* By pages: the first word from malloc costs six calls. */
    start->argv = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start->argv == MAP_FAILED)
        return error_sys(err, "make room for the words of a command");
    start->envp = start->argv + arguments + 1;
    start->cwd = words;
    if (!take_words(&words, end, 1, &(char *){ NULL }) || !take_words(&words, end, arguments, start->argv) ||
        !take_words(&words, end, variables, start->envp) || !start->argv[0])
        return error_set(err, ERROR_INVALID, "the words of a command are not whole");
    return 0;
}

/* Everybody's terminal is UTF-8: rubbing out a character takes all its bytes. */
static void set_utf8(int terminal)
{
    struct termios settings;

    if (tcgetattr(terminal, &settings) < 0)
        return;
    settings.c_iflag |= IUTF8;
    (void)tcsetattr(terminal, TCSANOW, &settings);
}

/* The pty is made inside, from the sandbox's own devpts; only its master leaves. */
static int open_terminal(struct start *start, int *out_master, struct error *err)
{
    struct winsize size = { .ws_row = (unsigned short)start->message.rows,
                            .ws_col = (unsigned short)start->message.columns,
                            .ws_xpixel = (unsigned short)start->message.width,
                            .ws_ypixel = (unsigned short)start->message.height };
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), unlock = 0;

    if (master < 0)
        return error_sys(err, "open /dev/ptmx");
    *out_master = master;
    if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
        return error_sys(err, "unlock a terminal");
    start->terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (start->terminal < 0)
        return error_sys(err, "open a terminal");
    if (size.ws_row && size.ws_col)
        ioctl(master, TIOCSWINSZ, &size);
    set_utf8(start->terminal);
    if (start->message.uid != getuid() && fchown(start->terminal, start->message.uid, (gid_t)-1) < 0)
        return error_sys(err, "give the terminal to the command's user");
    return 0;
}

static int child_main(void *start)
{
    command_become(start);
}

/* Comes back when the command runs, or has said why not. */
static pid_t fork_command(struct start *start)
{
    static _Alignas(16) char stack[64 << 10];
    /* One that PID 1 is the parent of is PID 1's to wait for, also if it came to nothing. */
    bool ours = start->as != LAUNCH_INSIDE;
    pid_t pid = clone(child_main, stack + sizeof stack,
                      CLONE_VM | CLONE_VFORK | (ours ? SIGCHLD : CLONE_PARENT) |
                          (start->entering ? CLONE_PARENT_SETTID : 0),
                      start, start->entering);

    if (pid < 0)
        error_sys(&start->error, "fork a command");
    if (pid >= 0 && start->failed) {
        if (ours)
            waitpid(pid, NULL, 0);
        pid = -1;
    }
    return pid;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static pid_t start_command(struct start *start, int words, int *master)
{
    if (read_words(start, words, &start->error) < 0)
        return -1;
    if ((start->message.flags & START_TTY) && open_terminal(start, master, &start->error) < 0)
        return -1;
    return fork_command(start);
}

/* A test build starts commands outside the domain or debuggable when it is told to. */
static void loosen(const struct message *message)
{
#ifdef COVE_UNSAFE
    if (message->flags & START_NO_DUMPABLE)
        prctl(PR_SET_DUMPABLE, 1);
#else
    (void)message;
#endif
}

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

pid_t launch(const struct message *message, enum launch_as as, pid_t *entering, const int *fds, size_t count)
{
    uint64_t ready_us = now_us();
    struct start start = { .message = *message,
                           .stdio = { -1, -1, -1 },
                           .terminal = -1,
                           .program = -1,
                           .as = as,
                           .entering = entering };
    bool terminal = message->flags & START_TTY, program = message->flags & START_PROGRAM;
    int master = -1;
    pid_t pid = -1;

    loosen(message);
    if (count != (terminal ? 1U : 4U) + program) {
        error_set(&start.error, ERROR_INVALID, "a command was asked for with %zu descriptors", count);
    } else {
        if (!terminal)
            memcpy(start.stdio, fds + 1, sizeof start.stdio);
        if (program)
            start.program = fds[count - 1];
        pid = start_command(&start, fds[0], &master);
    }
    if (pid > 0) {
        struct message started = {
            .kind = MESSAGE_STARTED, .job = message->job, .pid = pid, .ready_us = ready_us
        };

        wire_send(PROTOCOL_INIT_FD, &started, &master, terminal ? 1 : 0);
    } else {
        launch_failed(message, start.failed ? start.failed : 125, &start.error);
    }
    close_all((int[]){ master, start.terminal }, 2);
    return pid;
}
