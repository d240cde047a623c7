#include "keeper/keeper.h"

#include "base/array.h"
#include "base/own.h"
#include "box/box.h"
#include "fake_init.h"
#include "init/protocol.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct result result;
static struct error error;

static void close_box(struct box *box)
{
    if (box->pid > 0) {
        kill(box->pid, SIGKILL);
        waitpid(box->pid, NULL, 0);
    }
    close(box->pidfd);
    close(box->init_fd);
}

/* Runs `script` in a shell; `with` may set more than that. */
static int run(enum fake fake, const char *script, struct keeper_run with)
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    const char *const envp[] = { "PATH=/usr/bin:/bin", "TERM=xterm", NULL };
    struct box box = BOX_NONE;

    with.argv = argv;
    with.envp = envp;
    with.cwd = "/";
    with.pipe_owner = geteuid();
    memset(&error, 0, sizeof error);
    fake_start(fake, &box);
    int done = keeper_run(&box, &with, &result, &error);

    close_box(&box);
    return done;
}

static struct keeper_run plain(void)
{
    return (struct keeper_run){ .in = -1, .out = STDERR_FILENO, .err = STDERR_FILENO };
}

static size_t open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void exit_codes_are_the_commands_own(void **state)
{
    (void)state;
    assert_int_equal(run(FAKE_HONEST, "exit 0", plain()), 0);
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(result.reason, RESULT_EXITED);
    assert_true(result.usage.peak_kib > 100);
    assert_int_equal(run(FAKE_HONEST, "exit 123", plain()), 0);
    assert_int_equal(result.exit_code, 123);
}

static void a_signal_is_128_and_its_number(void **state)
{
    (void)state;
    assert_int_equal(run(FAKE_HONEST, "kill -KILL $$", plain()), 0);
    assert_int_equal(result.exit_code, 137);
    assert_int_equal(result.reason, RESULT_SIGNALED);
    assert_int_equal(result.signal, SIGKILL);
}

static void a_command_that_is_not_there_is_127(void **state)
{
    (void)state;
    assert_int_equal(run(FAKE_NOT_FOUND, "", plain()), 0);
    assert_int_equal(result.exit_code, 127);
    assert_int_equal(result.reason, RESULT_NOT_STARTED);
    assert_contains(result.error.text, "run it");
}

static void a_failed_setup_is_125_with_its_reason(void **state)
{
    (void)state;
    assert_int_equal(run(FAKE_SETUP_FAILED, "", plain()), -1);
    assert_int_equal(result.exit_code, 125);
    assert_int_equal(error.kind, ERROR_UNSUPPORTED);
    assert_contains(error.text, "mount something");
}

static void the_death_of_pid_1_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(run(FAKE_DIES, "sleep 10", plain()), -1);
    assert_int_equal(result.exit_code, 125);
    assert_contains(error.text, "exited with 3");
}

static void a_deaf_pid_1_is_killed(void **state)
{
    double start = seconds();

    (void)state;
    assert_int_equal(run(FAKE_DEAF, "exit 4", plain()), 0);
    assert_int_equal(result.exit_code, 4);
    assert_true(seconds() - start < 5);
}

static void violations_end_the_sandbox_and_leave_nothing(void **state)
{
    size_t before = open_descriptors();

    (void)state;
    for (int fake = FAKE_UNKNOWN_KIND; fake < FAKE_NO_TERMINAL; fake++) {
        if (run((enum fake)fake, "sleep 10", plain()) != -1 || result.exit_code != 125)
            fail_msg("violation %d was accepted: %s", fake, error.text);
        assert_contains(error.text, "sandbox was ended");
    }
    assert_int_equal(open_descriptors(), before);
}

static int memory_file(const char *content)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_true(write(fd, content, strlen(content)) >= 0);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void assert_holds(int fd, const char *content)
{
    char got[4096];
    ssize_t len = pread(fd, got, sizeof got - 1, 0);

    assert_true(len >= 0);
    got[len] = '\0';
    assert_string_equal(got, content);
}

