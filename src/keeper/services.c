/* Theory of operation.  A service is a command like any other, but no step: nobody waits for it, its number is
 * none of the steps', and its output is kept under a number of its own.  One is waited for at a time, by
 * looking (its `ready` is run until it succeeds) and by time.  What became of each is in the record, for who
 * asks, and in the trace.
 *
 * What is not ready in time is left running, so that its owner can look at it; the ones behind it are not
 * started. */

#include "keeper/services.h"

#include "base/clock.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/plan.h"
#include "keeper/kept.h"
#include "keeper/record.h"
#include "keeper/stay.h"
#include "keeper/stay_inner.h"
#include "spec/node.h"
#include "store/output_read.h"

#include <stdio.h>
#include <string.h>

enum {
    MOMENT_US = 200000,   /* one without `ready` is ready when it has run so long */
    FIRST_TRY_US = 20000, /* from the start to the first try, and after it twice as long each time */
    TRIES_US = 500000,    /* but no longer */
    TAIL = 160,           /* bytes of its output in an error */
};

static struct services_run *run_of(struct keeper *keeper)
{
    return &keeper->services;
}

static const struct service *service_of(struct keeper *keeper, const struct service_run *run)
{
    return &keeper->services.list->items[run - keeper->services.runs];
}

bool services_under_way(const struct keeper *keeper)
{
    return keeper->services.under_way;
}

/* --- what is known of them --- */

static void note(struct keeper *keeper, const struct service_run *run)
{
    static const char *const words[] = {
        [SERVICE_WAITING] = "waiting",     [SERVICE_STARTING] = "starting", [SERVICE_READY] = "ready",
        [SERVICE_NOT_READY] = "not ready", [SERVICE_ENDED] = "ended",       [SERVICE_STOPPED] = "stopped"
    };
    struct record *record = keeper->stay->record;
    autofree char *label = text_format("%s=%s%s%s%s", service_of(keeper, run)->name, words[run->state],
                                       *run->how ? " (" : "", run->how, *run->how ? ")" : "");

    (void)record_add_label(&record->services, label);
}

static void write_record(struct keeper *keeper)
{
    struct error ignored;

    (void)record_write(keeper->stay->dir->fd, keeper->stay->record, &ignored);
}

static void set_state(struct service_run *run, enum service_state state, const char *kind)
{
    struct keeper *keeper = run->keeper;
    autonode struct node data = { .kind = NODE_MAP };
    struct error ignored;

    run->state = state;
    note(keeper, run);
    write_record(keeper);
    node_add(&data, "name", NODE_STRING, service_of(keeper, run)->name);
    if (*run->how)
        node_add(&data, "how", NODE_STRING, run->how);
    (void)trace_add(&keeper->trace, kind, &data, &ignored);
}

static void say_end(const struct result *result, char out[64])
{
    if (result->reason == RESULT_SIGNALED)
        snprintf(out, 64, "signal %d", result->signal);
    else if (result->reason == RESULT_EXITED)
        snprintf(out, 64, "exit %d", result->exit_code);
    else
        snprintf(out, 64, "%s", result_reason_name(result->reason));
}

/* --- an error that says what it was --- */

static int keep_tail(void *owner, const struct output_event *event)
{
    struct text *tail = owner;

    if (event->kind != OUTPUT_BYTES)
        return 0;
    text_add_bytes(tail, (const char *)event->bytes, event->len);
    if (tail->len > (size_t)4 * TAIL) {
        memmove(tail->data, tail->data + tail->len - TAIL, TAIL);
        text_cut(tail, TAIL);
    }
    return 0;
}

