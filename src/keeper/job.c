/* Output.  A command writes into pipes of ours, or draws on a pty.  We read them and write to a second pair of
 * pipes, whose other ends whoever waits has got.  So what is written can be kept, nobody who goes away takes
 * the command along, and who comes later can take over; and a reader that is slow slows the command down, as it
 * would outside.  Input goes straight: who waits has our end of it.
 *
 * The end.  When a command has ended, what it wrote until then is passed on; then it is over for who waits,
 * although something that it left in the background may hold its pipes for ever, and write without pause.  What
 * that writes goes nowhere. */

#include "keeper/job.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "init/wire.h"
#include "keeper/control.h"
#include "keeper/front.h"
#include "keeper/job_record.h"
#include "keeper/keeper.h"
#include "limits/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    JOB_OTHERS = 1 << 30,     /* more than there will be steps */
    GRACE_US = 2000000,       /* from the SIGTERM of a time-out to the kill */
    HANG_UP_US = 10000000,    /* from SIGHUP to the kill */
    AGAIN_US = 1000,          /* to the next try, when PID 1 is busy */
    TERMINAL_LAST_US = 50000, /* what was drawn last may be on its way that long after the end */
};

/* --- output --- */

/* Nothing is changed; what passes is kept. */
static size_t keep(void *owner, const unsigned char *from, size_t len, unsigned char *to)
{
    struct job_stream *stream = owner;
    struct job *job = stream->job;

    memcpy(to, from, len);
    if ((!job->recorded && !job->copies) || (job->watch.output && job->phase < JOB_TOLD))
        output_add(&job->log, stream == &job->streams[0] ? OUTPUT_STDOUT : OUTPUT_STDERR, from, len);
    return len;
}

static void open_stream(struct job *job, struct job_stream *stream, int inside, bool stays)
{
    stream->job = job;

    uint64_t *budget = job->jobs->limits->items[LIMIT_OUTPUT].max ? &job->output_left : NULL;

    relay_open(&stream->relay, job->jobs->loop,
               &(struct relay_plan){ .way = RELAY_OUT,
                                     .host = stream->to >= 0 ? stream->to : job->jobs->nowhere,
                                     .inside = inside,
                                     .keep = stays,
                                     .budget = budget,
                                     .change = keep,
                                     .change_owner = stream });
}

static int make_stream(struct job *job, int number, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    job->hand[number] = ends[0];
    job->streams[number].to = ends[1];
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0)
        return error_sys(err, "set up a pipe");
    return 0;
}

/* With a terminal there is one. */
static int make_streams(struct job *job, struct error *err)
{
    if (make_stream(job, 0, err) < 0)
        return -1;
    return job->tty ? 0 : make_stream(job, 1, err);
}

static void close_stream(struct job_stream *stream)
{
    if (stream->to >= 0)
        close(steal_fd(&stream->to));
}

/* What comes from now on is heard by nobody. */
static void let_go(struct job *job)
{
    for (size_t i = 0; i < ARRAY_LEN(job->streams); i++) {
        struct job_stream *stream = &job->streams[i];

        if (!stream->relay.ended) {
            if (job->phase >= JOB_ENDED) /* so that it comes to its end, with no limit in its way */
                stream->relay.plan.budget = NULL;
            relay_turn(&stream->relay, job->jobs->nowhere);
        }
        close_stream(stream);
        if (job->hand[i] >= 0)
            close(steal_fd(&job->hand[i]));
    }
}

/* --- what is said to who waits --- */

static void tell(struct job *job, const struct control *message, const int *fds, size_t count)
{
    /* Who does not read what it asked for is gone. */
    if (job->waiter < 0 || control_send(job->waiter, message, fds, count) == 0)
        return;
    (void)shutdown(job->waiter, SHUT_RDWR); /* so that it does not wait */
    job->waiter = -1;
}