static void streams_are_passed_on(void **state)
{
    autoclose int in = memory_file("the input\n");
    autoclose int out = memory_file(""), err = memory_file("");

    (void)state;
    assert_int_equal(run(FAKE_HONEST, "cat; echo problem >&2; echo end > /dev/stdout",
                         (struct keeper_run){ .in = in, .out = out, .err = err }),
                     0);
    assert_int_equal(result.exit_code, 0);
    assert_holds(out, "the input\nend\n");
    assert_holds(err, "problem\n");
    close(err);
}

static void the_commands_descriptors_are_ours_not_the_hosts(void **state)
{
    autoclose int out = memory_file("");
    autoclose int null = open("/dev/null", O_RDONLY);

    (void)state;
    run(FAKE_HONEST, "for fd in 0 1 2; do readlink /proc/$$/fd/$fd | cut -d: -f1; done; ls /proc/$$/fd",
        (struct keeper_run){ .in = null, .out = out, .err = STDERR_FILENO });
    assert_holds(out, "pipe\npipe\npipe\n0\n1\n2\n"); /* no pipeline: a shell holds its ends for a moment */
}

static void closed_descriptors_are_no_obstacle(void **state)
{
    (void)state;
    assert_int_equal(run(FAKE_HONEST, "cat; exit 6", (struct keeper_run){ .in = -1, .out = -1, .err = -1 }), 0);
    assert_int_equal(result.exit_code, 6);
}

static void what_stays_in_the_background_does_not_delay_the_end(void **state)
{
    autoclose int out = memory_file("");
    double start = seconds();

    (void)state;
    assert_int_equal(run(FAKE_HONEST, "sleep 60 & echo said; exit 2",
                         (struct keeper_run){ .in = -1, .out = out, .err = -1 }),
                     0);
    assert_int_equal(result.exit_code, 2);
    assert_holds(out, "said\n");
    assert_true(seconds() - start < 2);
}

static void lost_output_is_an_error(void **state)
{
    autoclose int full = open("/dev/full", O_WRONLY);

    (void)state;
    assert_int_equal(run(FAKE_HONEST, "echo much", (struct keeper_run){ .in = -1, .out = full, .err = -1 }), 0);
    assert_int_equal(result.exit_code, 125);
    assert_int_equal(result.reason, RESULT_OUTPUT_LOST);
    assert_contains(result.error.text, "No space left");
}

static void a_reader_that_leaves_ends_the_command_by_sigpipe(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(
        run(FAKE_HONEST, "exec cat /dev/zero", (struct keeper_run){ .in = -1, .out = ends[1], .err = -1 }), 0);
    assert_int_equal(result.exit_code, 128 + SIGPIPE);
    close(ends[1]);
}

static void a_timeout_is_124(void **state)
{
    struct keeper_run with = plain();

    (void)state;
    with.timeout_ms = 100;
    assert_int_equal(run(FAKE_HONEST, "sleep 60", with), 0);
    assert_int_equal(result.exit_code, 124);
    assert_int_equal(result.reason, RESULT_TIMED_OUT);
    assert_true(result.timed_out);
    assert_in_range(result.wall_us, 100000, 1500000);
    assert_int_equal(run(FAKE_HONEST, "trap 'exit 0' TERM; sleep 60 & wait", with), 0);
    assert_int_equal(result.exit_code, 124);
}

static void a_timeout_kills_what_ignores_it(void **state)
{
    struct keeper_run with = plain();

    (void)state;
    with.timeout_ms = 50;
    assert_int_equal(run(FAKE_HONEST, "trap '' TERM; while :; do sleep 1; done", with), 0);
    assert_int_equal(result.exit_code, 124);
    assert_in_range(result.wall_us, 2000000, 3500000);
}

/* Sends signals to this process, one every 200 ms. */
static pid_t fork_sender(const int *numbers, size_t count)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (size_t i = 0; i < count; i++) {
            usleep(200000);
            kill(getppid(), numbers[i]);
        }
        _exit(0);
    }
    return pid;
}

