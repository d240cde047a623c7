/* The keeper of one running command.
 *
 * Should: pass bytes, signals and time between the host and the command; end the whole sandbox
 * when the command has ended, when time is up, or when the user says so twice; leave the terminal
 * and the user's descriptors as it found them.
 * Must not: believe anything that comes from inside (a message that is out of place ends the
 * sandbox), wait anywhere but in the loop, or hand one of the host's descriptors in.
 *
 * The end.  The command's exit is known first, by a message of PID 1.  Its pipes are at
 * their end by then unless something in the background holds them, PID 1 kills
 * and reaps all others (it is killed itself, and the kernel does it, when it does not answer in
 * time) and output is passed on until each pipe ends: nothing that was written is lost,
 * nothing that still runs can delay us for longer than its death takes.  When PID 1 has said that
 * it is alone the run is over; that the kernel then takes the namespaces apart nobody has to
 * wait for. */
#include "keeper/keeper.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/own.h"
#include "box/box.h"
#include "init/wire.h"
#include "keeper/explain.h"
#include "keeper/relay.h"
#include "keeper/start.h"
#include "keeper/stop.h"
#include "keeper/termfilter.h"
#include "keeper/terminal.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum phase {
    PHASE_STARTING, /* START was sent */
    PHASE_RUNNING,  /* the command runs as `pid` */
    PHASE_ENDING,   /* PID 1 was told to end or killed; output is passed on */
};

/* What waits for a slow reader of our output is given up this long after a kill. */
enum { GIVE_UP_MS = 2000 };

/* PID 1 is killed if it has not emptied the sandbox by then. */
enum { EMPTY_MS = 2000 };

/* Output that says nothing for this long after that, not even that it is at its end, is. */
enum { DRAIN_MS = 500 };

struct keeper {
    struct box *box;
    const struct keeper_run *run;
    struct result *result;
    struct loop loop;
    struct loop_source init, death;
    struct stop stop;
    struct relay in, out, err;
    struct terminal terminal;
    struct termfilter filter, filter_err; /* the second only where stderr is a terminal and no pty is given */
    int master;
    bool asked;        /* the command asked the terminal something ... */
    uint64_t asked_at; /* ... when this many bytes of input had come */
    enum phase phase;
    bool empty, dead; /* empty: no process but PID 1; dead: nor that */
    bool listening, killed, drained, give_up;
    uint64_t empty_by; /* once ending: PID 1 is killed then */
    int32_t pid;       /* as seen inside */
    uint64_t started;  /* monotonic, in microseconds */
};

static bool ask_to_end(struct keeper *keeper)
{
    struct message message = { .kind = MESSAGE_END };

    return keeper->pid && keeper->init.fd >= 0 && wire_send(keeper->init.fd, &message, NULL, 0) == 0;
}

/* Nobody hears of a command that nobody guarded. */
static void drop_held(struct relay *output)
{
    if (output->resting)
        relay_close(output);
}

/* From here on only output is passed on.  The result must already say why. */
static void enter_end(struct keeper *keeper)
{
    keeper->phase = PHASE_ENDING;
    keeper->empty_by = clock_us() + EMPTY_MS * 1000ULL;
    keeper->result->wall_us = clock_us() - keeper->started;
    stop_disarm(&keeper->stop);
    relay_close(&keeper->in);
    drop_held(&keeper->out);
    drop_held(&keeper->err);
}

static void end_sandbox(struct keeper *keeper)
{
    if (keeper->phase == PHASE_ENDING)
        return;
    enter_end(keeper);
    if (keeper->result->reason == RESULT_FAILED || !ask_to_end(keeper))
        sys_pidfd_kill(keeper->box->pidfd, SIGKILL);
}

static void end_failed(struct keeper *keeper, const struct error *error)
{
    if (keeper->phase == PHASE_ENDING)
        return;
    keeper->result->reason = RESULT_FAILED;
    keeper->result->exit_code = EXIT_OUR_ERROR;
    keeper->result->error = *error;
    end_sandbox(keeper);
}

static void end_violation(struct keeper *keeper, const char *what)
{
    struct error error;

    error_set(&error, ERROR_REFUSED, "the sandbox was ended because %s", what);
    end_failed(keeper, &error);
}

/* --- what the sandbox says --- */