/* They have their own copies then, and an end of ours would keep the command's input open. */
static void hand_over(struct job *job)
{
    struct control started = CONTROL(CONTROL_STARTED);
    int in = job->in >= 0 ? job->in : job->jobs->nowhere; /* without input, what is typed goes nowhere */
    int fds[3] = { job->tty ? job->master : in, job->hand[0], job->hand[1] };

    started.step = job->step;
    if (job->step < JOB_OTHERS && !job->copies) {
        started.undone = job->jobs->undone;
        job->jobs->undone = 0;
    }
    started.flags = (job->tty ? CONTROL_TTY : 0U) | (job->detached ? CONTROL_DETACH : 0U);
    tell(job, &started, fds, job->hand[0] < 0 ? 0 : job->tty ? 2 : 3);
    for (size_t i = 0; i < ARRAY_LEN(job->hand); i++)
        if (job->hand[i] >= 0)
            close(steal_fd(&job->hand[i]));
    if (job->in >= 0 && !job->detached)
        close(steal_fd(&job->in));
}

static void tell_failed(struct job *job, int exit_code, const struct error *error)
{
    struct control failed = CONTROL(CONTROL_FAILED);

    failed.step = job->step;
    failed.exit_code = exit_code;
    failed.error = *error;
    tell(job, &failed, NULL, 0);
}

static void tell_ended(struct job *job)
{
    const struct result *result = &job->result;
    struct control ended = CONTROL(CONTROL_ENDED);

    ended.step = job->step;
    ended.exit_code = result->exit_code;
    ended.reason = (uint32_t)result->reason;
    ended.signal = result->signal;
    ended.wall_us = result->wall_us;
    ended.user_us = result->usage.user_us;
    ended.system_us = result->usage.system_us;
    ended.peak_kib = result->usage.peak_kib;
    ended.error = result->error;
    tell(job, &ended, NULL, 0);
}

static void be_over(struct job *job)
{
    job->phase = JOB_TOLD;
    if (job->watch.over)
        job->watch.over(job->watch.owner, job);
}

/* --- life --- */

static void job_free(struct job *job)
{
    struct loop *loop = job->jobs->loop;
    struct error ignored;

    for (size_t i = 0; i < ARRAY_LEN(job->streams); i++) {
        relay_close(&job->streams[i].relay);
        loop_remove(loop, &job->streams[i].relay.source);
        loop_remove(loop, &job->streams[i].relay.sink);
    }
    let_go(job);
    own_close(&job->in);
    own_close(&job->master);
    start_drop(&job->order);
    (void)output_close(&job->log, &ignored);
    words_free(&job->words);
    free(job);
}

void jobs_free(struct jobs *jobs)
{
    while (jobs->first) {
        struct job *job = jobs->first;

        jobs->first = job->next;
        job_free(job);
    }
    free(jobs->over.items);
    jobs->over.items = NULL;
    jobs->over.len = jobs->over.cap = 0;
}

static struct job *job_new(struct jobs *jobs, const struct control *request, struct words *words, int waiter)
{
    struct job *job = memory_zero(sizeof *job);

    *job = (struct job){ .jobs = jobs,
                         .tty = request->flags & CONTROL_TTY,
                         .detached = request->flags & CONTROL_DETACH,
                         .waiter = waiter,
                         .words = words_take(words),
                         .order = START_ORDER_NONE,
                         .in = -1,
                         .hand = { -1, -1 },
                         .streams = { { .relay = RELAY_NONE, .to = -1 }, { .relay = RELAY_NONE, .to = -1 } },
                         .master = -1,
                         .log = OUTPUT_NONE,
                         .output_left = jobs->limits->items[LIMIT_OUTPUT].max,
                         .began = clock_us() };
    if (request->timeout_ms)
        job->end_at = job->began + request->timeout_ms * 1000;
    return job;
}

static void set_size(struct message *message, const struct control *request)
{
    message->rows = request->rows;
    message->columns = request->columns;
    message->width = request->width;
    message->height = request->height;
}

static int prepare(struct job *job, const struct control *request, const struct job_as *as, struct error *err)
{
    struct keeper_run run = {
        .argv = (const char *const *)job->words.argv.items,
        .envp = (const char *const *)job->words.envp.items,
        .cwd = job->words.cwd,
        .uid = as->uid,
        .gid = as->gid,
        .flags = as->flags,
        .tty = job->tty,
        .limits = job->jobs->limits,
        .processes = as->processes,
        .program = as->program,
        .in = -1,
        .out = -1,
        .err = -1,
        .pipe_owner = as->pipe_owner,
    };
    struct start_pipes pipes;
    int prepared = start_prepare(&run, &job->order, &pipes, err);

    job->in = pipes.in;
    if (prepared == 0 && !job->detached && make_streams(job, err) < 0)
        prepared = -1;
    if (!job->tty) {
        open_stream(job, &job->streams[0], pipes.out, false);
        open_stream(job, &job->streams[1], pipes.err, false);
    }
    if (job->detached && !(request->flags & CONTROL_INPUT) && job->in >= 0)
        close(steal_fd(&job->in));
    if (job->end_at)
        job->order.message.flags |= START_WATCHED;
    set_size(&job->order.message, request);
    return prepared;
}