static void signals_reach_the_command(void **state)
{
    static const struct {
        int number;
        const char *name;
    } cases[] = { { SIGINT, "INT" },   { SIGTERM, "TERM" }, { SIGHUP, "HUP" },    { SIGQUIT, "QUIT" },
                  { SIGUSR1, "USR1" }, { SIGUSR2, "USR2" }, { SIGWINCH, "WINCH" } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char script[100];

        snprintf(script, sizeof script, "trap 'exit 9' %s; sleep 10 & wait", cases[i].name);
        pid_t sender = fork_sender(&cases[i].number, 1);
        assert_int_equal(run(FAKE_HONEST, script, plain()), 0);
        waitpid(sender, NULL, 0);
        assert_int_equal(result.exit_code, 9);
    }
}

static void the_second_request_to_end_kills(void **state)
{
    static const int twice[] = { SIGINT, SIGTERM };

    (void)state;
    pid_t sender = fork_sender(twice, 2);
    assert_int_equal(run(FAKE_HONEST, "trap '' INT TERM; while :; do sleep 1; done", plain()), 0);
    waitpid(sender, NULL, 0);
    assert_int_equal(result.exit_code, 128 + SIGTERM);
    assert_int_equal(result.reason, RESULT_INTERRUPTED);
}

static void ignored_signals_stay_ignored(void **state)
{
    static const int number = SIGHUP;

    (void)state;
    signal(SIGHUP, SIG_IGN);
    pid_t sender = fork_sender(&number, 1);
    assert_int_equal(run(FAKE_HONEST, "sleep 0.5; exit 3", plain()), 0);
    signal(SIGHUP, SIG_DFL);
    waitpid(sender, NULL, 0);
    assert_int_equal(result.exit_code, 3);
}

static void job_control_stops_and_continues_the_command_with_us(void **state)
{
    double start = seconds();
    int status;

    (void)state;
    pid_t keeper = fork();
    if (keeper == 0) {
        setpgid(0, 0);
        run(FAKE_HONEST, "for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; exit 7", plain());
        _exit(result.exit_code);
    }
    usleep(300000);
    kill(keeper, SIGTSTP);
    assert_int_equal(waitpid(keeper, &status, WUNTRACED), keeper);
    assert_true(WIFSTOPPED(status));
    usleep(700000);
    kill(keeper, SIGCONT);
    assert_int_equal(waitpid(keeper, &status, 0), keeper);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_true(seconds() - start > 1.4); /* the command stood still meanwhile */
}

static void signals_are_as_before_afterwards(void **state)
{
    struct sigaction action;
    sigset_t before, after;

    (void)state;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, NULL, &before);
    run(FAKE_HONEST, "true", plain());
    sigprocmask(SIG_SETMASK, NULL, &after);
    assert_memory_equal(&before, &after, sizeof before);
    sigaction(SIGPIPE, NULL, &action);
    assert_ptr_equal(action.sa_handler, SIG_DFL);
}

static void nothing_stays_open(void **state)
{
    size_t before = open_descriptors();

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(run(FAKE_HONEST, "true", plain()), 0);
    assert_int_equal(open_descriptors(), before);
}

/* --- with a terminal --- */

struct screen {
    int host, terminal;
    struct termios before;
};

static struct screen open_screen(void)
{
    struct winsize size = { .ws_row = 33, .ws_col = 99 };
    struct screen screen = { 0 };

    assert_int_equal(openpty(&screen.host, &screen.terminal, NULL, NULL, &size), 0);
    fcntl(screen.host, F_SETFD, FD_CLOEXEC);
    fcntl(screen.terminal, F_SETFD, FD_CLOEXEC);
    tcgetattr(screen.terminal, &screen.before);
    screen.before.c_iflag |= IUTF8;
    tcsetattr(screen.terminal, TCSANOW, &screen.before);
    return screen;
}

