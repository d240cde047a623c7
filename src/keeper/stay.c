/* The keeper of a sandbox that stays.
 *
 * Should: start commands for whoever connects, as many at once as are asked for, and pass on what they say;
 * keep the limits; end everything when it is told to, when PID 1 is gone or when it is killed itself. Must not:
 * believe what comes from inside; answer anybody but the sandbox's owner; wait anywhere but in the loop:
 * neither a command nor a client can keep another one waiting. */

#include "keeper/stay.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "box/box.h"
#include "box/host.h"
#include "box/init_program.h"
#include "box/plan.h"
#include "init/wire.h"
#include "keeper/guard.h"
#include "keeper/job_record.h"
#include "keeper/keep.h"
#include "keeper/record.h"
#include "keeper/stay_inner.h"
#include "store/store.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    VISITORS_MAX = 1024,
    JOBS_MAX = 512,   /* at a time */
    JOB_FDS = 13,     /* that one has at most */
    STOP_MS = 2000,   /* that commands have, to end by themselves, when the keeper is told to by a signal */
    SLIM_MS = 300,    /* after which nobody is taken to come again at once */
    READY_MS = 60000, /* a sandbox that does not set itself up is none */
};

/* --- checkpoints --- */

static void take_cleared(struct keeper *keeper)
{
    struct error err;
    int turned = checkpoints_turn(&keeper->checkpoints, keeper->turn.layer, keeper->turn.step, &err);

    keeper->turn.kind = 0;
    if (turned < 0)
        keeper_fail(keeper, &err);
    keeper->turned = (struct error){ 0 };
    if (turned != 0)
        keeper->turned = err;
    if (turned < 0 || !services_start(keeper))
        visitors_turned(keeper, turned == 0 ? NULL : &err);
}

/* --- services --- */

static void tell_ready(struct keeper *keeper, const struct error *failed)
{
    const struct stay *stay = keeper->stay;

    keeper->told = true;
    if (!stay->ready || stay->ready(stay->owner, failed))
        return;
    keeper->remove = true;
    keeper_end(keeper, 0);
}

void keeper_served(struct keeper *keeper, const struct error *failed)
{
    if (!keeper->told)
        tell_ready(keeper, failed);
    if (keeper->turned.kind != ERROR_NONE)
        failed = &keeper->turned;
    visitors_turned(keeper, failed);
    keeper->active = clock_us();
    visitors_release(keeper);
}

static bool may_make_checkpoints(const struct keeper *keeper)
{
    return keeper->phase == PHASE_READY && !keeper->paused && !keeper->pausing && !keeper->turn.kind &&
           !keeper->marks.asked && /* who waits for PID 1 hears no answer but its own */
           !midway_is_under_way(&keeper->checkpoints);
}

/* One that was made while others were answered is there, or is not. */
static void take_copied(void *owner, int made, const struct error *err)
{
    struct keeper *keeper = owner;

    if (made < 0)
        keeper_fail(keeper, err);
    visitors_copied(keeper, made == MIDWAY_MADE || made == MIDWAY_SAME ? NULL : err);
    visitors_release(keeper);
}

static void make_checkpoints(struct keeper *keeper)
{
    struct error err;

    if (may_make_checkpoints(keeper) && checkpoints_tend(&keeper->checkpoints, &err) < 0)
        keeper_fail(keeper, &err);
}

/* --- what the sandbox says --- */

/* When a command has ended, the limit that it has passed before anybody looked. */
static unsigned passed_by(struct keeper *keeper)
{
    return meter_killed(&keeper->meter) ? (unsigned)LIMIT_MEMORY : meter_look_at_disk(&keeper->meter);
}

/* Nobody is let in before the mounts were read back. */
static void take_mounted(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    const struct stay *stay = keeper->stay;
    const struct way_out way = { .network = &keeper->box->network,
                                 .rules = stay->rules,
                                 .reel = stay->reel,
                                 .trace = &keeper->trace,
                                 .registries = stay->registries,
                                 .dir = stay->dir->fd,
                                 .stays = stay->dir->id };
    struct error error;

    if (box_verify(keeper->box, message, fds, count, &error) < 0 ||
        outlet_begin(&keeper->outlet, &keeper->loop, &way, &error) < 0 ||
        checkpoints_open(&keeper->checkpoints, &error) < 0 || visitors_open(keeper, &error) < 0 ||
        guard_start(stay->box, stay->plan, stay->dir, stay->record, &keeper->verdict, &error) < 0) {
        keeper_fail(keeper, &error);
        return;
    }
    box_drop_orders(keeper->box);
    keeper->phase = PHASE_READY;
    keeper->dead_by = 0;
    keeper->began = keeper->active = clock_us();
    if (!stay->services || !stay->services->len)
        tell_ready(keeper, NULL);
    if (keeper->phase == PHASE_READY && checkpoints_begin(&keeper->checkpoints, &error) < 0)
        keeper_fail(keeper, &error);
    if (keeper->phase != PHASE_READY)
        return;
    marks_begin(keeper);
    (void)services_start(keeper);
}

