#include "keeper/terminal.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a crash handler needs to reach; one process draws on one terminal. */
static struct terminal *volatile active;

static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

/* tcsetattr() is safe in a handler.  SA_RESETHAND made the second raise() deadly. */
static void crash(int number)
{
    struct terminal *terminal = active;

    if (terminal && terminal->raw)
        tcsetattr(terminal->fd, TCSANOW, &terminal->saved);
    raise(number);
}

static void catch_crashes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(crashes); i++) {
        struct sigaction old, action = { .sa_handler = crash, .sa_flags = (int)SA_RESETHAND | SA_NODEFER };

        /* A sanitizer's or debugger's own handler stays. */
        if (sigaction(crashes[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(crashes[i], &action, NULL);
    }
}

static void set_raw(const struct terminal *terminal)
{
    struct termios raw = terminal->saved;

    cfmakeraw(&raw);
    tcsetattr(terminal->fd, TCSANOW, &raw);
}

static void set_saved(const struct terminal *terminal)
{
    sigset_t tty_output, old;

    /* Also from the background: whoever is in front now must not be left with raw keys. */
    sigemptyset(&tty_output);
    sigaddset(&tty_output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &tty_output, &old);
    tcsetattr(terminal->fd, TCSANOW, &terminal->saved);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The guard: no signal of the terminal reaches it, and it holds nothing but the terminal and a
 * pipe.  (With our sockets in its hands the sandbox would not notice our death.) */
_Noreturn static void stand_by(const struct terminal *terminal, int pipe)
{
    static const char tame[] = "\033[?1000l\033[?1002l\033[?1003l\033[?1004l\033[?1006l\033[?2004l\033[?25h";
    sigset_t all;
    char told;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "cove-terminal");
    if (dup2(terminal->fd, 0) < 0 || dup2(pipe, 1) < 0)
        _exit(1);
    close_range(2, UINT_MAX, 0);
    while (read(1, &told, 1) < 0 && errno == EINTR)
        ;
    if (told != 'k') {
        tcsetattr(0, TCSANOW, &terminal->saved);
        (void)!write(0, tame, sizeof tame - 1);
    }
    _exit(0);
}

/* Best effort: without it only a SIGKILL of the keeper leaves the terminal raw. */
static void start_guard(struct terminal *terminal)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        stand_by(terminal, ends[0]);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return;
    }
    terminal->guard = pid;
    terminal->guard_fd = ends[1];
}

static void stop_guard(struct terminal *terminal)
{
    if (terminal->guard_fd < 0)
        return;
    (void)!write(terminal->guard_fd, "k", 1);
    close(terminal->guard_fd);
    while (waitpid(terminal->guard, NULL, 0) < 0 && errno == EINTR)
        ;
    terminal->guard_fd = -1;
    terminal->guard = -1;
}

int terminal_raw(struct terminal *terminal, int fd, struct error *err)
{
    if (tcgetattr(fd, &terminal->saved) < 0)
        return error_sys(err, "read the settings of the terminal");
    terminal->fd = fd;
    start_guard(terminal);
    active = terminal;
    catch_crashes();
    terminal->raw = true;
    set_raw(terminal);
    return 0;
}

void terminal_discard_answers(const struct terminal *terminal)
{
    enum { ANSWER_MS = 50 };
    struct pollfd answer = { terminal->fd, POLLIN, 0 };

    if (terminal->fd >= 0 && poll(&answer, 1, ANSWER_MS) > 0)
        tcflush(terminal->fd, TCIFLUSH);
}

void terminal_restore(struct terminal *terminal)
{
    if (terminal->fd < 0)
        return;
    if (terminal->raw)
        set_saved(terminal);
    terminal->raw = false;
    active = NULL;
    stop_guard(terminal);
    terminal->fd = -1;
}

void terminal_pause(struct terminal *terminal)
{
    if (terminal->fd >= 0 && terminal->raw)
        set_saved(terminal);
    terminal->raw = false;
}

void terminal_resume(struct terminal *terminal)
{
    if (terminal->fd < 0 || terminal->raw)
        return;
    terminal->raw = true;
    set_raw(terminal);
}

struct winsize terminal_size(int fd)
{
    struct winsize size = { 0 };

    if (fd >= 0)
        (void)ioctl(fd, TIOCGWINSZ, &size);
    return size;
}

void terminal_copy_size(int from, int to)
{
    struct winsize size;

    if (ioctl(from, TIOCGWINSZ, &size) == 0)
        (void)ioctl(to, TIOCSWINSZ, &size);
}

bool terminal_is_utf8(int fd)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    struct termios settings;

    if (tcgetattr(fd, &settings) == 0 && settings.c_iflag & IUTF8)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *value = getenv(variables[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}