static void close_screen(struct screen *screen, char *seen, size_t size)
{
    struct termios after = { 0 };

    /* The kernel carries bytes over from the other side on its own time. */
    struct pollfd more = { screen->host, POLLIN, 0 };
    size_t len = 0;

    while (len < size - 1 && poll(&more, 1, 200) > 0) {
        ssize_t got = read(screen->host, seen + len, size - 1 - len);

        if (got <= 0)
            break;
        len += (size_t)got;
    }
    seen[len] = '\0';
    tcgetattr(screen->terminal, &after);
    assert_memory_equal(&screen->before, &after, sizeof after);
    assert_int_equal(fcntl(screen->terminal, F_GETFL) & O_NONBLOCK, 0);
    close(screen->host);
    close(screen->terminal);
}

/* Types after a while, when the terminal is surely raw. */
static pid_t fork_typist(int host, const char *keys)
{
    pid_t pid = fork();

    if (pid == 0) {
        usleep(300000);
        _exit(write(host, keys, strlen(keys)) < 0);
    }
    return pid;
}

static struct keeper_run terminal_run(const struct screen *screen)
{
    return (struct keeper_run){ .tty = true, .in = screen->terminal, .out = screen->terminal, .err = -1 };
}

static void a_terminal_is_passed_through(void **state)
{
    struct screen screen = open_screen();
    char seen[4096];

    (void)state;
    pid_t typist = fork_typist(screen.host, "typed\r");
    assert_int_equal(run(FAKE_HONEST,
                         "stty size; printf 'a\\033]0;title\\007b\\n'; read x; echo got:$x; tty | cut -c1-8",
                         terminal_run(&screen)),
                     0);
    waitpid(typist, NULL, 0);
    close_screen(&screen, seen, sizeof seen);
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(seen, "33 99\r\nab\r\ntyped\r\ngot:typed\r\n/dev/pts\r\n");
}

static void keys_that_signal_are_bytes(void **state)
{
    struct screen screen = open_screen();
    char seen[4096];

    (void)state;
    pid_t typist = fork_typist(screen.host, "\003");
    assert_int_equal(run(FAKE_HONEST, "trap 'exit 8' INT; sleep 10", terminal_run(&screen)), 0);
    waitpid(typist, NULL, 0);
    close_screen(&screen, seen, sizeof seen);
    assert_int_equal(result.exit_code, 8);
}

static void a_resize_is_passed_on(void **state)
{
    static const int number = SIGWINCH;
    struct screen screen = open_screen();
    struct winsize size = { .ws_row = 12, .ws_col = 34 };
    char seen[4096];

    (void)state;
    ioctl(screen.host, TIOCSWINSZ, &size);
    pid_t sender = fork_sender(&number, 1);
    assert_int_equal(run(FAKE_HONEST, "trap 'stty size; exit 0' WINCH; stty size; sleep 10 & wait; wait",
                         terminal_run(&screen)),
                     0);
    waitpid(sender, NULL, 0);
    close_screen(&screen, seen, sizeof seen);
    assert_contains(seen, "12 34\r\n");
}

static void the_terminal_is_restored_after_every_end(void **state)
{
    static const int twice[] = { SIGTERM, SIGTERM };
    struct screen screen = open_screen();
    struct keeper_run with = terminal_run(&screen);
    char seen[4096];

    (void)state;
    with.timeout_ms = 700;
    run(FAKE_HONEST, "printf '\\033[?1049h\\033[?1003h'; sleep 60", with);
    assert_int_equal(result.exit_code, 124);
    close_screen(&screen, seen, sizeof seen);
    assert_string_equal(seen, "\033[?1049h\033[?1003h\033[?1049l\033[?1003l");

    screen = open_screen();
    pid_t sender = fork_sender(twice, 2);
    run(FAKE_HONEST, "trap '' TERM; while :; do sleep 1; done", terminal_run(&screen));
    waitpid(sender, NULL, 0);
    close_screen(&screen, seen, sizeof seen);
    assert_int_equal(result.exit_code, 128 + SIGTERM);

    screen = open_screen();
    run(FAKE_DIES, "sleep 10", terminal_run(&screen));
    close_screen(&screen, seen, sizeof seen);

    screen = open_screen();
    assert_int_equal(run(FAKE_NO_TERMINAL, "sleep 10", terminal_run(&screen)), -1);
    close_screen(&screen, seen, sizeof seen);
}

