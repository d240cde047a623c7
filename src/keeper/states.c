#include "keeper/states.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "trace/read.h"
#include "trace/step.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void states_free(struct states *states)
{
    for (size_t i = 0; i < states->len; i++)
        free(states->items[i].why);
    free(states->items);
    free(states->beginnings.items);
    strings_free(&states->named);
    strings_free(&states->dropped);
    *states = STATES_NONE;
}

static const struct state *find(const struct states *states, uint64_t step)
{
    for (size_t i = states->len; i--;)
        if (states->items[i].step == step)
            return &states->items[i];
    return NULL;
}

/* What is known stays: a step that was rolled back has no word of its own against its checkpoint. */
static void put(struct states *states, uint64_t step, const char *layer, const char *why)
{
    struct state *state = (struct state *)(uintptr_t)find(states, step);

    if (state && !*layer)
        return;
    if (!state)
        state = array_add(states);
    free(state->why);
    state->step = step;
    state->why = why ? text_copy(why) : NULL;
    snprintf(state->layer, sizeof state->layer, "%s", layer);
}

static const char *text_of(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);

    return node && (node->kind == NODE_STRING || node->kind == NODE_NUMBER) ? node->text : NULL;
}

static uint64_t number_of(const struct node *map, const char *key)
{
    const char *text = text_of(map, key);

    return text ? strtoull(text, NULL, 10) : 0;
}

static void lie_on(struct states *states, const char *layer)
{
    snprintf(states->now, sizeof states->now, "%s", layer && store_is_id(layer) ? layer : "");
}

static bool knows(const struct states *states, const char *layer)
{
    for (size_t i = states->len; i--;)
        if (strcmp(states->items[i].layer, layer) == 0)
            return true;
    return false;
}

static void make_known(struct states *states, const char *layer)
{
    if (layer && store_is_id(layer))
        strings_add(&states->named, layer);
}

static bool is_dropped(const struct states *states, const char *layer)
{
    for (size_t i = states->dropped.len; i--;)
        if (strcmp(states->dropped.items[i], layer) == 0)
            return true;
    return false;
}

static void take_changed(struct states *states, const struct node *data)
{
    const char *layer = text_of(data, "checkpoint"), *why = text_of(data, "no_checkpoint");

    if (layer && is_dropped(states, layer)) /* before it was counted */
        return;
    if (layer && knows(states, layer)) { /* it was said when it was made; what it changed was counted later */
        put(states, number_of(data, "number"), layer, NULL);
        return;
    }
    make_known(states, layer);
    if (layer || why)
        lie_on(states, layer);
    put(states, number_of(data, "number"), states->now, *states->now ? NULL : why);
}

static void take_started(struct states *states, const struct node *data)
{
    struct beginning *beginning = array_add(&states->beginnings);

    beginning->step = states->last = number_of(data, "number");
    beginning->parent = states->at;
    memcpy(beginning->before, states->now, sizeof beginning->before);
    states->at = beginning->step;
}

/* Steps that changed nothing show the same layer, so more than one may lose it. */
static void take_dropped(struct states *states, const struct node *data)
{
    const char *layer = text_of(data, "layer"), *why = text_of(data, "why");
    bool space = why && strcmp(why, "space") == 0;

    if (layer)
        strings_add(&states->dropped, layer);
    for (size_t i = 0; layer && i < states->len; i++) {
        struct state *state = &states->items[i];

        if (strcmp(state->layer, layer) != 0)
            continue;
        *state->layer = '\0';
        free(state->why);
        state->why = text_copy(space ? "it was dropped, as the checkpoints took more than checkpoints.space"
                                     : "it was dropped, as there were more than checkpoints.keep");
    }
    for (size_t i = states->named.len; layer && i--;)
        if (strcmp(states->named.items[i], layer) == 0)
            *states->named.items[i] = '\0';
    for (size_t i = 0; layer && i < states->beginnings.len; i++)
        if (strcmp(states->beginnings.items[i].before, layer) == 0)
            *states->beginnings.items[i].before = '\0';
}