/* A pty's master, and nothing else, is what we draw the terminal from. */
static int take_master(struct keeper *keeper, int *fd)
{
    int number;

    if (ioctl(*fd, TIOCGPTN, &number) < 0 || fcntl(*fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
        return -1;
    keeper->master = steal_fd(fd);
    return 0;
}

static size_t filter_change(void *owner, const unsigned char *from, size_t len, unsigned char *to)
{
    struct keeper *keeper = owner;
    unsigned asked = keeper->filter.asked;
    size_t changed = termfilter_run(&keeper->filter, from, len, to);

    if (keeper->filter.asked != asked) {
        keeper->asked = true;
        keeper->asked_at = keeper->in.bytes;
    }
    return changed;
}

static void start_terminal(struct keeper *keeper)
{
    const struct keeper_run *run = keeper->run;
    struct error error;

    if (isatty(run->in) && terminal_raw(&keeper->terminal, run->in, &error) < 0) {
        end_failed(keeper, &error);
        return;
    }
    /* The size may have changed since START was sent. */
    terminal_copy_size(isatty(run->out) ? run->out : run->in, keeper->master);
    termfilter_start(&keeper->filter, terminal_is_utf8(run->out));
    relay_open(
        &keeper->in, &keeper->loop,
        &(struct relay_plan){ .way = RELAY_IN, .host = run->in, .inside = keeper->master, .keep = true });
    relay_open(&keeper->out, &keeper->loop,
               &(struct relay_plan){ .way = RELAY_OUT,
                                     .host = run->out,
                                     .inside = keeper->master,
                                     .keep = true,
                                     .change = run->raw_terminal ? NULL : filter_change,
                                     .change_owner = keeper });
}

static void take_started(struct keeper *keeper, const struct message *message, int *fds)
{
    const struct keeper_run *run = keeper->run;
    struct error error;

    if (keeper->phase != PHASE_STARTING || message->pid <= 1) {
        end_violation(keeper, "its init reported a command that was not asked for");
        return;
    }
    keeper->phase = PHASE_RUNNING;
    keeper->pid = message->pid;
    keeper->result->ready_at = message->ready_us;
    keeper->result->started_at = clock_us();
    stop_started(&keeper->stop);
    if (run->started && run->started(run->owner, &error) < 0)
        end_failed(keeper, &error);
    if (keeper->phase != PHASE_RUNNING)
        return;
    relay_wake(&keeper->out);
    relay_wake(&keeper->err);
    if (!run->tty)
        return;
    if (take_master(keeper, &fds[0]) < 0)
        end_violation(keeper, "its init sent something that is no terminal");
    else
        start_terminal(keeper);
}

/* The text is shown to people by functions that make it inert; here only the numbers matter. */
static void take_failed(struct keeper *keeper, const struct message *message, int *fds)
{
    struct error error = message->error;

    (void)fds;
    if (error.kind <= ERROR_NONE || error.kind > ERROR_SYSTEM)
        error.kind = ERROR_SYSTEM;
    end_failed(keeper, &error);
    if (message->status == EXIT_NOT_EXECUTABLE || message->status == EXIT_NOT_FOUND) {
        keeper->result->reason = RESULT_NOT_STARTED;
        keeper->result->exit_code = message->status;
    }
}

static void take_exited(struct keeper *keeper, const struct message *message, int *fds)
{
    struct result *result = keeper->result;

    (void)fds;
    if (keeper->phase != PHASE_RUNNING || message->pid != keeper->pid ||
        !(WIFEXITED(message->status) || WIFSIGNALED(message->status))) {
        end_violation(keeper, "it reported the end of a command that was not asked for");
        return;
    }
    result_from_status(result, message->status);
    result->exited_at = clock_us();
    result->user_us = message->user_us;
    result->system_us = message->system_us;
    result->peak_kib = message->peak_kib;
    if (result->timed_out) {
        result->reason = RESULT_TIMED_OUT;
        result->exit_code = EXIT_TIMED_OUT;
    }
    enter_end(keeper); /* PID 1 ends the rest by itself: START_LAST */
    if (result->timed_out)
        stop_kill_after(&keeper->stop, GIVE_UP_MS, SIGTERM);
}

static void take_listener(struct keeper *keeper, const struct message *message, int *fds)
{
    (void)message;
    if (!keeper->run->explain || keeper->listening) {
        end_violation(keeper, "it sent a listener that was not asked for");
        return;
    }
    keeper->listening = true;
    explain_listen(keeper->run->explain, &keeper->loop, steal_fd(&fds[0]));
}

/* Which messages may come, and with how many descriptors. */
static const struct expected {
    uint32_t kind;
    size_t fds, fds_tty;
    void (*take)(struct keeper *keeper, const struct message *message, int *fds);
} expected[] = {
    { MESSAGE_STARTED, 0, 1, take_started },
    { MESSAGE_FAILED, 0, 0, take_failed },
    { MESSAGE_EXITED, 0, 0, take_exited },
    { MESSAGE_LISTENER, 1, 1, take_listener },
};

static void dispatch(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        if (expected[i].kind == message->kind) {
            if (count != (keeper->run->tty ? expected[i].fds_tty : expected[i].fds))
                break;
            expected[i].take(keeper, message, fds);
            return;
        }
    end_violation(keeper, "it sent a message that has no place in our protocol");
}

static void take_empty(struct keeper *keeper)
{
    keeper->empty = true;
    keeper->result->empty_at = clock_us();
}

/* One message; false when there is no more to get. */
static bool receive(struct keeper *keeper)
{
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error error;
    size_t count;
    int got = wire_receive(keeper->init.fd, &message, fds, &count, &error);

    if (got == WIRE_NOTHING)
        return false;
    if (got == WIRE_CLOSED) {
        keeper->init.fd = -1; /* the death of PID 1 tells the rest */
        return false;
    }
    if (got < 0) {
        keeper->init.fd = -1;
        error_while(&error, "the sandbox was ended");
        end_failed(keeper, &error);
        return false;
    }
    if (keeper->phase != PHASE_ENDING)
        dispatch(keeper, &message, fds, count);
    else if (message.kind == MESSAGE_EMPTY)
        take_empty(keeper);
    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
    return true;
}

static void init_ready(void *owner, short revents)
{
    struct keeper *keeper = owner;

    (void)revents;
    receive(keeper);
}

static void describe_death(struct keeper *keeper)
{
    siginfo_t how = { 0 };
    struct error error;

    if (waitid(P_PIDFD, (id_t)keeper->box->pidfd, &how, WEXITED | WNOWAIT) < 0)
        how.si_status = 0;
    if (how.si_code == CLD_EXITED)
        error_set(&error, ERROR_SYSTEM, "the sandbox ended before its command: PID 1 exited with %d",
                  how.si_status);
    else
        error_set(&error, ERROR_SYSTEM, "the sandbox ended before its command: PID 1 was killed by signal %d",
                  how.si_status);
    end_failed(keeper, &error);
}

static void death_ready(void *owner, short revents)
{
    struct keeper *keeper = owner;

    (void)revents;
    keeper->dead = true;
    keeper->death.fd = -1;
    /* What was said before the end still counts, and no more can come. */
    while (keeper->phase != PHASE_ENDING && keeper->init.fd >= 0 && receive(keeper))
        ;
    if (keeper->phase != PHASE_ENDING)
        describe_death(keeper);
}

/* --- what the user says: stop.c decides, this carries it out --- */

static void stop_forward(void *owner, int number)
{
    struct keeper *keeper = owner;
    struct message message = { .kind = MESSAGE_SIGNAL, .pid = keeper->pid, .signal = number };

    /* A PID 1 that does not read cannot keep us: what must end is ended by its pidfd. */
    if (keeper->phase == PHASE_RUNNING && keeper->init.fd >= 0)
        (void)wire_send(keeper->init.fd, &message, NULL, 0);
}

static void stop_kill(void *owner, int number)
{
    struct keeper *keeper = owner;
    struct result *result = keeper->result;

    if (keeper->phase == PHASE_ENDING) { /* the second time: do not even wait for our reader */
        keeper->give_up = true;
        return;
    }
    result->reason = result->timed_out ? RESULT_TIMED_OUT : RESULT_INTERRUPTED;
    result->exit_code = result->timed_out ? EXIT_TIMED_OUT : EXIT_SIGNALED + number;
    result->signal = number;
    end_sandbox(keeper);
    stop_kill_after(&keeper->stop, GIVE_UP_MS, number);
}

static void stop_timed_out(void *owner)
{
    struct keeper *keeper = owner;

    keeper->result->timed_out = true;
}

static void stop_resized(void *owner)
{
    struct keeper *keeper = owner;
    int from = isatty(keeper->run->out) ? keeper->run->out : keeper->run->in;

    if (keeper->master >= 0)
        terminal_copy_size(from, keeper->master);
}

static void stop_pause(void *owner)
{
    struct keeper *keeper = owner;

    terminal_pause(&keeper->terminal);
}

static void stop_resume(void *owner)
{
    struct keeper *keeper = owner;

    relay_wake(&keeper->in);
    if (!keeper->run->tty)
        return;
    terminal_resume(&keeper->terminal);
    stop_resized(keeper);
    stop_forward(keeper, SIGWINCH); /* so that it draws its screen again */
}

static const struct stop_calls stop_calls = {
    .forward = stop_forward,
    .kill = stop_kill,
    .timed_out = stop_timed_out,
    .resized = stop_resized,
    .pause = stop_pause,
    .resume = stop_resume,
};

/* --- the run --- */

static size_t plain_change(void *owner, const unsigned char *from, size_t len, unsigned char *to)
{
    return termfilter_run(owner, from, len, to);
}

/* Also without a pty what is written may end on the owner's terminal. */
static void open_output(struct keeper *keeper, struct relay *relay, struct termfilter *filter, int host,
                        int inside)
{
    bool screen = isatty(host) && !keeper->run->raw_terminal;

    if (screen)
        termfilter_start(filter, terminal_is_utf8(host));
    relay_open(relay, &keeper->loop,
               &(struct relay_plan){ .way = RELAY_OUT,
                                     .host = host,
                                     .inside = inside,
                                     .held = true,
                                     .change = screen ? plain_change : NULL,
                                     .change_owner = filter });
}

static int begin(struct keeper *keeper, struct error *err)
{
    const struct keeper_run *run = keeper->run;
    struct box *box = keeper->box;
    struct start_pipes pipes;

    keeper->started = clock_us();
    (void)fcntl(box->init_fd, F_SETFL, O_RDWR | O_NONBLOCK);
    int sent = start_send(box->init_fd, run, &pipes, err);

    /* Relays come first in the loop: when a command has ended, its output is through before its
     * exit is read, and the run is over in that same turn. */
    if (!run->tty) {
        relay_open(&keeper->in, &keeper->loop,
                   &(struct relay_plan){ .way = RELAY_IN, .host = run->in, .inside = pipes.in });
        open_output(keeper, &keeper->out, &keeper->filter, run->out, pipes.out);
        open_output(keeper, &keeper->err, &keeper->filter_err, run->err, pipes.err);
    }
    keeper->init = (struct loop_source){ box->init_fd, POLLIN, init_ready, keeper };
    keeper->death = (struct loop_source){ box->pidfd, POLLIN, death_ready, keeper };
    loop_add(&keeper->loop, &keeper->init);
    loop_add(&keeper->loop, &keeper->death);
    if (sent < 0)
        return -1;
    return stop_begin(&keeper->stop, &keeper->loop, &stop_calls, keeper,
                      &(struct stop_plan){ .tty = run->tty, .timeout_ms = run->timeout_ms }, err);
}

static bool is_quiet(const struct keeper *keeper)
{
    return keeper->empty || keeper->dead;
}

/* Pipe and terminal say when they are at their end.  When nobody is left to write, that is soon; if
 * it does not come (a descriptor may be on its way through a socket that the kernel still has to
 * collect), what gives nothing for a while is at its end too. */
static bool output_over(const struct keeper *keeper, struct relay *relay)
{
    if (keeper->drained && !relay->ended && relay->source.fd >= 0)
        relay_close(relay);
    return relay->ended;
}

static bool over(struct keeper *keeper)
{
    if (keeper->phase != PHASE_ENDING)
        return false;
    bool out = output_over(keeper, &keeper->out), err = output_over(keeper, &keeper->err);

    return ((out && err) || keeper->give_up) && is_quiet(keeper);
}

/* How long to wait for something to happen; -1: as long as it takes. */
static int patience(const struct keeper *keeper)
{
    uint64_t now = clock_us();

    if (is_quiet(keeper))
        return DRAIN_MS;
    if (keeper->phase != PHASE_ENDING || keeper->killed)
        return -1;
    return now >= keeper->empty_by ? 0 : (int)((keeper->empty_by - now) / 1000 + 1);
}

static int watch(struct keeper *keeper, struct error *err)
{
    while (!over(keeper)) {
        int happened = loop_turn(&keeper->loop, patience(keeper), err);

        if (happened < 0)
            return -1;
        if (keeper->phase == PHASE_ENDING && !is_quiet(keeper) && !keeper->killed &&
            clock_us() >= keeper->empty_by) {
            sys_pidfd_kill(keeper->box->pidfd, SIGKILL);
            keeper->killed = true;
        }
        keeper->drained = happened == 0 && is_quiet(keeper);
    }
    return 0;
}

/* Without the filter's last word a program could leave the terminal so that it types by itself. */
static void say_last_word(const struct keeper *keeper, struct termfilter *filter, int host)
{
    unsigned char last[TERMFILTER_END_MAX];
    struct pollfd writable = { host, POLLOUT, 0 };

    if (keeper->run->raw_terminal || !isatty(host))
        return;
    size_t len = termfilter_end(filter, last);

    if (len > 0 && poll(&writable, 1, 100) > 0)
        (void)!write(host, last, len);
}

static void leave_terminal(struct keeper *keeper)
{
    if (!keeper->run->tty) {
        say_last_word(keeper, &keeper->filter, keeper->run->out);
        say_last_word(keeper, &keeper->filter_err, keeper->run->err);
        return;
    }
    if (keeper->master < 0)
        return;
    say_last_word(keeper, &keeper->filter, keeper->run->out);
    if (keeper->asked && keeper->asked_at == keeper->in.bytes)
        terminal_discard_answers(&keeper->terminal);
    terminal_restore(&keeper->terminal);
    close(keeper->master);
}

static void judge_output(struct keeper *keeper, const struct relay *relay, const char *name)
{
    struct result *result = keeper->result;

    /* A reader that went away is its own business, and the command heard of it by SIGPIPE; so is a
     * terminal that hung up. */
    if (relay->failed == 0 || relay->failed == EPIPE || relay->failed == ECONNRESET || relay->failed == EIO ||
        result->reason == RESULT_FAILED)
        return;
    errno = relay->failed;
    error_sys(&result->error, "pass on the command's %s", name);
    result->reason = RESULT_OUTPUT_LOST;
    result->exit_code = EXIT_OUR_ERROR;
}

static void finish(struct keeper *keeper)
{
    struct box *box = keeper->box;

    judge_output(keeper, &keeper->out, "standard output");
    judge_output(keeper, &keeper->err, "standard error");
    relay_close(&keeper->in);
    relay_close(&keeper->out);
    relay_close(&keeper->err);
    leave_terminal(keeper);
    stop_end(&keeper->stop);
    if (keeper->run->explain)
        explain_unlisten(keeper->run->explain);
    if (keeper->dead && waitid(P_PIDFD, (id_t)box->pidfd, NULL, WEXITED) == 0)
        box->pid = 0;
}

int keeper_run(struct box *box, const struct keeper_run *run, struct result *result, struct error *err)
{
    struct keeper keeper = {
        .box = box,
        .run = run,
        .result = result,
        .in = RELAY_NONE,
        .out = RELAY_NONE,
        .err = RELAY_NONE,
        .terminal = TERMINAL_NONE,
        .master = -1,
    };

    memset(result, 0, sizeof *result);
    keeper.stop = STOP_NONE;
    if (begin(&keeper, err) < 0 || watch(&keeper, err) < 0) {
        end_failed(&keeper, err);
        keeper.give_up = true;
        (void)watch(&keeper, err); /* for the death of PID 1 */
    }
    finish(&keeper);
    if (result->reason != RESULT_FAILED)
        return 0;
    *err = result->error;
    return -1;
}

int keeper_stdio_guard(struct error *err)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number is `fd`, because the ones below are in use by now. */
        int opened = open("/dev/null", O_RDWR);

        if (opened != fd)
            return error_sys(err, "open /dev/null for a closed standard descriptor");
    }
    return 0;
}
