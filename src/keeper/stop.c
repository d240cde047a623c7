#include "keeper/stop.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    GRACE_MS = 10000,        /* from SIGTERM or SIGHUP to the kill */
    TIMEOUT_GRACE_MS = 2000, /* from the SIGTERM of a time-out to the kill */
};

enum {
    ENDS = 1 << 0,  /* asks for the end: the second one kills */
    GRACE = 1 << 1, /* whoever sends it expects us to be gone soon */
    PAUSES = 1 << 2,
    RESUMES = 1 << 3,
    RESIZES = 1 << 4, /* not forwarded with a terminal: its pty does that */
};

static const struct rule {
    int number;
    int forward; /* 0: none */
    unsigned does;
} rules[] = {
    { SIGINT, SIGINT, ENDS },
    { SIGTERM, SIGTERM, ENDS | GRACE },
    { SIGQUIT, SIGQUIT, ENDS },
    { SIGHUP, SIGHUP, GRACE },
    { SIGUSR1, SIGUSR1, 0 },
    { SIGUSR2, SIGUSR2, 0 },
    { SIGWINCH, SIGWINCH, RESIZES },
    { SIGCONT, SIGCONT, RESUMES },
    /* The command leads a session of its own, so its process group is orphaned and the kernel
     * would drop a SIGTSTP. */
    { SIGTSTP, SIGSTOP, PAUSES },
};

/* Boot time goes on while a laptop sleeps: a time-out is meant in the user's time. */
static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- time --- */

/* Now is rounded down, and a promise of so many milliseconds must not end early. */
static uint64_t in_ms(uint64_t ms)
{
    return now_ms() + ms + 1;
}

static void arm(struct stop *stop)
{
    uint64_t at = stop->kill_at && (!stop->timeout_at || stop->kill_at < stop->timeout_at) ? stop->kill_at
                                                                                           : stop->timeout_at;
    struct itimerspec when = { .it_value = { (time_t)(at / 1000), (long)(at % 1000) * 1000000 } };

    if (stop->timer.fd < 0 && at)
        stop->timer.fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (stop->timer.fd >= 0)
        timerfd_settime(stop->timer.fd, TFD_TIMER_ABSTIME, &when, NULL);
    /* Without a timer no promise of an end could be kept. */
    else if (at)
        stop->calls->kill(stop->owner, SIGKILL);
}

void stop_disarm(struct stop *stop)
{
    stop->timeout_at = stop->kill_at = 0;
    stop->requests = 1; /* one more is enough to end what is left to do */
    if (stop->timer.fd >= 0)
        arm(stop);
}

void stop_kill_after(struct stop *stop, uint64_t ms, int number)
{
    uint64_t at = in_ms(ms);

    if (stop->kill_at && stop->kill_at <= at)
        return;
    stop->kill_at = at;
    stop->kill_number = number;
    arm(stop);
}

static void forward(struct stop *stop, int number)
{
    if (stop->started) {
        stop->calls->forward(stop->owner, number);
        return;
    }
    if (number == SIGCONT)
        stop->pending &= ~(1ULL << SIGSTOP);
    stop->pending |= 1ULL << number;
}

static void timer_ready(void *owner, short revents)
{
    struct stop *stop = owner;
    uint64_t now = now_ms(), times;

    (void)revents;
    (void)!read(stop->timer.fd, &times, sizeof times);
    if (stop->kill_at && now >= stop->kill_at) {
        stop->kill_at = 0;
        stop->calls->kill(stop->owner, stop->kill_number);
    }
    if (stop->timeout_at && now >= stop->timeout_at) {
        stop->timeout_at = 0;
        stop->calls->timed_out(stop->owner);
        forward(stop, SIGTERM);
        forward(stop, SIGCONT); /* a stopped process does not see the other */
        stop_kill_after(stop, TIMEOUT_GRACE_MS, SIGTERM);
    }
    arm(stop);
}

/* --- signals --- */

/* As the shell expects of a job: it is told by the status of a process that stopped. */
static void stop_ourselves(struct stop *stop)
{
    sigset_t only, old;

    stop->calls->pause(stop->owner);
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &only, &old); /* stops here */
    sigprocmask(SIG_SETMASK, &old, NULL);
    /* Not only on SIGCONT: an orphaned process group is never stopped. */
    forward(stop, SIGCONT);
    stop->calls->resume(stop->owner);
}

static void obey(struct stop *stop, const struct rule *rule)
{
    if (rule->does & ENDS && ++stop->requests > 1) {
        stop->calls->kill(stop->owner, rule->number);
        return;
    }
    if (rule->does & RESIZES && stop->plan.tty) {
        stop->calls->resized(stop->owner);
        return;
    }
    forward(stop, rule->forward);
    if (rule->does & GRACE)
        stop_kill_after(stop, GRACE_MS, rule->number);
    if (rule->does & PAUSES)
        stop_ourselves(stop);
    if (rule->does & RESUMES)
        stop->calls->resume(stop->owner);
}

static void signals_ready(void *owner, short revents)
{
    struct stop *stop = owner;
    struct signalfd_siginfo infos[8];
    ssize_t got = read(stop->signals.fd, infos, sizeof infos);

    (void)revents;
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *infos; i++)
        for (size_t rule = 0; rule < ARRAY_LEN(rules); rule++)
            if ((uint32_t)rules[rule].number == infos[i].ssi_signo)
                obey(stop, &rules[rule]);
}

/* A signal that was ignored when we came (nohup, a background job of a script) stays ignored:
 * signalfd would show it to us all the same. */
static void choose(sigset_t *set)
{
    struct sigaction action;

    sigemptyset(set);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (sigaction(rules[i].number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, rules[i].number);
}

int stop_begin(struct stop *stop, struct loop *loop, const struct stop_calls *calls, void *owner,
               const struct stop_plan *plan, struct error *err)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigset_t set;

    *stop = STOP_NONE;
    stop->calls = calls;
    stop->owner = owner;
    stop->plan = *plan;
    choose(&set);
    sigprocmask(SIG_BLOCK, &set, &stop->old_mask);
    sigaction(SIGPIPE, &ignore, &stop->old_pipe);
    stop->begun = true;
    stop->signals =
        (struct loop_source){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, signals_ready, stop };
    stop->timer = (struct loop_source){ -1, POLLIN, timer_ready, stop };
    if (stop->signals.fd < 0)
        return error_sys(err, "watch for signals");
    loop_add(loop, &stop->signals);
    loop_add(loop, &stop->timer);
    if (plan->timeout_ms) {
        stop->timeout_at = in_ms(plan->timeout_ms);
        arm(stop);
    }
    return 0;
}

void stop_started(struct stop *stop)
{
    stop->started = true;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (stop->pending >> rules[i].forward & 1)
            stop->calls->forward(stop->owner, rules[i].forward);
    stop->pending = 0;
}

void stop_end(struct stop *stop)
{
    struct signalfd_siginfo info;

    if (!stop->begun)
        return;
    /* What still waits was meant for the command, and must not end us in the middle of clean-up. */
    while (stop->signals.fd >= 0 && read(stop->signals.fd, &info, sizeof info) > 0)
        ;
    own_close(&stop->signals.fd);
    own_close(&stop->timer.fd);
    sigaction(SIGPIPE, &stop->old_pipe, NULL);
    sigprocmask(SIG_SETMASK, &stop->old_mask, NULL);
    *stop = STOP_NONE;
}