/* PID 1 may have more to do than it has taken in yet; then it is asked again. */
static void send_order(struct job *job)
{
    struct error error;

    if (!job->order.count || start_send(job->jobs->init_fd, &job->order, &error) == 0 ||
        error.sys_errno == EAGAIN)
        return;
    start_drop(&job->order);
    job->result.reason = RESULT_FAILED;
    job->result.exit_code = EXIT_OUR_ERROR;
    job_record_ended(job);
    tell_failed(job, EXIT_OUR_ERROR, &error);
    be_over(job);
}

int job_start(struct jobs *jobs, const struct control *request, struct words *words, const struct job_as *as,
              int waiter, struct error *err)
{
    size_t count = 0;

    for (const struct job *job = jobs->first; job; job = job->next)
        count++;
    if (count >= jobs->most)
        return error_set(err, ERROR_REFUSED,
                         "%zu commands run in this sandbox already, or have left something that does", count);

    struct job *job = job_new(jobs, request, words, waiter);

    job->watch = as->watch;
    job->copies = as->program >= 0;
    job->recorded = (job->copies && !(request->flags & CONTROL_STEP)) || as->watch.over;
    job->step = job->recorded ? JOB_OTHERS + ++jobs->others : ++jobs->steps;
    if (prepare(job, request, as, err) < 0 || (!job->recorded && job_record_started(job, as, err) < 0) ||
        (job->watch.output && output_open(jobs->dir, job->watch.output, &job->log, err) < 0)) {
        job_free(job);
        return -1;
    }
    words_free(&job->words); /* megabytes perhaps, and nobody needs them any more */
    job->order.message.job = job->step;
    job->next = jobs->first;
    jobs->first = job;
    send_order(job);
    return 0;
}

struct job *jobs_find(const struct jobs *jobs, uint64_t step)
{
    for (struct job *job = jobs->first; job; job = job->next)
        if (job->phase == JOB_RUNNING && (step == 0 ? !job->watch.over : job->step == step))
            return job;
    return NULL;
}

size_t jobs_running(const struct jobs *jobs)
{
    size_t count = 0;

    for (const struct job *job = jobs->first; job; job = job->next)
        count += job->phase <= JOB_RUNNING && !job->watch.over;
    return count;
}

/* --- what PID 1 says --- */

static bool take_started(struct job *job, const struct message *message, int *fds)
{
    if (job->phase != JOB_ASKED || message->pid <= 1 || (job->tty && !front_is_master(fds[0])))
        return false;
    job->phase = JOB_RUNNING;
    job->pid = message->pid;
    if (job->tty) {
        job->master = steal_fd(&fds[0]);
        open_stream(job, &job->streams[0], job->master, true);
    }
    hand_over(job);
    return true;
}

/* The text is shown to people by functions that make it inert; here only the numbers matter. */
static bool take_failed(struct job *job, const struct message *message, int *fds)
{
    bool ordinary = message->status == EXIT_NOT_EXECUTABLE || message->status == EXIT_NOT_FOUND;
    struct error error = message->error;

    (void)fds;
    if (job->phase != JOB_ASKED)
        return false;
    if (error.kind <= ERROR_NONE || error.kind > ERROR_SYSTEM)
        error.kind = ERROR_SYSTEM;
    job->result.reason = ordinary ? RESULT_NOT_STARTED : RESULT_FAILED;
    job->result.exit_code = ordinary ? message->status : EXIT_OUR_ERROR;
    job->result.error = error;
    job_record_ended(job);
    tell_failed(job, job->result.exit_code, &error);
    be_over(job);
    return true;
}

