/* Theory of operation.  The layer lies on what the sandbox lies on, with all that lies in the sandbox's own
 * directories: so going back to it, forks and snapshots are as with any other layer.
 *
 * If we are killed, a layer without its name is left, which the sweep removes; or a whole one that the trace
 * does not know, which goes with the sandbox. */

#include "keeper/midway.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/plan.h"
#include "keeper/apart.h"
#include "keeper/checkpoint.h"
#include "keeper/job.h"
#include "keeper/meter.h"
#include "keeper/stay.h"
#include "keeper/upper.h"
#include "limits/processes.h"
#include "store/livecopy.h"
#include "store/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct work {
    struct livecopy copy;
    int answer;
};

struct answer {
    struct error error; /* ERROR_NONE: `done` says what came of it */
    struct livecopy_done done;
};

/* --- who copies --- */

static int copy(void *argument)
{
    const struct work *work = argument;
    struct answer answer = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (livecopy_run(&work->copy, &answer.done, &answer.error) == 0)
        answer.error.kind = ERROR_NONE;
    return write(work->answer, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : -1;
}

/* The lock on the sandbox goes with the keeper, and is not for us to hold. */
static _Noreturn void be_copier(const struct checkpoints *checkpoints, struct work *work, pid_t keeper)
{
    struct livecopy *what = &work->copy;
    struct error ignored;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "cove-copier");
    if (getppid() != keeper)
        _exit(1);
    what->uppers = openat(what->uppers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    apart_close_others((int[]){ what->uppers, what->out, what->before, work->answer }, 4);
    _exit(upper_act_here(&checkpoints->stay->plan->ids, copy, work, &ignored) < 0 ? 1 : 0);
}

static int start_copier(struct checkpoints *checkpoints, struct error *err)
{
    struct midway *midway = &checkpoints->making;
    const struct checkpoint_bounds *bounds = &checkpoints->stay->bounds;
    bool bounded = midway->bounded;
    struct work work = { .copy = { .uppers = checkpoints->stay->dir->fd,
                                   .before = midway->before,
                                   .out = midway->out,
                                   .bytes_max = bounded ? bounds->live_bytes : 0,
                                   .files_max = bounded ? bounds->live_files : 0 } };
    pid_t keeper = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");

    autoclose int hear = ends[0], tell = ends[1];

    work.answer = tell;
    work.copy.silent = !processes_can_be_seen() || processes_map_files(checkpoints->box->pid);
    midway->child = fork();
    if (midway->child == 0)
        be_copier(checkpoints, &work, keeper);
    if (midway->child < 0) {
        midway->child = 0;
        return error_sys(err, "fork");
    }
    midway->source.fd = steal_fd(&hear);
    return 0;
}

/* What it says; waits for it if it is not done. */
static int hear_copier(struct midway *midway, struct livecopy_done *done, struct error *err)
{
    struct answer answer;
    ssize_t got;

    while ((got = read(midway->source.fd, &answer, sizeof answer)) < 0 && errno == EINTR)
        continue;
    while (waitpid(midway->child, NULL, 0) < 0 && errno == EINTR)
        continue;
    midway->child = 0;
    own_close(&midway->source.fd);
    if (got != (ssize_t)sizeof answer)
        return error_set(err, ERROR_SYSTEM, "who copied the sandbox's files died");
    if (answer.error.kind != ERROR_NONE) {
        *err = answer.error;
        return -1;
    }
    *done = answer.done;
    return 0;
}

/* --- the layer --- */

static bool hear_other(void *owner, const struct message *message, int *fds, size_t count)
{
    const struct checkpoints *checkpoints = owner;

    return job_heard(checkpoints->jobs, message, fds, count);
}

/* On what the sandbox lies on, by the newest name for it. */
static int begin_layer(const struct checkpoints *checkpoints, const struct stack_place *place,
                       struct layer_info *layer, struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;

    *layer = (struct layer_info){ .step = checkpoints->jobs->steps, .ids = place->ids, .weight = 1 };
    snprintf(layer->sandbox, sizeof layer->sandbox, "%s", place->id);
    if (stack_top(place->sandbox, layer->parent, err) < 0 ||
        layers_chain(place->layers, layer->parent, &chain, err) < 0)
        return -1;
    if (chain.len >= LAYERS_DEPTH_MAX)
        return error_set(err, ERROR_REFUSED, "the sandbox lies on %d layers already", LAYERS_DEPTH_MAX);
    return layers_begin(place->layers, layer, place->id, err);
}

static int open_layer(const struct stack_place *place, const char *layer)
{
    return openat(place->layers, layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int say_too_much(const struct checkpoints *checkpoints, const struct livecopy_done *done,
                        struct error *err)
{
    const struct checkpoint_bounds *bounds = &checkpoints->stay->bounds;

    if (bounds->live_files && done->files > bounds->live_files)
        return error_set(err, ERROR_REFUSED,
                         "processes were running, and %llu files had changed, more than checkpoints.live_files",
                         (unsigned long long)done->files);
    return error_set(err, ERROR_REFUSED,
                     "processes were running, and %llu bytes had changed, more than checkpoints.live_bytes",
                     (unsigned long long)done->bytes);
}

static int conclude(struct checkpoints *checkpoints, const struct livecopy_done *done, struct error *err)
{
    const struct layer_info *layer = &checkpoints->making.layer;

    if (done->outcome == LIVECOPY_MADE && layers_finish(checkpoints->layers, layer->id, err) == 0) {
        memcpy(checkpoints->midway, layer->id, sizeof layer->id);
        meter_add_copied(checkpoints->meter, done->bytes, done->files);
        retention_add(&checkpoints->retention, layer->id, done->bytes);
        return MIDWAY_MADE;
    }
    layers_abandon(checkpoints->layers, layer);
    if (done->outcome == LIVECOPY_SAME)
        return MIDWAY_SAME;
    if (done->outcome == LIVECOPY_TOO_MUCH)
        say_too_much(checkpoints, done, err);
    return MIDWAY_NOT;
}

static void close_layer(struct midway *midway)
{
    own_close(&midway->out);
    own_close(&midway->before);
}

/* Once they are at rest: a new layer, and somebody who fills it. */
static int start(struct checkpoints *checkpoints, bool bounded, struct error *err)
{
    struct midway *midway = &checkpoints->making;
    struct stack_place place = checkpoints_place(checkpoints);

    midway->bounded = bounded;
    midway->out = begin_layer(checkpoints, &place, &midway->layer, err);
    if (midway->out < 0)
        return -1;
    midway->before = *checkpoints->midway ? open_layer(&place, checkpoints->midway) : -1;
    if (start_copier(checkpoints, err) == 0)
        return 0;
    layers_abandon(place.layers, &midway->layer);
    close_layer(midway);
    return -1;
}

static int finish(struct checkpoints *checkpoints, struct error *err)
{
    struct midway *midway = &checkpoints->making;
    struct livecopy_done done = { 0 };
    int made = MIDWAY_NOT;

    if (hear_copier(midway, &done, err) == 0)
        made = conclude(checkpoints, &done, err);
    else
        layers_abandon(checkpoints->layers, &midway->layer);
    close_layer(midway);
    return made;
}

/* --- everybody at rest --- */

/* 1: they could not be brought to it, and go on. */
static int begin_rest(struct checkpoints *checkpoints, struct error *err)
{
    struct midway *midway = &checkpoints->making;
    int stopped;

    *midway = MIDWAY_NONE;
    midway->rest = (struct rest){ .box = checkpoints->box, .other = hear_other, .owner = checkpoints };
    snprintf(midway->shown, sizeof midway->shown, "%s", checkpoints_shown(checkpoints));
    midway->alone = layers_keep_out_sweeps(checkpoints->layers, err);
    if (midway->alone < 0)
        return 1;
    stopped = rest_begin(&midway->rest, err);
    if (stopped != 0)
        own_close(&midway->alone);
    else
        jobs_pause(checkpoints->jobs, true); /* nobody is ended or woken meanwhile because its time is up */
    return stopped;
}

static int end_rest(struct checkpoints *checkpoints, struct error *err)
{
    own_close(&checkpoints->making.alone);
    jobs_pause(checkpoints->jobs, false);
    return rest_end(&checkpoints->making.rest, err);
}

/* The result, unless the sandbox is lost. */
static int end_with(struct checkpoints *checkpoints, int made, struct error *err)
{
    struct error lost;

    if (end_rest(checkpoints, &lost) == 0)
        return made;
    *err = lost;
    return -1;
}

/* --- beside the loop --- */

static void copier_ready(void *owner, short revents)
{
    struct checkpoints *checkpoints = owner;
    struct error err = { 0 };
    int made;

    (void)revents;
    loop_remove(checkpoints->jobs->loop, &checkpoints->making.source);
    made = finish(checkpoints, &err);
    checkpoints_copied(checkpoints, end_with(checkpoints, made, &err), &err);
}

int midway_begin(struct checkpoints *checkpoints, bool bounded, struct error *err)
{
    struct midway *midway = &checkpoints->making;
    int stopped = begin_rest(checkpoints, err);

    if (stopped != 0)
        return stopped < 0 ? -1 : MIDWAY_NOT;
    if (start(checkpoints, bounded, err) < 0)
        return end_with(checkpoints, MIDWAY_NOT, err);
    midway->source.events = POLLIN;
    midway->source.ready = copier_ready;
    midway->source.owner = checkpoints;
    loop_add(checkpoints->jobs->loop, &midway->source);
    return MIDWAY_UNDER_WAY;
}

bool midway_is_under_way(const struct checkpoints *checkpoints)
{
    return checkpoints->making.child > 0;
}

void midway_abandon(struct checkpoints *checkpoints)
{
    struct midway *midway = &checkpoints->making;
    struct error ignored;

    if (!midway->child)
        return;
    loop_remove(checkpoints->jobs->loop, &midway->source);
    kill(midway->child, SIGKILL);
    (void)finish(checkpoints, &ignored);
    (void)end_rest(checkpoints, &ignored);
}

/* --- at once --- */

/* Afterwards there is a copy of what was made of it: else the next step would be said to have changed it. */
static int make_and_act(struct checkpoints *checkpoints, const struct midway_then *then, struct error *err)
{
    int made = start(checkpoints, false, err) < 0 ? MIDWAY_NOT : finish(checkpoints, err);
    struct error ignored;

    if (made == MIDWAY_NOT)
        return made;
    if (then->act(then->owner, err) < 0)
        return MIDWAY_NOT;
    if (start(checkpoints, false, &ignored) == 0)
        (void)finish(checkpoints, &ignored);
    return made;
}

int midway_make(struct checkpoints *checkpoints, const struct midway_then *then, struct error *err)
{
    int stopped = begin_rest(checkpoints, err);

    if (stopped != 0)
        return stopped < 0 ? -1 : MIDWAY_NOT;
    return end_with(checkpoints, make_and_act(checkpoints, then, err), err);
}
