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
#include "keeper/checkpoint.h"
#include "keeper/job.h"
#include "keeper/meter.h"
#include "keeper/rest.h"
#include "keeper/stay.h"
#include "keeper/upper.h"
#include "limits/processes.h"
#include "store/livecopy.h"
#include "store/stack.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct work {
    struct livecopy copy;
    int answer;
};

struct answer {
    struct error error; /* ERROR_NONE: `done` says what came of it */
    struct livecopy_done done;
};

/* In a process of its own. */
static int copy(void *argument)
{
    const struct work *work = argument;
    struct answer answer = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (livecopy_run(&work->copy, &answer.done, &answer.error) == 0)
        answer.error.kind = ERROR_NONE;
    return write(work->answer, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : -1;
}

static int copy_apart(const struct checkpoints *checkpoints, struct work *work, struct livecopy_done *done,
                      struct error *err)
{
    struct answer answer;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");

    autoclose int hear = ends[0], tell = ends[1];

    work->answer = tell;
    if (upper_act(&checkpoints->stay->plan->ids, copy, work, err) < 0)
        return -1;
    close(steal_fd(&tell));
    if (read(hear, &answer, sizeof answer) != (ssize_t)sizeof answer)
        return error_set(err, ERROR_SYSTEM, "who copied the sandbox's files died");
    if (answer.error.kind != ERROR_NONE) {
        *err = answer.error;
        return -1;
    }
    *done = answer.done;
    return 0;
}

static bool hear_other(void *owner, const struct message *message, int *fds, size_t count)
{
    const struct checkpoints *checkpoints = owner;

    return job_heard(checkpoints->jobs, message, fds, count);
}

/* On what the sandbox lies on, by the newest name for it. */
static int begin(const struct checkpoints *checkpoints, const struct stack_place *place,
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

static int conclude(struct checkpoints *checkpoints, const struct stack_place *place,
                    const struct layer_info *layer, const struct livecopy_done *done, struct error *err)
{
    if (done->outcome == LIVECOPY_MADE && layers_finish(place->layers, layer->id, err) == 0) {
        memcpy(checkpoints->midway, layer->id, sizeof layer->id);
        meter_add_copied(checkpoints->meter, done->bytes, done->files);
        retention_add(&checkpoints->retention, layer->id, done->bytes);
        return MIDWAY_MADE;
    }
    layers_abandon(place->layers, layer);
    if (done->outcome == LIVECOPY_SAME)
        return MIDWAY_SAME;
    if (done->outcome == LIVECOPY_TOO_MUCH)
        say_too_much(checkpoints, done, err);
    return MIDWAY_NOT;
}

/* Once they are at rest. */
static int make(struct checkpoints *checkpoints, bool bounded, struct error *err)
{
    struct stack_place place = checkpoints_place(checkpoints);
    const struct checkpoint_bounds *bounds = &checkpoints->stay->bounds;
    struct layer_info layer;
    autoclose int out = begin(checkpoints, &place, &layer, err),
                  before = *checkpoints->midway ? open_layer(&place, checkpoints->midway) : -1;
    struct work work = { .copy = { .uppers = place.sandbox,
                                   .before = before,
                                   .out = out,
                                   .bytes_max = bounded ? bounds->live_bytes : 0,
                                   .files_max = bounded ? bounds->live_files : 0 } };
    struct livecopy_done done = { 0 };

    if (out < 0)
        return MIDWAY_NOT;
    work.copy.silent = !processes_can_be_seen() || processes_map_files(checkpoints->box->pid);
    if (copy_apart(checkpoints, &work, &done, err) == 0)
        return conclude(checkpoints, &place, &layer, &done, err);
    layers_abandon(place.layers, &layer);
    return MIDWAY_NOT;
}

/* Afterwards there is a copy of what was made of it: else the next step would be said to have changed it. */
static int make_and_act(struct checkpoints *checkpoints, bool bounded, const struct midway_then *then,
                        struct error *err)
{
    int made = make(checkpoints, bounded, err);
    struct error ignored;

    if (!then || made == MIDWAY_NOT)
        return made;
    if (then->act(then->owner, err) < 0)
        return MIDWAY_NOT;
    (void)make(checkpoints, false, &ignored);
    return made;
}

int midway_make(struct checkpoints *checkpoints, bool bounded, const struct midway_then *then,
                struct error *err)
{
    struct rest rest = { .box = checkpoints->box, .other = hear_other, .owner = checkpoints };
    autoclose int alone = layers_keep_out_sweeps(checkpoints->layers, err);
    int stopped, made;
    struct error lost;

    if (alone < 0)
        return MIDWAY_NOT;
    stopped = rest_begin(&rest, err);
    if (stopped != 0)
        return stopped < 0 ? -1 : MIDWAY_NOT;
    made = make_and_act(checkpoints, bounded, then, err);
    if (rest_end(&rest, &lost) == 0)
        return made;
    *err = lost;
    return -1;
}