static void the_terminal_is_restored_when_the_keeper_is_killed(void **state)
{
    struct screen screen = open_screen();
    char seen[4096];

    (void)state;
    pid_t keeper = fork();
    if (keeper == 0) {
        run(FAKE_HONEST, "sleep 10", terminal_run(&screen));
        _exit(0);
    }
    usleep(400000);
    kill(keeper, SIGKILL);
    waitpid(keeper, NULL, 0);
    usleep(200000);
    close_screen(&screen, seen, sizeof seen);
}

static void answers_to_a_dead_program_are_not_typed(void **state)
{
    struct screen screen = open_screen();
    char seen[4096];
    int waiting = 0;

    (void)state;
    pid_t answer = fork();
    if (answer == 0) {
        while (read(screen.host, seen, 1) == 1 && *seen != 'n')
            ;
        _exit(write(screen.host, "\033[1;1R", 6) < 0);
    }
    run(FAKE_HONEST, "printf '\\033[6n'", terminal_run(&screen));
    waitpid(answer, NULL, 0);
    usleep(20000);
    struct termios raw = screen.before; /* only then is a part of a line counted */
    cfmakeraw(&raw);
    tcsetattr(screen.terminal, TCSANOW, &raw);
    ioctl(screen.terminal, FIONREAD, &waiting);
    tcsetattr(screen.terminal, TCSANOW, &screen.before);
    close_screen(&screen, seen, sizeof seen);
    assert_int_equal(waiting, 0);
}

static void much_output_through_a_terminal_arrives(void **state)
{
    struct screen screen = open_screen();
    char seen[4096];

    (void)state;
    pid_t reader = fork();
    if (reader == 0) {
        size_t lines = 0;
        ssize_t got;

        while (lines < 20000 && (got = read(screen.host, seen, sizeof seen)) > 0)
            for (ssize_t i = 0; i < got; i++)
                lines += seen[i] == '\n';
        _exit(lines == 20000 ? 0 : 1);
    }
    run(FAKE_HONEST, "seq 20000", terminal_run(&screen));
    int status;
    waitpid(reader, &status, 0);
    close_screen(&screen, seen, sizeof seen);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_are_the_commands_own),
        cmocka_unit_test(a_signal_is_128_and_its_number),
        cmocka_unit_test(a_command_that_is_not_there_is_127),
        cmocka_unit_test(a_failed_setup_is_125_with_its_reason),
        cmocka_unit_test(the_death_of_pid_1_is_an_error),
        cmocka_unit_test(a_deaf_pid_1_is_killed),
        cmocka_unit_test(violations_end_the_sandbox_and_leave_nothing),
        cmocka_unit_test(streams_are_passed_on),
        cmocka_unit_test(the_commands_descriptors_are_ours_not_the_hosts),
        cmocka_unit_test(closed_descriptors_are_no_obstacle),
        cmocka_unit_test(what_stays_in_the_background_does_not_delay_the_end),
        cmocka_unit_test(lost_output_is_an_error),
        cmocka_unit_test(a_reader_that_leaves_ends_the_command_by_sigpipe),
        cmocka_unit_test(a_timeout_is_124),
        cmocka_unit_test(a_timeout_kills_what_ignores_it),
        cmocka_unit_test(signals_reach_the_command),
        cmocka_unit_test(the_second_request_to_end_kills),
        cmocka_unit_test(ignored_signals_stay_ignored),
        cmocka_unit_test(job_control_stops_and_continues_the_command_with_us),
        cmocka_unit_test(signals_are_as_before_afterwards),
        cmocka_unit_test(nothing_stays_open),
        cmocka_unit_test(a_terminal_is_passed_through),
        cmocka_unit_test(keys_that_signal_are_bytes),
        cmocka_unit_test(a_resize_is_passed_on),
        cmocka_unit_test(the_terminal_is_restored_after_every_end),
        cmocka_unit_test(the_terminal_is_restored_when_the_keeper_is_killed),
        cmocka_unit_test(answers_to_a_dead_program_are_not_typed),
        cmocka_unit_test(much_output_through_a_terminal_arrives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
