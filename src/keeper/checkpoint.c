/* What is frozen, and when.
 *
 * Theory of operation.  A checkpoint is a switch (box/switch.h) when no process is there but PID 1, else a copy
 * of what changed (midway.h).  The switch costs some milliseconds, during which whoever asks for a command
 * waits in its socket; the copy may take longer, and the loop goes on meanwhile.  The client has heard of the
 * end of its step before.  The trace says which layer belongs to which step (states.h); if we are killed
 * between the switch and that line, the next keeper finds a layer that the trace does not know, and writes it
 * down.
 *
 * Whatever need not be done at once is left to later.h: a stack must not become deep, so the upper part of it
 * is merged now and then, and what was set aside must be removed. */

#include "keeper/checkpoint.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/host.h"
#include "box/plan.h"
#include "box/switch.h"
#include "keeper/job.h"
#include "keeper/job_record.h"
#include "keeper/meter.h"
#include "keeper/record.h"
#include "keeper/states.h"
#include "keeper/stay.h"
#include "keeper/uppers.h"
#include "store/livecopy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct stack_place checkpoints_place(const struct checkpoints *checkpoints)
{
    const struct ids *ids = &checkpoints->stay->plan->ids;

    return (struct stack_place){ .layers = checkpoints->layers,
                                 .sandbox = checkpoints->stay->dir->fd,
                                 .id = checkpoints->stay->dir->id,
                                 .ids = ids->shifted ? ids->base : 0 };
}

/* --- the switch --- */

struct exchange {
    struct checkpoints *checkpoints;
    const char *to;             /* NULL: freeze only */
    const struct strings *onto; /* what `to` lies on, itself first, if that is known */
    uint64_t dirty;             /* trees that were written to */
    uint64_t trees;             /* that change by the exchange; 0: all */
    bool torn;                  /* there are more of them than it looked like */
    char frozen[ID_LENGTH + 1];
};

static const struct strings *stack_of(const struct checkpoints *checkpoints)
{
    return &checkpoints->stay->plan->stack;
}

/* Somebody may have written, and gone, since we looked.  Now nobody is left. */
static bool is_torn(struct exchange *exchange, const struct stack_place *place)
{
    struct stack_place others = *place;

    others.trees = ~exchange->trees;
    exchange->torn = exchange->trees && others.trees && uppers_dirty(&others, stack_of(exchange->checkpoints));
    return exchange->torn;
}

static int freeze(struct exchange *exchange, struct strings *stack, struct error *err)
{
    const struct checkpoints *checkpoints = exchange->checkpoints;
    struct stack_place place = checkpoints_place(checkpoints);

    if (exchange->trees) {
        place.trees = exchange->dirty;
        place.known = stack_of(checkpoints);
    }
    if (stack_freeze(&place, checkpoints->jobs->steps, stack, err) < 0)
        return -1;
    snprintf(exchange->frozen, sizeof exchange->frozen, "%s", stack->items[0]);
    return 0;
}

/* Before it goes elsewhere: so that what was written since the last step can be gone back to, too.  Only a
 * stack that is too deep keeps it from that. */
static int exchange_layers(void *owner, struct strings *stack, struct error *err)
{
    struct exchange *exchange = owner;
    struct stack_place place = checkpoints_place(exchange->checkpoints);
    autostrings struct strings dropped = STRINGS_NONE;
    struct error why;

    if (is_torn(exchange, &place))
        return error_set(err, ERROR_REFUSED, "more was written meanwhile");
    if (!exchange->to)
        return freeze(exchange, stack, err);
    if (exchange->dirty && freeze(exchange, &dropped, &why) < 0 && !stack_is_whole(place.sandbox)) {
        *err = why;
        return -1;
    }
    place.trees = exchange->trees;
    place.known = exchange->onto;
    return stack_turn(&place, exchange->to, stack, err);
}

static int hear_other(void *owner, const struct message *message, const int *fds, size_t count,
                      struct error *err)
{
    const struct exchange *exchange = owner;
    int own[PROTOCOL_FDS_MAX];

    memcpy(own, fds, count * sizeof *fds);

    bool known = job_heard(exchange->checkpoints->jobs, message, own, count);

    for (size_t i = 0; i < count; i++)
        own_close(&own[i]);
    return known ? 0 : error_set(err, ERROR_REFUSED, "the sandbox sent a message out of place");
}

