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
#include "base/text.h"
#include "box/box.h"
#include "init/wire.h"
#include "keeper/explain.h"
#include "keeper/front.h"
#include "keeper/meter.h"
#include "keeper/outlet.h"
#include "keeper/start.h"
#include "keeper/stop.h"
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
    PHASE_MOUNTING, /* the sandbox sets itself up, and makes the command ready */
    PHASE_STARTING, /* GO was sent */
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
    struct start_order order; /* until it is sent */
    struct front front;
    struct meter meter;
    uint64_t output_left;
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

/* From here on only output is passed on.  The result must already say why. */
static void enter_end(struct keeper *keeper)
{
    keeper->phase = PHASE_ENDING;
    keeper->empty_by = clock_us() + EMPTY_MS * 1000ULL;
    keeper->result->wall_us = clock_us() - keeper->started;
    stop_disarm(&keeper->stop);
    front_end_input(&keeper->front);
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

/* The limit is named to whoever reads the exit code, the report or just stderr. */
static void end_limited(struct keeper *keeper, enum limit_id limit)
{
    const struct limit_choice *choice = &keeper->meter.limits->items[limit];
    struct result *result = keeper->result;
    autotext struct text shown = TEXT_NONE;

    limit_show(limit, choice->max, &shown);
    result->reason = RESULT_LIMIT;
    result->limit = limit;
    result->reached |= 1U << limit;
    result->exit_code = EXIT_LIMIT;
    error_set(&result->error, ERROR_REFUSED, "the limit %s (%s) was reached, and the run ended",
              text_string(&shown), limit_way_words(choice->way));
    end_sandbox(keeper);
}

static void end_violation(struct keeper *keeper, const char *what)
{
    struct error error;

    error_set(&error, ERROR_REFUSED, "the sandbox was ended because %s", what);
    end_failed(keeper, &error);
}

/* --- what the sandbox says --- */

/* What output may still have; NULL: as much as it likes. */
static uint64_t *budget(struct keeper *keeper)
{
    return keeper->meter.limits->items[LIMIT_OUTPUT].max ? &keeper->output_left : NULL;
}

static int open_outlet(struct keeper *keeper, struct error *err)
{
    const struct keeper_run *run = keeper->run;

    if (run->outlet)
        return outlet_begin(run->outlet, &keeper->loop,
                            &(struct way_out){ .network = &keeper->box->network,
                                               .rules = run->rules,
                                               .reel = run->reel,
                                               .registries = run->registries,
                                               .dir = run->layers },
                            err);
    network_close(&keeper->box->network);
    return 0;
}

/* The command is ready and waits for this. */
static void let_go(struct keeper *keeper)
{
    struct message message = { .kind = MESSAGE_GO };
    struct error error;

    keeper->phase = PHASE_STARTING;
    /* A PID 1 that is gone is told by its death. */
    if (wire_send(keeper->init.fd, &message, NULL, 0) < 0 && errno != EPIPE && errno != ECONNRESET) {
        error_sys(&error, "let the command begin");
        end_failed(keeper, &error);
    }
    box_drop_orders(keeper->box);
}

/* No command begins before the mounts were read back. */
static void take_mounted(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    struct error error;

    if (keeper->phase != PHASE_MOUNTING) {
        end_violation(keeper, "it set itself up twice");
        return;
    }
    if (box_verify(keeper->box, message, fds, count, &error) < 0 || open_outlet(keeper, &error) < 0) {
        end_failed(keeper, &error);
        return;
    }
    let_go(keeper);
}

static void take_started(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    const struct keeper_run *run = keeper->run;
    struct error error;

    (void)count;
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
    front_wake(&keeper->front);
    if (!run->tty)
        return;
    /* A pty's master, and nothing else, is what we draw the terminal from. */
    if (!front_is_master(fds[0]))
        end_violation(keeper, "its init sent something that is no terminal");
    else if (front_draw(&keeper->front, steal_fd(&fds[0]), -1, &error) < 0)
        end_failed(keeper, &error);
}

/* The text is shown to people by functions that make it inert; here only the numbers matter. */
static void take_failed(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    struct error error = message->error;

    (void)fds, (void)count;
    if (error.kind <= ERROR_NONE || error.kind > ERROR_SYSTEM)
        error.kind = ERROR_SYSTEM;
    end_failed(keeper, &error);
    if (message->status == EXIT_NOT_EXECUTABLE || message->status == EXIT_NOT_FOUND) {
        keeper->result->reason = RESULT_NOT_STARTED;
        keeper->result->exit_code = message->status;
    }
}

static void take_usage(struct result *result, const struct message *message)
{
    struct usage *usage = &result->usage;

    /* A second message, of everybody, is never less than the first, of the command. */
    if (message->user_us + message->system_us < usage->user_us + usage->system_us)
        return;
    usage->user_us = message->user_us;
    usage->system_us = message->system_us;
    usage->peak_kib = message->peak_kib;
    usage->written_bytes = message->written_bytes;
    usage->cpu_from = usage->memory_from = "rusage";
}

/* What the kernel kept by itself, and how it shows in the end of a command; and what nobody has seen yet. */
static bool ended_by(struct keeper *keeper, enum limit_id *limit)
{
    const struct limits *limits = keeper->meter.limits;
    unsigned passed = METER_NONE;

    if (meter_killed(&keeper->meter))
        passed = LIMIT_MEMORY;
    else if (limits->items[LIMIT_FILE_SIZE].max && keeper->result->signal == SIGXFSZ)
        passed = LIMIT_FILE_SIZE;
    else
        passed = meter_last_look(&keeper->meter);
    *limit = (enum limit_id)passed;
    return passed != METER_NONE;
}

static void take_exited(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    struct result *result = keeper->result;
    enum limit_id limit;

    (void)fds, (void)count;
    if (keeper->phase != PHASE_RUNNING || message->pid != keeper->pid ||
        !(WIFEXITED(message->status) || WIFSIGNALED(message->status))) {
        end_violation(keeper, "it reported the end of a command that was not asked for");
        return;
    }
    result_from_status(result, message->status);
    result->exited_at = clock_us();
    take_usage(result, message);
    if (result->timed_out) {
        result->reason = RESULT_TIMED_OUT;
        result->exit_code = EXIT_TIMED_OUT;
    }
    enter_end(keeper); /* PID 1 ends the rest by itself: START_LAST */
    if (ended_by(keeper, &limit))
        end_limited(keeper, limit);
    if (result->timed_out)
        stop_kill_after(&keeper->stop, GIVE_UP_MS, SIGTERM);
}

static void take_listener(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    (void)message, (void)count;
    if (!keeper->run->explain || keeper->listening) {
        end_violation(keeper, "it sent a listener that was not asked for");
        return;
    }
    keeper->listening = true;
    explain_listen(keeper->run->explain, &keeper->loop, steal_fd(&fds[0]));
}

/* Which messages may come, and with how many descriptors. */
enum { ANY_FDS = PROTOCOL_FDS_MAX + 1 };
static const struct expected {
    uint32_t kind;
    size_t fds, fds_tty;
    void (*take)(struct keeper *keeper, const struct message *message, int *fds, size_t count);
} expected[] = {
    { MESSAGE_MOUNTED, ANY_FDS, ANY_FDS, take_mounted },
    { MESSAGE_STARTED, 0, 1, take_started },
    { MESSAGE_FAILED, 0, 0, take_failed },
    { MESSAGE_EXITED, 0, 0, take_exited },
    { MESSAGE_LISTENER, 1, 1, take_listener },
};

static void dispatch(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        if (expected[i].kind == message->kind) {
            size_t fds_wanted = keeper->run->tty ? expected[i].fds_tty : expected[i].fds;

            if (fds_wanted != ANY_FDS && count != fds_wanted)
                break;
            expected[i].take(keeper, message, fds, count);
            return;
        }
    end_violation(keeper, "it sent a message that has no place in our protocol");
}

static void take_empty(struct keeper *keeper, const struct message *message)
{
    keeper->empty = true;
    keeper->result->empty_at = clock_us();
    take_usage(keeper->result, message);
    meter_end(&keeper->meter, keeper->result);
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
        take_empty(keeper, &message);
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
    if (keeper->phase != PHASE_ENDING && meter_killed(&keeper->meter)) {
        end_limited(keeper, LIMIT_MEMORY);
        meter_end(&keeper->meter, keeper->result);
    }
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

    front_resized(&keeper->front);
}

static void stop_pause(void *owner)
{
    struct keeper *keeper = owner;

    front_pause(&keeper->front);
}

static void stop_resume(void *owner)
{
    struct keeper *keeper = owner;

    front_resume(&keeper->front);
    if (keeper->run->tty)
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

static int begin(struct keeper *keeper, struct error *err)
{
    const struct keeper_run *run = keeper->run;
    struct box *box = keeper->box;
    struct start_pipes pipes;

    static const struct limits none;

    keeper->started = clock_us();
    meter_begin(&keeper->meter, run->limits ? run->limits : &none, box, run->layers);
    keeper->output_left = keeper->meter.limits->items[LIMIT_OUTPUT].max;
    (void)fcntl(box->init_fd, F_SETFL, O_RDWR | O_NONBLOCK);
    int prepared = start_prepare(run, &keeper->order, &pipes, err);

    keeper->order.message.flags |= START_LAST | START_HELD;

    /* Relays come first in the loop: when a command has ended, its output is through before its
     * exit is read, and the run is over in that same turn. */
    front_open(
        &keeper->front, &keeper->loop,
        &(struct front_plan){ run->in, run->out, run->err, run->tty, run->raw_terminal, budget(keeper) });
    if (!run->tty)
        front_pipes(&keeper->front, pipes.in, pipes.out, pipes.err, true);
    keeper->init = (struct loop_source){ box->init_fd, POLLIN, init_ready, keeper };
    keeper->death = (struct loop_source){ box->pidfd, POLLIN, death_ready, keeper };
    loop_add(&keeper->loop, &keeper->init);
    loop_add(&keeper->loop, &keeper->death);
    if (prepared < 0 || start_send(box->init_fd, &keeper->order, err) < 0)
        return -1;
    return stop_begin(&keeper->stop, &keeper->loop, &stop_calls, keeper,
                      &(struct stop_plan){ .tty = run->tty, .timeout_ms = run->timeout_ms }, err);
}

static bool is_quiet(const struct keeper *keeper)
{
    return keeper->empty || keeper->dead;
}

static bool over(struct keeper *keeper)
{
    if (keeper->phase != PHASE_ENDING)
        return false;
    bool passed_on = front_is_over(&keeper->front, keeper->drained);

    return (passed_on || keeper->give_up) && is_quiet(keeper);
}

/* How long to wait for something to happen; -1: as long as it takes. */
static int patience(const struct keeper *keeper)
{
    uint64_t now = clock_us();

    if (is_quiet(keeper))
        return DRAIN_MS;
    if (keeper->phase == PHASE_RUNNING)
        return meter_patience(&keeper->meter);
    if (keeper->phase != PHASE_ENDING || keeper->killed)
        return -1;
    return now >= keeper->empty_by ? 0 : (int)((keeper->empty_by - now) / 1000 + 1);
}

static void judge_usage(struct keeper *keeper)
{
    unsigned passed = meter_look(&keeper->meter);

    if (keeper->front.out.spent || keeper->front.err.spent)
        passed = LIMIT_OUTPUT;
    if (passed != METER_NONE)
        end_limited(keeper, (enum limit_id)passed);
}

static int watch(struct keeper *keeper, struct error *err)
{
    while (!over(keeper)) {
        int happened = loop_turn(&keeper->loop, patience(keeper), err);

        if (happened < 0)
            return -1;
        if (keeper->phase == PHASE_RUNNING)
            judge_usage(keeper);
        if (keeper->phase == PHASE_ENDING && !is_quiet(keeper) && !keeper->killed &&
            clock_us() >= keeper->empty_by) {
            sys_pidfd_kill(keeper->box->pidfd, SIGKILL);
            keeper->killed = true;
        }
        keeper->drained = happened == 0 && is_quiet(keeper);
    }
    return 0;
}

/* Also what was still in a pipe when the command had ended. */
static void judge_budget(struct keeper *keeper)
{
    enum result_reason reason = keeper->result->reason;

    if ((keeper->front.out.spent || keeper->front.err.spent) &&
        (reason == RESULT_EXITED || reason == RESULT_SIGNALED))
        end_limited(keeper, LIMIT_OUTPUT);
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

    judge_budget(keeper);
    judge_output(keeper, &keeper->front.out, "standard output");
    judge_output(keeper, &keeper->front.err, "standard error");
    start_drop(&keeper->order);
    front_close(&keeper->front);
    keeper->result->midline = keeper->front.midline;
    stop_end(&keeper->stop);
    if (keeper->run->explain)
        explain_unlisten(keeper->run->explain);
    if (keeper->run->outlet)
        outlet_end(keeper->run->outlet);
    loop_free(&keeper->loop);
    if (keeper->dead && waitid(P_PIDFD, (id_t)box->pidfd, NULL, WEXITED) == 0)
        box->pid = 0;
}

int keeper_run(struct box *box, const struct keeper_run *run, struct result *result, struct error *err)
{
    struct keeper keeper = {
        .box = box,
        .run = run,
        .result = result,
        .front = FRONT_NONE,
        .order = START_ORDER_NONE,
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
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* The lowest free number is `fd`, because the ones below are in use by now. */
        int opened = open("/dev/null", O_RDWR);

        if (opened != fd)
            return error_sys(err, "open /dev/null for a closed standard descriptor");
    }
    return 0;
}