static void take_early_failure(struct keeper *keeper, const struct message *message)
{
    struct error error = message->error;

    if (error.kind <= ERROR_NONE || error.kind > ERROR_SYSTEM)
        error.kind = ERROR_SYSTEM;
    keeper_fail(keeper, &error);
}

static void dispatch(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    bool mounting = keeper->phase == PHASE_MOUNTING;
    unsigned passed =
        message->kind == MESSAGE_EXITED && keeper->phase == PHASE_READY ? passed_by(keeper) : METER_NONE;

    if (passed != METER_NONE)
        keeper_limited(keeper, (enum limit_id)passed);
    else if (message->kind == MESSAGE_EMPTY && keeper->phase == PHASE_ENDING)
        keeper_over(keeper);
    else if (mounting && message->kind == MESSAGE_MOUNTED)
        take_mounted(keeper, message, fds, count);
    else if (mounting && message->kind == MESSAGE_FAILED && count == 0)
        take_early_failure(keeper, message);
    else if (message->kind == MESSAGE_CLEARED && keeper->turn.kind && keeper->phase == PHASE_READY)
        take_cleared(keeper);
    else if (message->kind == MESSAGE_PAUSED && keeper->pausing && keeper->phase == PHASE_READY)
        keeper_heard_paused(keeper, message->status);
    else if (message->kind == MESSAGE_MARKS && marks_heard(keeper, message, fds, count))
        return;
    else if (keeper->phase < PHASE_ENDING && (mounting || !job_heard(&keeper->jobs, message, fds, count)))
        keeper_violated(keeper, "it sent a message that has no place in our protocol");
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
    if (got != WIRE_MESSAGE) {
        keeper->init.fd = keeper->jobs.init_fd = -1; /* the death of PID 1 tells the rest */
        if (got < 0)
            keeper_fail(keeper, &error);
        return false;
    }
    dispatch(keeper, &message, fds, count);
    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
    return true;
}

static void init_ready(void *owner, short revents)
{
    (void)revents;
    (void)receive(owner);
}

static void death_ready(void *owner, short revents)
{
    struct keeper *keeper = owner;
    struct error error;

    (void)revents;
    while (keeper->init.fd >= 0 && receive(keeper))
        ;
    if (keeper->phase < PHASE_ENDING && meter_killed(&keeper->meter))
        keeper_limited(keeper, LIMIT_MEMORY);
    error_set(&error, ERROR_SYSTEM, "the sandbox ended by itself: its PID 1 is gone");
    keeper_fail(keeper, &error);
    keeper_over(keeper);
}

/* --- the loop --- */

