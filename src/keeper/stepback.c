/* Undo: of a sandbox in which nobody is left it is a switch to another layer; under processes that are alive
 * files go back where they are (box/inplace.h), while everybody rests. */

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/inplace.h"
#include "box/plan.h"
#include "keeper/checkpoint.h"
#include "keeper/job.h"
#include "keeper/midway.h"
#include "keeper/states.h"
#include "keeper/stay.h"
#include "limits/processes.h"

#include <errno.h>
#include <string.h>

/* A step back in place. */
struct stepping {
    struct checkpoints *checkpoints;
    const char *layer;
    uint64_t step, changed;
};

/* Those of `from` that are not in `other`. */
static void add_only(const struct strings *from, const struct strings *other, struct strings *out)
{
    for (size_t i = 0; i < from->len; i++) {
        bool both = false;

        for (size_t k = 0; k < other->len && !both; k++)
            both = strcmp(from->items[i], other->items[k]) == 0;
        if (!both)
            strings_add(out, from->items[i]);
    }
}

static int restore(const struct stepping *stepping, uint64_t *changed, struct error *err)
{
    const struct checkpoints *checkpoints = stepping->checkpoints;
    autostrings struct strings wanted = STRINGS_NONE, now = STRINGS_NONE, differ = STRINGS_NONE;
    const struct stay *stay = checkpoints->stay;

    if (layers_chain(checkpoints->layers, stepping->layer, &wanted, err) < 0 ||
        layers_chain(checkpoints->layers, checkpoints_shown(checkpoints), &now, err) < 0)
        return -1;
    add_only(&now, &wanted, &differ);

    size_t of_now = differ.len;

    add_only(&wanted, &now, &differ);
    return inplace_restore(&(struct inplace){ .box = checkpoints->box,
                                              .plan = stay->plan,
                                              .host = stay->host,
                                              .dir = stay->dir,
                                              .layers = checkpoints->layers,
                                              .stack = &wanted,
                                              .differ = &differ,
                                              .pair = of_now == 1 && differ.len == 2 },
                           changed, err);
}

/* On record before: the state that was there, and where it goes. */
static int step_back(void *owner, struct error *err)
{
    struct stepping *stepping = owner;
    const struct checkpoints *checkpoints = stepping->checkpoints;
    struct trace *trace = checkpoints->jobs->trace;
    uint64_t steps = checkpoints->jobs->steps;
    struct error ignored;

    if (states_write(trace, STATES_CHECKPOINT, checkpoints_shown(checkpoints), steps, err) < 0 ||
        states_write(trace, STATES_UNDO, stepping->layer, stepping->step, err) < 0)
        return -1;
    if (restore(stepping, &stepping->changed, err) == 0)
        return 0;
    /* What is there now has no name. */
    (void)states_write(trace, STATES_UNDO, "", steps, &ignored);
    return -1;
}

/* PID 1 and who starts commands are always there. */
static bool seems_quiet(const struct checkpoints *checkpoints)
{
    struct processes now;

    processes_look(checkpoints->box->pid, &now);
    return !jobs_running(checkpoints->jobs) && now.count <= 1;
}

int checkpoints_prepare_undo(struct checkpoints *checkpoints, struct error *err)
{
    int begun;

    if (checkpoints->layers < 0 || seems_quiet(checkpoints))
        return 0;
    begun = midway_begin(checkpoints, false, err);
    return begun < 0 ? -1 : begun == MIDWAY_UNDER_WAY;
}

int checkpoints_undo(struct checkpoints *checkpoints, const char *layer, uint64_t step, bool *in_place,
                     struct error *err)
{
    struct stepping stepping = { .checkpoints = checkpoints, .layer = layer, .step = step };
    struct midway_then then = { step_back, &stepping };
    autostrings struct strings chain = STRINGS_NONE;
    int done;

    *in_place = false;
    if (checkpoints->layers < 0 || seems_quiet(checkpoints)) {
        done = checkpoints_turn(checkpoints, layer, step, err);
        if (done <= 0 || checkpoints->layers < 0 || err->sys_errno != EBUSY)
            return done;
    }
    if (layers_chain(checkpoints->layers, layer, &chain, err) < 0)
        return 1;
    *in_place = true;
    done = midway_make(checkpoints, &then, err);
    checkpoints_drop_old(checkpoints);
    return done < 0 ? -1 : done == MIDWAY_NOT;
}