static void fail(struct service_run *run, const char *what)
{
    struct keeper *keeper = run->keeper;
    const char *name = service_of(keeper, run)->name;
    struct error *error = &run_of(keeper)->failed;
    autotext struct text tail = TEXT_NONE, shown = TEXT_NONE;
    struct error ignored;

    (void)output_read(keeper->stay->dir->fd, SERVICES_OUTPUT + (uint64_t)(run - run_of(keeper)->runs),
                      keep_tail, &tail, &ignored);
    while (tail.len && tail.data[tail.len - 1] == '\n')
        text_cut(&tail, tail.len - 1);
    for (size_t i = 0; i < tail.len; i++)
        if (tail.data[i] == '\n')
            tail.data[i] = ' '; /* an error is one line */
    text_add_inert(&shown, text_string(&tail) + (tail.len > TAIL ? tail.len - TAIL : 0));
    error_set(error, ERROR_REFUSED, "service %s %s%s%s", name, what,
              shown.len ? "; its output ends: " : "; it wrote nothing",
              text_string(&shown) + (shown.len > TAIL ? shown.len - TAIL : 0)); /* a hint has room behind it */
    (void)error_hint(error, "all of it: cove logs --service %s %.*s", name, KEPT_ID_SHOWN,
                     keeper->stay->dir->id);
}

/* --- commands --- */

static int start_job(struct service_run *run, const char *script, struct job_watch watch, uint64_t timeout_ms,
                     uint32_t *out, struct error *err)
{
    struct keeper *keeper = run->keeper;
    const struct plan *plan = keeper->stay->plan;
    struct control request = CONTROL(CONTROL_EXEC);
    autowords struct words words = WORDS_NONE;
    struct job_as as = { .uid = plan->ids.uid,
                         .gid = plan->ids.gid,
                         .flags = plan->start_flags,
                         .processes = plan_process_rlimit(plan),
                         .pipe_owner =
                             plan->ids.shifted ? plan->ids.base + plan->ids.uid : keeper->stay->host->uid,
                         .program = -1,
                         .watch = watch };

    request.flags = CONTROL_DETACH;
    request.timeout_ms = timeout_ms;
    words.cwd = text_copy(plan->cwd);
    strings_copy(&words.envp, &plan->env);
    strings_add(&words.argv, "/bin/sh");
    strings_add(&words.argv, "-c");
    strings_add(&words.argv, script);
    if (job_start(&keeper->jobs, &request, &words, &as, -1, err) < 0)
        return -1;
    *out = keeper->jobs.first->step;
    return 0;
}

static void became_ready(struct service_run *run)
{
    set_state(run, SERVICE_READY, "service.ready");
    run_of(run->keeper)->at++;
    run_of(run->keeper)->began = 0;
}

static bool is_waited_for(const struct service_run *run)
{
    const struct services_run *all = run_of(run->keeper);

    return all->under_way && all->failed.kind == ERROR_NONE && run == &all->runs[all->at];
}

static void probe_over(void *owner, const struct job *job)
{
    struct service_run *run = owner;
    struct services_run *all = run_of(run->keeper);
    uint64_t waited = clock_us() - all->began;

    if (job->step != run->probe)
        return;
    run->probe = 0;
    if (!is_waited_for(run) || run->state != SERVICE_STARTING)
        return;
    if (job->result.reason == RESULT_EXITED && job->result.exit_code == 0)
        became_ready(run);
    else
        all->try_at = clock_us() + (waited > TRIES_US ? TRIES_US : waited);
}

static void service_over(void *owner, const struct job *job)
{
    struct service_run *run = owner;
    bool waited = is_waited_for(run);
    char what[100];

    if (job->step != run->job)
        return;
    run->job = 0;
    if (run->state == SERVICE_STOPPED)
        return;
    say_end(&job->result, run->how);
    set_state(run, SERVICE_ENDED, "service.ended");
    snprintf(what, sizeof what, "ended before it was ready (%s)", run->how);
    if (waited)
        fail(run, what);
}