/* Logging out or shutting down ends us gently; whatever else comes is ignored. */
static void signals_ready(void *owner, short revents)
{
    struct keeper *keeper = owner;
    struct signalfd_siginfo info;

    (void)revents;
    while (read(keeper->signals.fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM)
            keeper_end(keeper, STOP_MS);
}

static int watch_signals(struct keeper *keeper, struct error *err)
{
    static const int watched[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(watched); i++)
        sigaddset(&set, watched[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a bound on our files is an error, and no reason to end */
    keeper->signals =
        (struct loop_source){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, signals_ready, keeper };
    if (keeper->signals.fd < 0)
        return error_sys(err, "watch for signals");
    loop_add(&keeper->loop, &keeper->signals);
    return 0;
}

/* Nobody who asks for something may take the last descriptor: what PID 1 sends would not arrive. */
static void make_room(struct keeper *keeper)
{
    struct rlimit limit = { 0 };
    size_t most;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    most = limit.rlim_cur < 1 << 20 ? (size_t)limit.rlim_cur : 1 << 20;
    keeper->visitors_max = most / 8 < VISITORS_MAX ? most / 8 : VISITORS_MAX;
    keeper->jobs.most = most * 3 / 4 / JOB_FDS < JOBS_MAX ? most * 3 / 4 / JOB_FDS : JOBS_MAX;
}

static int begin(struct keeper *keeper, struct error *err)
{
    struct box *box = keeper->box;

    keeper->dead_by = clock_us() + READY_MS * 1000ULL;
    (void)fcntl(box->init_fd, F_SETFL, O_RDWR | O_NONBLOCK);
    meter_begin(&keeper->meter, &keeper->stay->plan->limits, box, keeper->stay->dir->fd);
    keeper->jobs = (struct jobs){ .loop = &keeper->loop,
                                  .init_fd = box->init_fd,
                                  .limits = &keeper->stay->plan->limits,
                                  .dir = keeper->stay->dir->fd,
                                  .trace = &keeper->trace,
                                  .nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC) };
    keeper->checkpoints = (struct checkpoints){ .stay = keeper->stay,
                                                .box = box,
                                                .jobs = &keeper->jobs,
                                                .meter = &keeper->meter,
                                                .later = LATER_NONE,
                                                .layers = -1,
                                                .making = MIDWAY_NONE,
                                                .copied = take_copied,
                                                .owner = keeper };
    if (keeper->jobs.nowhere < 0)
        return error_sys(err, "open /dev/null");
    make_room(keeper);
    services_begin(keeper);
    if (watch_signals(keeper, err) < 0 || jobs_record_begin(&keeper->jobs, keeper->stay->record, err) < 0)
        return -1;
    keeper->init = (struct loop_source){ box->init_fd, POLLIN, init_ready, keeper };
    keeper->death = (struct loop_source){ box->pidfd, POLLIN, death_ready, keeper };
    loop_add(&keeper->loop, &keeper->init);
    loop_add(&keeper->loop, &keeper->death);
    return 0;
}

/* --- what is done by itself, when its time is up or nobody needs it --- */

/* 0: never. */
static uint64_t rest_at(const struct keeper *keeper)
{
    const struct record *record = keeper->stay->record;
    uint64_t ttl = record->ttl_ms ? keeper->began + record->ttl_ms * 1000 : 0;
    uint64_t idle = record->idle_ms && !jobs_running(&keeper->jobs) && !services_under_way(keeper)
                        ? keeper->active + record->idle_ms * 1000
                        : 0;

    bool rests = (keeper->paused || keeper->pausing) && record->then && strcmp(record->then, "pause") == 0;

    if (keeper->phase != PHASE_READY || rests || keeper->turn.kind || midway_is_under_way(&keeper->checkpoints))
        return 0;
    return ttl && (!idle || ttl < idle) ? ttl : idle;
}

static void rest_if_due(struct keeper *keeper)
{
    const char *then = keeper->stay->record->then;
    uint64_t at = rest_at(keeper);
    struct error ignored;

    if (jobs_running(&keeper->jobs) || services_under_way(keeper))
        keeper->active = clock_us();
    if (!at || clock_us() < at)
        return;
    keeper->remove = then && strcmp(then, "remove") == 0;
    if (then && strcmp(then, "pause") == 0)
        (void)keeper_pause(keeper, &ignored);
    else
        keeper_end(keeper, STOP_MS);
}

/* When what starts and commands have needed is given back, to wait for days without it.  0: it was. */
static uint64_t slim_at(const struct keeper *keeper)
{
    bool busy = keeper->phase != PHASE_READY || jobs_running(&keeper->jobs) || services_under_way(keeper);

    return busy || keeper->slimmed >= keeper->active ? 0 : keeper->active + SLIM_MS * 1000ULL;
}

/* Who comes to rest has proved to stay: then others need no memory of their own for it. */
static void lend_program(struct keeper *keeper)
{
    const struct lent shared = init_lent();

    if (!keeper->slimmed)
        keeper->lent = lent_offer(keeper->stay->host->state, &shared);
}

static void slim_if_due(struct keeper *keeper)
{
    uint64_t at = slim_at(keeper);

    if (!at || clock_us() < at)
        return;
    lend_program(keeper);
    memory_give_back();
    keeper->slimmed = clock_us();
}

static int until(uint64_t at, uint64_t now)
{
    uint64_t ms = at <= now ? 0 : (at - now) / 1000 + 1;

    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int earlier(int a, int b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

static int patience(const struct keeper *keeper, int jobs)
{
    uint64_t now = clock_us();
    int next = jobs;

    /* Who was left in the background keeps growing when its command has ended. */
    if (keeper->phase == PHASE_READY && (keeper->jobs.first || meter_keeps(&keeper->meter)))
        next = earlier(next, meter_patience(&keeper->meter));
    if (may_make_checkpoints(keeper))
        next = earlier(next, checkpoints_patience(&keeper->checkpoints));
    next = earlier(next, counting_patience(&keeper->checkpoints.counting));
    if (keeper->dead_by)
        next = earlier(next, until(keeper->dead_by, now));
    if (keeper->door_at)
        next = earlier(next, until(keeper->door_at, now));
    if (rest_at(keeper))
        next = earlier(next, until(rest_at(keeper), now));
    if (slim_at(keeper))
        next = earlier(next, until(slim_at(keeper), now));
    return next;
}

static void keep_limits(struct keeper *keeper)
{
    unsigned passed = keeper->phase == PHASE_READY ? meter_look(&keeper->meter) : METER_NONE;

    if (passed != METER_NONE)
        keeper_limited(keeper, (enum limit_id)passed);
    if (!keeper->dead_by || clock_us() < keeper->dead_by || keeper->killed)
        return;
    if (keeper->phase == PHASE_MOUNTING)
        keeper_violated(keeper, "it did not set itself up in time");
    else
        keeper_kill(keeper);
}

static int watch(struct keeper *keeper, struct error *err)
{
    while (keeper->phase != PHASE_OVER) {
        int next = jobs_tend(&keeper->jobs); /* may tell services of an end */

        next = earlier(next, services_tend(keeper));
        make_checkpoints(keeper);
        counting_tend(&keeper->checkpoints.counting);
        next = earlier(next, marks_tend(keeper));
        if (loop_turn(&keeper->loop, patience(keeper, next), err) < 0)
            return -1;
        visitors_reopen(keeper);
        keep_limits(keeper);
        rest_if_due(keeper);
        slim_if_due(keeper);
    }
    return 0;
}

/* --- afterwards --- */

static void wait_for_death(const struct box *box)
{
    struct pollfd dead = { .fd = box->pidfd, .events = POLLIN };

    sys_pidfd_kill(box->pidfd, SIGKILL);
    (void)poll(&dead, 1, STAY_EMPTY_MS);
}

/* Overlays are volatile: that files are on the disk is our business. */
static void finish(struct keeper *keeper)
{
    const struct stay *stay = keeper->stay;
    struct result *result = &keeper->result;
    struct error why = result->error, ignored;
    bool was_ready = keeper->door.fd >= 0;

    visitors_shut(keeper);
    outlet_end(&keeper->outlet);
    requests_free(&keeper->outlet.requests);
    if (why.kind == ERROR_NONE)
        error_set(&why, ERROR_REFUSED, "the sandbox was stopped");
    services_stop(keeper);
    marks_end(keeper);
    if (was_ready && !keeper->told)
        tell_ready(keeper, &why);
    jobs_end(&keeper->jobs, result->reason == RESULT_EXITED ? RESULT_INTERRUPTED : result->reason,
             result->limit, &why);
    jobs_free(&keeper->jobs);
    checkpoints_settle(&keeper->checkpoints, !keeper->remove && !keeper->discard);
    if (was_ready)
        jobs_record_end(&keeper->jobs, stay->record, result);
    trace_close(&keeper->trace);
    checkpoints_end(&keeper->checkpoints);
    if (was_ready) {
        if (!keeper->remove && !keeper->discard)
            (void)syncfs(stay->dir->fd);
        if (keeper->remove)
            store_drop_record(stay->dir->fd);
        else
            (void)keep_stop(stay->dir->fd, stay->record, result, &ignored);
        guard_tell(&keeper->verdict, keeper->remove ? GUARD_REMOVE : GUARD_KEEP);
    }
    wait_for_death(keeper->box);
    visitors_release(keeper);
    visitors_dismiss(keeper);
    own_close(&keeper->lent);
    own_close(&keeper->jobs.nowhere);
    own_close(&keeper->signals.fd);
    loop_free(&keeper->loop);
}

int stay_run(const struct stay *stay, struct error *err)
{
    struct keeper keeper = { .stay = stay,
                             .box = stay->box,
                             .services.list = stay->services,
                             .marks.door.fd = -1,
                             .door.fd = -1,
                             .trace = TRACE_NONE,
                             .checkpoints = CHECKPOINTS_NONE,
                             .outlet = OUTLET_NONE,
                             .lent = -1,
                             .signals.fd = -1,
                             .jobs.nowhere = -1,
                             .verdict = -1 };
    int result = begin(&keeper, err);

    if (result == 0)
        result = watch(&keeper, err);
    if (result < 0)
        keeper_fail(&keeper, err);

    bool was_ready = keeper.door.fd >= 0;

    finish(&keeper);
    if (was_ready || result < 0)
        return result;
    *err = keeper.result.error;
    return -1;
}