static void count_frozen(const struct checkpoints *checkpoints, const char *layer)
{
    autoclose int fd = openat(checkpoints->layers, layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        meter_add_frozen(checkpoints->meter, fd);
}

/* What a layer of our own stack lies on is known, unless others were put into the place of some. */
static const struct strings *find_onto(const struct checkpoints *checkpoints, const char *to,
                                       struct strings *out)
{
    const struct strings *stack = stack_of(checkpoints);
    struct error ignored;
    size_t at = 0;

    while (at < stack->len && strcmp(stack->items[at], to) != 0)
        at++;
    for (size_t i = at; i < stack->len; i++)
        strings_add(out, stack->items[i]);
    if (!out->len && layers_chain(checkpoints->layers, to, out, &ignored) < 0)
        return NULL;
    return out;
}

/* Which trees have to be exchanged: those that were written to, and those that look otherwise there.  All, if
 * that is not known, or if the sandbox does not lie any more on what is mounted. */
static void choose_trees(struct exchange *exchange, struct strings *onto)
{
    const struct checkpoints *checkpoints = exchange->checkpoints;
    const struct strings *stack = stack_of(checkpoints);
    struct stack_place place = checkpoints_place(checkpoints);

    exchange->dirty = uppers_dirty(&place, stack);
    if (!stack->len || checkpoints->later.restacked || exchange->dirty == UPPERS_ALL)
        return;
    exchange->trees = exchange->dirty;
    if (!exchange->to)
        return;
    exchange->onto = find_onto(checkpoints, exchange->to, onto);
    exchange->trees |= exchange->onto ? uppers_between(&place, stack, exchange->onto) : UPPERS_ALL;
    if (exchange->trees == UPPERS_ALL)
        exchange->trees = 0;
}

static int switch_once(struct exchange *exchange, struct error *err)
{
    struct checkpoints *checkpoints = exchange->checkpoints;
    const struct stay *stay = checkpoints->stay;
    struct box_switch what = { .plan = stay->plan,
                               .host = stay->host,
                               .dir = stay->dir,
                               .trees = exchange->trees,
                               .exchange = exchange_layers,
                               .other = hear_other,
                               .owner = exchange };

    return box_switch(checkpoints->box, &what, err);
}

/* As box_switch(). */
static int do_switch(struct exchange *exchange, struct error *err)
{
    struct checkpoints *checkpoints = exchange->checkpoints;
    autostrings struct strings onto = STRINGS_NONE;
    int done;

    later_make_room(&checkpoints->later);
    choose_trees(exchange, &onto);
    done = switch_once(exchange, err);
    if (done == SWITCH_KEPT && exchange->torn) {
        exchange->trees = 0;
        exchange->onto = NULL;
        done = switch_once(exchange, err);
    }
    if (*exchange->frozen && done >= 0) {
        count_frozen(checkpoints, exchange->frozen);
        retention_add(&checkpoints->retention, exchange->frozen, 0);
    }
    if (done == SWITCH_DONE && !exchange->trees)
        checkpoints->later.restacked = false;
    if (done == SWITCH_DONE) {
        *checkpoints->midway = '\0';
        later_switched(&checkpoints->later);
    }
    return done;
}

/* What is mounted, what will be, and the copy that the next one is made from.  A merger at work makes one that
 * nobody knows yet. */
void checkpoints_drop_old(struct checkpoints *checkpoints)
{
    struct stack_place place = checkpoints_place(checkpoints);
    autostrings struct strings used = STRINGS_NONE;
    char top[ID_LENGTH + 1];
    struct error ignored;

    if (checkpoints->later.child || stack_top(place.sandbox, top, &ignored) < 0 ||
        layers_chain(place.layers, top, &used, &ignored) < 0)
        return;
    strings_copy(&used, stack_of(checkpoints));
    strings_add(&used, checkpoints->midway);
    retention_tend(&checkpoints->retention, &place, checkpoints->jobs->trace, &used);
}

/* --- steps --- */

/* What was copied while it was in use may be gone by now. */
static bool is_due(const struct checkpoints *checkpoints)
{
    struct stack_place place = checkpoints_place(checkpoints);
    const struct strings *stack = stack_of(checkpoints);

    return !stack->len || *checkpoints->midway || uppers_are_dirty(&place, stack);
}

/* That it can be gone back to is said at once, what it changed when it was counted. */
static void record_layer(struct checkpoints *checkpoints, uint32_t number, const char *layer,
                         const char *before)
{
    struct error ignored;

    (void)states_write(checkpoints->jobs->trace, STATES_CHECKPOINT, layer, number, &ignored);
    counting_add(&checkpoints->counting, number, layer, before);
}

/* Only the last of several that were under way at once has the state that is frozen. */
static void write_all(struct checkpoints *checkpoints, const char *layer, const char *before, const char *why)
{
    struct jobs *jobs = checkpoints->jobs;

    for (size_t i = 0; i < jobs->over.len; i++) {
        uint32_t number = jobs->over.items[i];
        bool last = i + 1 == jobs->over.len;

        if (number <= checkpoints->turned)
            job_record_changed(jobs, number, "the sandbox was rolled back");
        else if (layer && !last)
            job_record_changed(jobs, number, "processes were running");
        else if (layer)
            record_layer(checkpoints, number, layer, before);
        else
            job_record_changed(jobs, number, why);
    }
    jobs->over.len = 0;
}

/* Other processes are alive. */
static bool is_in_use(int done, const struct error *err)
{
    return done == SWITCH_BUSY && err->sys_errno == EBUSY;
}

/* A frozen layer that shows what is there: by a switch, or else by a copy, which comes later.  Gives 1 if there
 * is none, and `err` says why. */
static int take(struct checkpoints *checkpoints, bool bounded, char layer[ID_LENGTH + 1], struct error *err)
{
    struct exchange exchange = { .checkpoints = checkpoints };
    bool used = jobs_running(checkpoints->jobs) > 0;
    int done = used ? SWITCH_BUSY : do_switch(&exchange, err);

    *layer = '\0';
    if (done < 0)
        return -1;
    if (done == SWITCH_DONE) {
        memcpy(layer, exchange.frozen, sizeof exchange.frozen);
        return 0;
    }
    if (!used && !is_in_use(done, err))
        return 1;
    done = midway_begin(checkpoints, bounded, err);
    if (done == MIDWAY_UNDER_WAY)
        return CHECKPOINTS_LATER;
    return done < 0 ? -1 : 1;
}

int checkpoints_tend(struct checkpoints *checkpoints, struct error *err)
{
    struct jobs *jobs = checkpoints->jobs;
    char layer[ID_LENGTH + 1], before[ID_LENGTH + 1];
    int taken;

    if (checkpoints->layers < 0)
        jobs->over.len = 0;
    else
        later_tend(&checkpoints->later);
    if (!jobs->over.len)
        return 0;
    if (!is_due(checkpoints)) {
        write_all(checkpoints, NULL, NULL, NULL);
        return 0;
    }
    snprintf(before, sizeof before, "%s", checkpoints_shown(checkpoints));
    taken = take(checkpoints, true, layer, err);
    if (taken < 0 || taken == CHECKPOINTS_LATER)
        return taken < 0 ? -1 : 0;
    write_all(checkpoints, *layer ? layer : NULL, before, taken == 0 ? NULL : err->text);
    checkpoints_drop_old(checkpoints);
    return 0;
}

/* All are at rest while it is made, so what has ended by now ended before it. */
void checkpoints_copied(struct checkpoints *checkpoints, int made, struct error *err)
{
    const char *layer = made == MIDWAY_MADE ? checkpoints->midway : NULL;
    struct jobs *jobs = checkpoints->jobs;
    struct error ignored;

    if (jobs->over.len && (made == MIDWAY_MADE || made == MIDWAY_SAME || checkpoints->making.bounded)) {
        write_all(checkpoints, layer, checkpoints->making.shown,
                  layer || made == MIDWAY_SAME ? NULL : err->text);
        checkpoints_drop_old(checkpoints);
    } else if (layer) {
        (void)states_write(jobs->trace, STATES_CHECKPOINT, layer, jobs->steps, &ignored);
    }
    checkpoints->copied(checkpoints->owner, made, err);
}

const char *checkpoints_shown(const struct checkpoints *checkpoints)
{
    const struct strings *stack = stack_of(checkpoints);

    return *checkpoints->midway ? checkpoints->midway : stack->len ? stack->items[0] : "";
}

int checkpoints_make(struct checkpoints *checkpoints, char layer[ID_LENGTH + 1], struct error *err)
{
    char fresh[ID_LENGTH + 1] = "";
    struct error ignored;
    int taken = 0;

    if (checkpoints->layers < 0) {
        error_set(err, ERROR_REFUSED, "this sandbox was made without checkpoints");
        return 1;
    }
    if (is_due(checkpoints))
        taken = take(checkpoints, false, fresh, err);
    if (taken != 0)
        return taken;
    snprintf(layer, ID_LENGTH + 1, "%s", checkpoints_shown(checkpoints));
    if (*fresh)
        (void)states_write(checkpoints->jobs->trace, STATES_CHECKPOINT, layer, checkpoints->jobs->steps,
                           &ignored);
    return 0;
}

int checkpoints_turn(struct checkpoints *checkpoints, const char *layer, uint64_t step, struct error *err)
{
    struct exchange exchange = { .checkpoints = checkpoints, .to = layer };
    struct trace *trace = checkpoints->jobs->trace;
    struct error ignored;
    int done;

    if (checkpoints->layers < 0) {
        error_set(err, ERROR_REFUSED, "this sandbox was made without checkpoints");
        return 1;
    }
    if (states_write(trace, STATES_ROLLBACK, layer, step, err) < 0)
        return 1;
    done = do_switch(&exchange, err);
    if (done < 0)
        return -1;
    if (*exchange.frozen)
        (void)states_write(trace, STATES_CHECKPOINT, exchange.frozen, checkpoints->jobs->steps, &ignored);
    if (done != SWITCH_DONE || *exchange.frozen) /* what it lies on in the end */
        (void)states_write(trace, STATES_ROLLBACK, done == SWITCH_DONE ? layer : checkpoints_shown(checkpoints),
                           done == SWITCH_DONE ? step : checkpoints->jobs->steps, &ignored);
    checkpoints->turned = done == SWITCH_DONE ? checkpoints->jobs->steps : checkpoints->turned;
    return done == SWITCH_DONE ? 0 : 1;
}

/* --- the beginning --- */

/* A merged layer shows what the first of its parts does. */
static bool is_known(const struct checkpoints *checkpoints, const struct states *states, const char *top)
{
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;
    struct error ignored;

    if (layers_read(checkpoints->layers, top, &layer, &ignored) < 0)
        return false;
    return strcmp(states->now, top) == 0 ||
           (layer.merged.len && strcmp(states->now, layer.merged.items[0]) == 0);
}

/* What copies of one sandbox share counts for none of them: they are there to be dropped. */
static void count_layer(const struct checkpoints *checkpoints, const char *layer)
{
    autofree char *known = text_format("%s/" LIVECOPY_KNOWN, layer);
    uint64_t bytes = 0, files = 0;
    struct error ignored;

    if (faccessat(checkpoints->layers, known, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        count_frozen(checkpoints, layer);
    else if (layers_size(checkpoints->layers, layer, &bytes, &files, &ignored) == 0)
        meter_add_copied(checkpoints->meter, bytes, 0);
}

static void count_all(const struct checkpoints *checkpoints)
{
    autostrings struct strings all = STRINGS_NONE;
    struct error ignored;

    (void)layers_list(checkpoints->layers, &all, &ignored);
    for (size_t i = 0; i < all.len; i++) {
        autofree char *path = text_format("%s/refs/%s", all.items[i], checkpoints->stay->dir->id);

        if (faccessat(checkpoints->layers, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            count_layer(checkpoints, all.items[i]);
    }
}

int checkpoints_open(struct checkpoints *checkpoints, struct error *err)
{
    const struct stay *stay = checkpoints->stay;
    struct stack_place place = { .sandbox = stay->dir->fd };

    checkpoints->counting.stay = stay;
    checkpoints->counting.jobs = checkpoints->jobs;
    if (stay->record->no_checkpoints || !uppers_exist(&place))
        return 0;
    checkpoints->layers = layers_open(stay->host->state, err);
    return checkpoints->layers < 0 ? -1 : 0;
}

int checkpoints_begin(struct checkpoints *checkpoints, struct error *err)
{
    const struct stay *stay = checkpoints->stay;
    struct exchange exchange = { .checkpoints = checkpoints };
    struct stack_place place = checkpoints_place(checkpoints);
    autostates struct states states = STATES_NONE;
    struct error ignored;
    const char *top;

    if (checkpoints->layers < 0)
        return 0;
    later_begin(&checkpoints->later, &place, &stay->plan->ids, checkpoints->jobs->loop);
    count_all(checkpoints);
    checkpoints->retention.bounds = stay->bounds;
    (void)states_read(stay->dir->fd, &states, &ignored);
    retention_begin(&checkpoints->retention, &states);
    if (is_due(checkpoints) && do_switch(&exchange, err) < 0)
        return -1;
    if (!stay->plan->stack.len)
        return 0;
    top = stay->plan->stack.items[0];
    if (!states.len)
        memcpy(checkpoints->retention.first, top, sizeof checkpoints->retention.first);
    if (*exchange.frozen || !is_known(checkpoints, &states, top))
        (void)states_write(checkpoints->jobs->trace, STATES_CHECKPOINT, top, checkpoints->jobs->steps,
                           &ignored);
    if (stay->plan->resumed)
        counting_recover(&checkpoints->counting);
    checkpoints_drop_old(checkpoints);
    return 0;
}

int checkpoints_patience(const struct checkpoints *checkpoints)
{
    return checkpoints->layers < 0 ? -1 : later_patience(&checkpoints->later);
}

void checkpoints_settle(struct checkpoints *checkpoints, bool read)
{
    enum { PATIENCE_MS = 2000 };

    counting_settle(&checkpoints->counting, read ? PATIENCE_MS : 0);
}

void checkpoints_end(struct checkpoints *checkpoints)
{
    if (checkpoints->layers < 0)
        return;
    midway_abandon(checkpoints);
    later_end(&checkpoints->later);
    retention_free(&checkpoints->retention);
    close(steal_fd(&checkpoints->layers));
}