/* What it wrote the last time is gone. */
static void start_one(struct service_run *run)
{
    struct keeper *keeper = run->keeper;
    struct services_run *all = run_of(keeper);
    uint64_t output = SERVICES_OUTPUT + (uint64_t)(run - all->runs);
    struct error error;

    all->began = clock_us();
    all->by = all->began + service_of(keeper, run)->within_ms * 1000;
    all->try_at = all->began + FIRST_TRY_US;
    run->how[0] = '\0';
    output_remove(keeper->stay->dir->fd, output);
    set_state(run, SERVICE_STARTING, "service.started");
    if (start_job(run, service_of(keeper, run)->run, (struct job_watch){ service_over, run, output }, 0,
                  &run->job, &error) == 0)
        return;
    snprintf(run->how, sizeof run->how, "%.60s", error.text);
    set_state(run, SERVICE_ENDED, "service.ended");
    fail(run, "could not be started");
}

static void look_at(struct service_run *run, uint64_t now)
{
    struct services_run *all = run_of(run->keeper);
    const struct service *service = service_of(run->keeper, run);
    struct error ignored;

    if (now >= all->by) {
        set_state(run, SERVICE_NOT_READY, "service.late");
        fail(run, "was not ready in time");
    } else if (!service->ready && now >= all->began + MOMENT_US) {
        became_ready(run);
    } else if (service->ready && !run->probe && now >= all->try_at) {
        uint64_t left_ms = (all->by - now) / 1000 + 1;

        if (start_job(run, service->ready, (struct job_watch){ probe_over, run, 0 }, left_ms, &run->probe,
                      &ignored) < 0)
            all->try_at = now + TRIES_US;
    }
}

/* --- all of them --- */

void services_begin(struct keeper *keeper)
{
    struct services_run *all = run_of(keeper);

    for (size_t i = 0; all->list && i < all->list->len; i++) {
        all->runs[i] = (struct service_run){ .keeper = keeper };
        note(keeper, &all->runs[i]);
    }
}

bool services_start(struct keeper *keeper)
{
    struct services_run *all = run_of(keeper);

    if (!all->list || !all->list->len)
        return false;
    all->under_way = true;
    all->at = 0;
    all->began = 0;
    all->looked = clock_us();
    all->failed = (struct error){ 0 };
    services_begin(keeper);
    return true;
}

void services_stop(struct keeper *keeper)
{
    struct services_run *all = run_of(keeper);

    if (!all->list || !all->list->len)
        return;
    all->under_way = false;
    for (size_t i = 0; i < all->list->len; i++) {
        if (all->runs[i].state == SERVICE_ENDED || all->runs[i].state == SERVICE_WAITING)
            continue;
        all->runs[i].state = SERVICE_STOPPED;
        note(keeper, &all->runs[i]);
    }
    write_record(keeper);
}

static int until_next(const struct services_run *all, uint64_t now)
{
    const struct service_run *run = &all->runs[all->at];
    uint64_t at = !all->list->items[all->at].ready ? all->began + MOMENT_US
                  : run->probe                     ? all->by
                                                   : all->try_at;

    at = at < all->by ? at : all->by;
    return at <= now ? 0 : (int)((at - now) / 1000 + 1);
}

/* While everything is paused or at rest, no time passes for who is waited for. */
static void skip_time(struct services_run *all, uint64_t us)
{
    all->began += us;
    all->by += us;
    all->try_at += us;
}

int services_tend(struct keeper *keeper)
{
    struct services_run *all = run_of(keeper);
    uint64_t now = clock_us(), passed = now - all->looked;
    const struct job *newest = keeper->jobs.first;

    if (!all->under_way)
        return -1;
    all->looked = now;
    if (keeper->paused || midway_is_under_way(&keeper->checkpoints)) {
        if (all->began)
            skip_time(all, passed);
        return -1;
    }
    while (all->failed.kind == ERROR_NONE && all->at < all->list->len) {
        struct service_run *run = &all->runs[all->at];

        if (!all->began)
            start_one(run);
        else
            look_at(run, now);
        if (all->failed.kind == ERROR_NONE && all->began)
            return keeper->jobs.first == newest ? until_next(all, now)
                                                : 0; /* what was asked for is sent first */
    }
    all->under_way = false;
    keeper_served(keeper, all->failed.kind == ERROR_NONE ? NULL : &all->failed);
    return 0;
}