static bool take_exited(struct job *job, const struct message *message, int *fds)
{
    struct result *result = &job->result;

    (void)fds;
    if (job->phase != JOB_RUNNING || message->pid != job->pid ||
        !(WIFEXITED(message->status) || WIFSIGNALED(message->status)))
        return false;
    if (result->reason != RESULT_LIMIT)
        result_from_status(result, message->status);
    if (result->timed_out) {
        result->reason = RESULT_TIMED_OUT;
        result->exit_code = EXIT_TIMED_OUT;
    }
    result->usage = (struct usage){ .user_us = message->user_us,
                                    .system_us = message->system_us,
                                    .peak_kib = message->peak_kib,
                                    .written_bytes = message->written_bytes,
                                    .cpu_from = "rusage",
                                    .memory_from = "rusage" };
    job->ended_at = clock_us();
    result->wall_us = job->ended_at - job->began;
    job->end_at = job->kill_at = 0;
    job->phase = JOB_ENDED;
    return true;
}

static const struct expected {
    uint32_t kind;
    size_t fds, fds_tty;
    bool (*take)(struct job *job, const struct message *message, int *fds);
} expected[] = {
    { MESSAGE_STARTED, 0, 1, take_started },
    { MESSAGE_FAILED, 0, 0, take_failed },
    { MESSAGE_EXITED, 0, 0, take_exited },
};

bool job_heard(struct jobs *jobs, const struct message *message, int *fds, size_t count)
{
    struct job *job = jobs->first;

    while (job && job->step != message->job)
        job = job->next;
    for (size_t i = 0; job && i < ARRAY_LEN(expected); i++)
        if (expected[i].kind == message->kind)
            return count == (job->tty ? expected[i].fds_tty : expected[i].fds) &&
                   expected[i].take(job, message, fds);
    return false;
}

/* --- time --- */

static void sooner(uint64_t *next, uint64_t at)
{
    if (at && at < *next)
        *next = at;
}

/* PID 1 may have more to do than it has taken in yet; then it is told again. */
void job_signal(struct job *job, int number)
{
    struct message message = { .kind = MESSAGE_SIGNAL,
                               .pid = job->pid,
                               .signal = number,
                               .flags = job->result.timed_out ? START_WATCHED : 0 };

    if (job->phase == JOB_RUNNING && job->jobs->init_fd >= 0 &&
        wire_send(job->jobs->init_fd, &message, NULL, 0) < 0 && errno == EAGAIN)
        job->unsent |= 1ULL << (number - 1);
}

static void send_unsent(struct job *job, uint64_t now, uint64_t *next)
{
    uint64_t unsent = job->unsent;

    job->unsent = 0;
    for (int number = 1; unsent; number++, unsent >>= 1)
        if (unsent & 1)
            job_signal(job, number);
    if (job->unsent)
        sooner(next, now + AGAIN_US);
}

static void end_for_output(struct job *job)
{
    const struct limit_choice *choice = &job->jobs->limits->items[LIMIT_OUTPUT];
    struct result *result = &job->result;
    autotext struct text shown = TEXT_NONE;

    if (result->reason == RESULT_LIMIT)
        return;
    limit_show(LIMIT_OUTPUT, choice->max, &shown);
    result->reason = RESULT_LIMIT;
    result->limit = LIMIT_OUTPUT;
    result->exit_code = EXIT_LIMIT;
    error_set(&result->error, ERROR_REFUSED, "the limit %s (%s) was reached, and the command ended",
              text_string(&shown), limit_way_words(choice->way));
    job_signal(job, SIGKILL);
}

static void tend_running(struct job *job, uint64_t now, uint64_t *next)
{
    if (job->streams[0].relay.spent || job->streams[1].relay.spent)
        end_for_output(job);
    send_unsent(job, now, next);
    if (job->jobs->paused_at)
        return;
    if (job->kill_at && now >= job->kill_at) {
        job->kill_at = job->result.timed_out ? now + GRACE_US : 0; /* once more, if that did not help */
        job_signal(job, SIGKILL);
    }
    if (job->end_at && now >= job->end_at) {
        job->end_at = 0;
        job->result.timed_out = true;
        job_signal(job, SIGTERM);
        job_signal(job, SIGCONT); /* a stopped process does not see the other */
        job->kill_at = now + GRACE_US;
    }
    sooner(next, job->kill_at);
    sooner(next, job->end_at);
}

/* What is there now is the command's.  What comes behind it is not waited for: that may never end. */
static void mark_ends(struct job *job)
{
    for (size_t i = 0; i < ARRAY_LEN(job->streams); i++) {
        struct job_stream *stream = &job->streams[i];
        int waiting = 0;

        if (!stream->relay.ended)
            (void)ioctl(stream->relay.from, FIONREAD, &waiting);
        stream->until = stream->relay.bytes + stream->relay.len + (uint64_t)waiting;
    }
    job->marked = true;
}

