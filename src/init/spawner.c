/* The spawner: forks commands inside the Landlock domain that it entered once. */

#include "init/init.h"
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* The kernel's own bound on arguments and environment is a quarter of the stack limit, 6 MiB at
 * most for one exec; more words than that can never be started. */
enum { WORDS_MAX = 8 << 20 };

static void say_failed(int status, const struct error *error)
{
    struct message message = { .kind = MESSAGE_FAILED, .status = status, .error = *error };

    wire_send(PROTOCOL_SPAWN_FD, &message, NULL, 0);
}

/* Splits the next `count` strings off the words; NULL if there are fewer. */
static char **take_words(char **at, const char *end, uint32_t count)
{
    char **words = calloc((size_t)count + 1, sizeof *words);

    for (uint32_t i = 0; words && i < count; i++) {
        char *stop = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

        if (!stop) {
            free(words);
            return NULL;
        }
        words[i] = *at;
        *at = stop + 1;
    }
    return words;
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
    char **cwd = take_words(&words, end, 1);

    start->cwd = cwd ? cwd[0] : NULL;
    start->argv = take_words(&words, end, start->message.arguments);
    start->envp = take_words(&words, end, start->message.variables);
    if (!start->cwd || !start->argv || !start->argv[0] || !start->envp)
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

struct failure {
    int status;
    struct error error;
};

/* Forks the command and waits until it either runs (the pipe closes) or says why not. */
static pid_t fork_command(struct commands *commands, struct start *start, struct failure *failure)
{
    int pipe_fds[2];

    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        failure->status = 125;
        error_sys(&failure->error, "make a pipe");
        return -1;
    }
    start->error_pipe = pipe_fds[1];

    pid_t pid = fork();
    if (pid == 0) {
        /* By the child itself: from its first instruction on a command may kill us, and then PID 1
         * must know whose end to report. */
        commands_add(commands, getpid());
        command_become(start);
    }
    close(pipe_fds[1]);
    if (pid < 0) {
        failure->status = 125;
        error_sys(&failure->error, "fork a command");
    } else if (read(pipe_fds[0], failure, sizeof *failure) > 0) {
        waitpid(pid, NULL, 0);
        commands_remove(commands, pid);
        pid = -1;
    }
    close(pipe_fds[0]);
    return pid;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static pid_t start_command(struct commands *commands, struct start *start, int words, int *master,
                           struct failure *failure)
{
    if (read_words(start, words, &failure->error) < 0)
        return -1;
    if ((start->message.flags & START_TTY) && open_terminal(start, master, &failure->error) < 0)
        return -1;
    return fork_command(commands, start, failure);
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

static void handle_start(struct commands *commands, const struct message *message, const int *fds, size_t count)
{
    struct start start = { .message = *message, .stdio = { -1, -1, -1 }, .terminal = -1, .error_pipe = -1 };
    struct failure failure = { .status = 125 };
    bool terminal = message->flags & START_TTY;
    int master = -1;
    pid_t pid = -1;

    loosen(message);
    if (count != (terminal ? 1U : 4U)) {
        error_set(&failure.error, ERROR_INVALID, "a command was asked for with %zu descriptors", count);
    } else {
        if (!terminal)
            memcpy(start.stdio, fds + 1, sizeof start.stdio);
        pid = start_command(commands, &start, fds[0], &master, &failure);
    }
    if (pid > 0) {
        struct message started = { .kind = MESSAGE_STARTED, .pid = pid };

        wire_send(PROTOCOL_SPAWN_FD, &started, &master, terminal ? 1 : 0);
    } else {
        say_failed(failure.status, &failure.error);
    }
    free(start.argv);
    free(start.envp);
    close_all((int[]){ master, start.terminal }, 2);
}

static void reap(struct commands *commands)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        if (commands_remove(commands, pid))
            report_exit(PROTOCOL_SPAWN_FD, pid, status, &usage);
}

static void handle_message(struct commands *commands)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error err;
    size_t count = 0;

    if (wire_receive(PROTOCOL_SPAWN_FD, &message, fds, &count, &err) != WIRE_MESSAGE)
        _exit(0); /* the keeper is gone; PID 1 sees the same */
    if (message.kind == MESSAGE_START)
        handle_start(commands, &message, fds, count);
    else if (message.kind == MESSAGE_SIGNAL && message.pid > 1)
        kill(-message.pid, message.signal);
    close_all(fds, count);
}

/* From inside the domain PID 1, which is outside, cannot be signalled; older kernels do not scope
 * signals, there nothing may be made in the root unless it is writable as a whole. */
static bool domain_holds(void)
{
    enum { SCOPES = 6 };
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U);

    if (abi >= SCOPES)
        return kill(1, 0) < 0 && errno == EPERM;
    if (mkdir("/.cove", 0700) < 0)
        return true;
    rmdir("/.cove");
    return access("/usr", W_OK) == 0;
}

static void enter_domain(void)
{
    struct error err;

    if (fcntl(PROTOCOL_LANDLOCK_FD, F_GETFD) < 0)
        return; /* this kernel has no Landlock: the plan said so */
    if (syscall(SYS_landlock_restrict_self, PROTOCOL_LANDLOCK_FD, 0) < 0) {
        error_sys(&err, "enter the Landlock domain");
        say_failed(125, &err);
        _exit(125);
    }
    close(PROTOCOL_LANDLOCK_FD);
    if (!domain_holds()) {
        error_set(&err, ERROR_REFUSED, "read back: the Landlock domain does not hold");
        say_failed(125, &err);
        _exit(125);
    }
}

void spawner_run(struct commands *commands)
{
    sigset_t child;

    prctl(PR_SET_NAME, "cove-spawner");
    enter_domain();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);

    int signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);

    for (;;) {
        struct pollfd events[] = { { .fd = PROTOCOL_SPAWN_FD, .events = POLLIN },
                                   { .fd = signals, .events = POLLIN } };
        struct signalfd_siginfo info;

        if (poll(events, 2, -1) < 0)
            continue;
        if (events[1].revents) {
            while (read(signals, &info, sizeof info) > 0)
                continue;
            reap(commands);
        }
        if (events[0].revents)
            handle_message(commands);
    }
}
