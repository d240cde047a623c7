/* What whoever connects to the keeper of a sandbox can ask for.  Should: check everything that is asked; must
 * not: wait for what takes time. */

#include "keeper/stay_inner.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "box/environment.h"
#include "box/host.h"
#include "box/plan.h"
#include "init/wire.h"
#include "keeper/files_session.h"
#include "keeper/kept.h"
#include "keeper/repolicy.h"
#include "keeper/stay.h"
#include "spec/forms.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int refuse_paused(const struct keeper *keeper, struct error *err)
{
    return error_set(err, ERROR_REFUSED, "this sandbox is paused; go on with it: cove resume %.*s",
                     KEPT_ID_SHOWN, keeper->stay->dir->id);
}

/* A number or number:number; root only where the sandbox was made for it. */
static int choose_user(const struct plan *plan, const char *user, struct job_as *as, struct error *err)
{
    autotext struct text why = TEXT_NONE;
    autofree char *form = NULL;
    char *rest;
    bool root = strcmp(user, "root") == 0;

    if (*user && !form_user(&(struct form_context){ 0 }, user, &form, &why))
        return error_set(err, ERROR_INVALID, "user %s: %s", user, text_string(&why));
    if (!*user || (root && plan->start_flags & (START_ROOT | START_FAKEROOT)))
        return 0;
    if (root)
        return error_set(err, ERROR_REFUSED, "this sandbox has no root: make one with `cove create --root`");
    as->uid = as->gid = (uint32_t)strtoul(user, &rest, 10);
    if (*rest == ':')
        as->gid = (uint32_t)strtoul(rest + 1, NULL, 10);
    if (as->uid == plan->ids.uid && as->gid == plan->ids.gid)
        return 0;
    if (!plan->ids.shifted || as->uid >= ID_INIT || as->gid >= ID_INIT)
        return error_set(err, ERROR_REFUSED, "user %s: this sandbox has only the user %u:%u", user,
                         plan->ids.uid, plan->ids.gid);
    as->flags &= ~(uint32_t)START_ROOT; /* those rights are root's */
    return 0;
}

static int read_words(const struct keeper *keeper, const struct control *request, int fd, struct words *out,
                      struct error *err)
{
    const struct plan *plan = keeper->stay->plan;
    const uint32_t counts[] = { request->arguments, request->variables };
    autowords struct words words = WORDS_NONE;
    struct strings environment = STRINGS_NONE;

    if (words_read(fd, counts, CONTROL_WORDS_MAX, &words, err) < 0)
        return -1;
    environment_join(&plan->env, &words.envp, &environment);
    strings_free(&words.envp);
    words.envp = environment;
    if (!*words.cwd) {
        free(words.cwd);
        words.cwd = text_copy(plan->cwd);
    }
    *out = words_take(&words);
    return 0;
}

static int do_exec(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct keeper *keeper = visitor->keeper;
    const struct stay *stay = keeper->stay;
    const struct plan *plan = stay->plan;
    autowords struct words words = WORDS_NONE;

    if (keeper->turn.kind)
        return error_set(err, ERROR_REFUSED, "this sandbox is being rolled back");
    if (keeper->paused || keeper->pausing)
        return refuse_paused(keeper, err);
    if (services_under_way(keeper))
        return 1;

    autoclose int program = request->flags & CONTROL_FILES ? files_session_program(err) : -1;
    struct job_as as = { .uid = plan->ids.uid,
                         .gid = plan->ids.gid,
                         .flags = plan->start_flags,
                         .processes = plan_process_rlimit(plan),
                         .program = program };

    if (request->flags & CONTROL_FILES && program < 0)
        return -1;
    if (choose_user(plan, request->user, &as, err) < 0 || read_words(keeper, request, fds[0], &words, err) < 0)
        return -1;
    as.pipe_owner = plan->ids.shifted ? plan->ids.base + as.uid : stay->host->uid;

    struct control within = *request;

    if (stay->timeout_ms && (!within.timeout_ms || within.timeout_ms > stay->timeout_ms))
        within.timeout_ms = stay->timeout_ms;
    return job_start(&keeper->jobs, &within, &words, &as, visitor->source.fd, err);
}