static bool is_passed_on(const struct job_stream *stream)
{
    return stream->relay.ended || stream->relay.spent || stream->relay.bytes >= stream->until;
}

/* A pty brings the last words a moment after their writer is gone. */
static void tend_ended(struct job *job, uint64_t now, uint64_t *next)
{
    bool late = job->tty && !job->streams[0].relay.ended && now < job->ended_at + TERMINAL_LAST_US;

    if (late)
        sooner(next, job->ended_at + TERMINAL_LAST_US);
    else if (!job->marked)
        mark_ends(job);
    if (late || !is_passed_on(&job->streams[0]) || !is_passed_on(&job->streams[1]))
        return;
    job_record_ended(job);
    let_go(job);
    tell_ended(job);
    job->waiter = -1;
    be_over(job);
}

static bool is_done(const struct job *job)
{
    return job->phase == JOB_TOLD && job->streams[0].relay.ended && job->streams[1].relay.ended;
}

/* A stream that has ended by itself is at its end for who waits, too. */
static void tend(struct job *job, uint64_t now, uint64_t *next)
{
    for (size_t i = 0; i < ARRAY_LEN(job->streams); i++)
        if (job->phase != JOB_ASKED && job->streams[i].relay.ended)
            close_stream(&job->streams[i]);
    if (job->order.count) {
        send_order(job);
        sooner(next, now + AGAIN_US);
    }
    if (job->phase == JOB_RUNNING)
        tend_running(job, now, next);
    if (job->phase == JOB_ENDED)
        tend_ended(job, now, next);
}

int jobs_tend(struct jobs *jobs)
{
    uint64_t now = clock_us(), next = UINT64_MAX;

    for (struct job **at = &jobs->first; *at;) {
        struct job *job = *at;

        tend(job, now, &next);
        if (is_done(job)) {
            *at = job->next;
            job_free(job);
        } else {
            at = &job->next;
        }
    }
    return next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / 1000 + 1);
}

/* --- who waits --- */

int job_attach(struct job *job, int waiter, struct error *err)
{
    if (job->waiter >= 0)
        return error_set(err, ERROR_REFUSED, "somebody waits for step %u already", job->step);
    if (make_streams(job, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(job->streams); i++)
        if (!job->streams[i].relay.ended && job->streams[i].to >= 0)
            relay_turn(&job->streams[i].relay, job->streams[i].to);
    job->waiter = waiter;
    hand_over(job);
    return 0;
}

void jobs_leave(struct jobs *jobs, int waiter)
{
    for (struct job *job = jobs->first; job; job = job->next) {
        if (job->waiter != waiter)
            continue;
        job->waiter = -1;
        let_go(job);
        if (job->detached || job->phase >= JOB_ENDED)
            continue;
        job_signal(job, SIGHUP);
        job_signal(job, SIGCONT);
        job->kill_at = clock_us() + HANG_UP_US;
    }
}

void jobs_pause(struct jobs *jobs, bool paused)
{
    uint64_t now = clock_us(), us = paused ? 0 : now - jobs->paused_at;

    jobs->paused_at = paused ? now : 0;
    for (struct job *job = jobs->first; job; job = job->next) {
        job->end_at += job->end_at ? us : 0;
        job->kill_at += job->kill_at ? us : 0;
    }
}

void jobs_end(struct jobs *jobs, enum result_reason reason, enum limit_id limit, const struct error *why)
{
    for (struct job *job = jobs->first; job; job = job->next) {
        if (job->phase >= JOB_ENDED)
            continue;
        job->result.reason = reason;
        job->result.limit = limit;
        job->result.exit_code = reason == RESULT_LIMIT    ? EXIT_LIMIT
                                : reason == RESULT_FAILED ? EXIT_OUR_ERROR
                                                          : EXIT_SIGNALED + SIGKILL;
        job->result.signal = SIGKILL;
        job->result.error = *why;
        job->result.wall_us = clock_us() - job->began;
        for (size_t i = 0; i < ARRAY_LEN(job->streams); i++)
            relay_pump(&job->streams[i].relay);
        job_record_ended(job);
        let_go(job);
        tell_ended(job);
        be_over(job);
    }
}