static int visit(void *owner, const struct trace_line *line, bool verified)
{
    struct states *states = owner;
    const struct node *data = &line->data;

    (void)verified;
    if (strcmp(line->kind, STEP_STARTED) == 0)
        take_started(states, data);
    else if (strcmp(line->kind, STEP_FILES) == 0)
        take_changed(states, data);
    else if (strcmp(line->kind, STATES_DROPPED) == 0)
        take_dropped(states, data);
    else if (strcmp(line->kind, STATES_ROLLBACK) == 0 || strcmp(line->kind, STATES_UNDO) == 0) {
        lie_on(states, text_of(data, "layer"));
        states->at = number_of(data, "step");
    } else if (strcmp(line->kind, STATES_CHECKPOINT) == 0) {
        make_known(states, text_of(data, "layer"));
        lie_on(states, text_of(data, "layer"));
        put(states, number_of(data, "step"), states->now, NULL);
    }
    return 0;
}

int states_read(int dir, struct states *out, struct error *err)
{
    struct states states = STATES_NONE;
    struct trace_found found;
    struct error why;

    if (trace_read(dir, visit, &states, &found, &why) < 0 && why.kind != ERROR_MISSING) {
        states_free(&states);
        *err = why;
        return -1;
    }
    *out = states;
    return 0;
}

bool states_has(const struct states *states, uint64_t step)
{
    return find(states, step) != NULL;
}

const char *states_why(const struct states *states, uint64_t step)
{
    const struct state *state = find(states, step);

    return state && !*state->layer ? state->why : NULL;
}

int states_find(const struct states *states, uint64_t step, char layer[ID_LENGTH + 1], struct error *err)
{
    const struct state *state = find(states, step);

    if (state && *state->layer) {
        memcpy(layer, state->layer, sizeof state->layer);
        return 0;
    }
    if (step > states->last)
        return error_set(err, ERROR_MISSING, "there is no step %llu; the last one is %llu",
                         (unsigned long long)step, (unsigned long long)states->last);
    return error_set(err, ERROR_REFUSED, "step %llu has no checkpoint: %.200s", (unsigned long long)step,
                     state && state->why ? state->why : "nobody made one when it ended");
}

static const struct beginning *beginning_of(const struct states *states, uint64_t step)
{
    for (size_t i = states->beginnings.len; i--;)
        if (states->beginnings.items[i].step == step)
            return &states->beginnings.items[i];
    return NULL;
}

int states_begin(const struct states *states, uint64_t number, uint64_t *step, char layer[ID_LENGTH + 1],
                 struct error *err)
{
    const struct beginning *beginning = beginning_of(states, number);

    if (!beginning)
        return error_set(err, ERROR_MISSING, "there is no step %llu", (unsigned long long)number);
    if (!*beginning->before)
        return error_set(err, ERROR_REFUSED, "what was before step %llu has no checkpoint",
                         (unsigned long long)number);
    *step = beginning->parent;
    memcpy(layer, beginning->before, sizeof beginning->before);
    return 0;
}

/* One that still runs, a server for example, is as if it had not when the next one began with the same:
 * `after`. */
static bool changed_something(const struct states *states, const struct beginning *beginning, const char *after)
{
    const struct state *state = find(states, beginning->step);

    if (!state)
        return !*beginning->before || strcmp(after, beginning->before) != 0;
    return !*state->layer || strcmp(state->layer, beginning->before) != 0;
}

int states_before(const struct states *states, uint64_t count, uint64_t *step, uint64_t *undone,
                  char layer[ID_LENGTH + 1], struct error *err)
{
    const struct beginning *last = beginning_of(states, states->at);
    const char *after = states->now;

    for (uint64_t left = count; last; after = last->before, last = beginning_of(states, last->parent))
        if (changed_something(states, last, after) && --left == 0)
            break;
    if (!last && count == 1)
        return error_set(err, ERROR_MISSING, "there is no step left to undo; `cove steps` lists them");
    if (!last)
        return error_set(err, ERROR_MISSING,
                         "there are not %llu steps that changed something; `cove steps` lists them",
                         (unsigned long long)count);
    *undone = last->step;
    return states_begin(states, last->step, step, layer, err);
}

int states_write_dropped(struct trace *trace, const char *layer, const char *why, struct error *err)
{
    autonode struct node data = { .kind = NODE_MAP };

    node_add(&data, "layer", NODE_STRING, layer);
    node_add(&data, "why", NODE_STRING, why);
    return trace_add(trace, STATES_DROPPED, &data, err);
}

int states_write(struct trace *trace, const char *kind, const char *layer, uint64_t step, struct error *err)
{
    autonode struct node data = { .kind = NODE_MAP };
    autofree char *number = text_format("%llu", (unsigned long long)step);

    node_add(&data, "layer", NODE_STRING, layer);
    node_add(&data, "step", NODE_NUMBER, number);
    return trace_add(trace, kind, &data, err);
}