static struct job *find_job(const struct keeper *keeper, uint64_t step, struct error *err)
{
    struct job *job = jobs_find(&keeper->jobs, step);

    if (!job && step)
        error_set(err, ERROR_MISSING, "step %llu does not run", (unsigned long long)step);
    else if (!job)
        error_set(err, ERROR_MISSING, "no command runs in this sandbox");
    return job;
}

static int do_signal(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct job *job = find_job(visitor->keeper, request->step, err);

    (void)fds;
    if (!job)
        return -1;
    if (request->signal < 1 || request->signal > SIGRTMAX)
        return error_set(err, ERROR_INVALID, "there is no signal %d", request->signal);
    job_signal(job, request->signal);
    return 0;
}

static int do_attach(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct job *job = find_job(visitor->keeper, request->step, err);

    (void)fds;
    return job ? job_attach(job, visitor->source.fd, err) : -1;
}

static int do_stop(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    (void)fds, (void)err;
    visitor->stops = true;
    visitor->keeper->discard |= request->flags & CONTROL_DISCARD;
    keeper_end(visitor->keeper, request->timeout_ms);
    return 0;
}

static int do_pause(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct keeper *keeper = visitor->keeper;

    (void)request, (void)fds;
    if (keeper->turn.kind)
        return error_set(err, ERROR_REFUSED, "this sandbox is being rolled back");
    if (keeper->paused || keeper->pausing)
        return error_set(err, ERROR_REFUSED, "this sandbox is paused already");
    visitor->pauses = true;
    if (keeper_pause(keeper, err) == 0)
        return 0;
    visitor->pauses = false;
    return -1;
}

static int do_resume(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct control done = CONTROL(CONTROL_DONE);

    (void)request, (void)fds;
    if (!visitor->keeper->paused)
        return error_set(err, ERROR_REFUSED, "this sandbox is not paused");
    keeper_resume(visitor->keeper);
    visitor_answer(visitor, &done);
    return 0;
}

static int do_status(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct control done = CONTROL(CONTROL_DONE);

    (void)request, (void)fds, (void)err;
    done.step = visitor->keeper->jobs.steps;
    done.running = (uint32_t)jobs_running(&visitor->keeper->jobs);
    visitor_answer(visitor, &done);
    return 0;
}

/* --- checkpoints --- */

static int check_quiet(const struct keeper *keeper, struct error *err)
{
    if (keeper->turn.kind)
        return error_set(err, ERROR_REFUSED, "this sandbox is being rolled back");
    if (keeper->paused || keeper->pausing)
        return refuse_paused(keeper, err);
    return 0;
}

/* The processes first; it goes on in take_cleared(). */
static int do_rollback(struct visitor *visitor, const struct control *request, const int *fds,
                       struct error *err)
{
    struct keeper *keeper = visitor->keeper;
    struct message clear = { .kind = MESSAGE_CLEAR, .signal = SIGTERM, .patience_ms = request->timeout_ms };

    (void)fds;
    if (check_quiet(keeper, err) < 0)
        return -1;
    if (!store_is_id(request->layer))
        return error_set(err, ERROR_INVALID, "that is no layer");
    if (wire_send(keeper->init.fd, &clear, NULL, 0) < 0)
        return error_sys(err, "ask PID 1 to end every process");
    services_stop(keeper);
    keeper->turn = *request;
    visitor->turns = true;
    return 0;
}

static int do_checkpoint(struct visitor *visitor, const struct control *request, const int *fds,
                         struct error *err)
{
    struct keeper *keeper = visitor->keeper;
    struct control done = CONTROL(CONTROL_DONE);
    char layer[ID_LENGTH + 1];

    (void)request, (void)fds;
    if (check_quiet(keeper, err) < 0)
        return -1;
    if (keeper->marks.asked)
        return 1; /* a switch hears no answer but its own */

    int made = checkpoints_make(&keeper->checkpoints, layer, err);

    if (made < 0)
        keeper_fail(keeper, err);
    visitor->copies = made == CHECKPOINTS_LATER;
    if (visitor->copies)
        return 0;
    if (made != 0)
        return -1;
    memcpy(done.layer, layer, sizeof layer);
    visitor_answer(visitor, &done);
    return 0;
}

/* 1: what is there is copied first, while others are answered. */
static int prepare_undo(struct visitor *visitor, struct error *err)
{
    struct keeper *keeper = visitor->keeper;
    int begun = visitor->prepared ? 0 : checkpoints_prepare_undo(&keeper->checkpoints, err);

    visitor->prepared = true;
    if (begun < 0)
        keeper_fail(keeper, err);
    return begun;
}

static int do_undo(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct keeper *keeper = visitor->keeper;
    struct control done = CONTROL(CONTROL_DONE);
    bool in_place;

    (void)fds;
    if (check_quiet(keeper, err) < 0 || !store_is_id(request->layer)) {
        visitor->prepared = false;
        return store_is_id(request->layer) ? -1 : error_set(err, ERROR_INVALID, "that is no layer");
    }
    if (keeper->marks.asked || prepare_undo(visitor, err) > 0)
        return 1;
    visitor->prepared = false;
    if (keeper->phase != PHASE_READY)
        return -1;

    int undone = checkpoints_undo(&keeper->checkpoints, request->layer, request->step, &in_place, err);

    if (undone < 0)
        keeper_fail(keeper, err);
    if (undone != 0)
        return -1;
    keeper->jobs.undone = in_place ? request->undone : keeper->jobs.undone;
    visitor_answer(visitor, &done);
    return 0;
}

static int do_policy(struct visitor *visitor, const struct control *request, const int *fds, struct error *err)
{
    struct control done = CONTROL(CONTROL_DONE);

    (void)request;
    if (repolicy(visitor->keeper, fds[0], fds[1], err) < 0)
        return -1;
    visitor_answer(visitor, &done);
    return 0;
}

/* What may be asked, with how many descriptors, whether also of a sandbox that is about to end, and whether it
 * waits while files are copied: then nobody may be started, woken or stopped. */
static const struct serving {
    uint32_t kind;
    size_t fds;
    bool late, waits;
    int (*serve)(struct visitor *visitor, const struct control *request, const int *fds, struct error *err);
} requests[] = {
    { CONTROL_EXEC, 1, false, true, do_exec },
    { CONTROL_SIGNAL, 0, true, true, do_signal },
    { CONTROL_ATTACH, 0, false, false, do_attach },
    { CONTROL_STOP, 0, true, false, do_stop },
    { CONTROL_STATUS, 0, true, true, do_status },
    { CONTROL_PAUSE, 0, false, true, do_pause },
    { CONTROL_RESUME, 0, false, false, do_resume },
    { CONTROL_ROLLBACK, 0, false, true, do_rollback },
    { CONTROL_CHECKPOINT, 0, false, true, do_checkpoint },
    { CONTROL_UNDO, 0, false, true, do_undo },
    { CONTROL_POLICY, 2, false, false, do_policy },
};

int request_serve(struct visitor *visitor, const struct control *request, const int *fds, size_t count,
                  struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].kind != request->kind || requests[i].fds != count)
            continue;
        if (visitor->keeper->phase >= PHASE_ENDING && !requests[i].late)
            return error_set(err, ERROR_REFUSED, "this sandbox is being stopped");
        if (requests[i].waits && midway_is_under_way(&visitor->keeper->checkpoints))
            return 1;
        return requests[i].serve(visitor, request, fds, err);
    }
    return error_set(err, ERROR_INVALID, "a keeper knows no such request");
}
