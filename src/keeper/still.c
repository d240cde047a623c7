#include "keeper/still.h"

#include "base/error.h"
#include "base/own.h"
#include "keeper/record.h"
#include "keeper/states.h"
#include "keeper/uppers.h"
#include "store/bottom.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct stack_place place_of(const struct still *still, int layers)
{
    return (struct stack_place){ .layers = layers,
                                 .sandbox = still->dir->fd,
                                 .id = still->dir->id,
                                 .ids = still->record->shifted ? (uint32_t)still->record->base : 0 };
}

/* The state after the last step that was started, and the trace says so. */
static int freeze(const struct still *still, const struct stack_place *place, struct trace *trace,
                  struct error *err)
{
    autostates struct states states = STATES_NONE;
    autostrings struct strings chain = STRINGS_NONE;

    if (states_read(still->dir->fd, &states, err) < 0 || stack_freeze(place, states.last, &chain, err) < 0)
        return -1;
    return states_write(trace, STATES_CHECKPOINT, chain.items[0], states.last, err);
}

static int freeze_if_due(const struct still *still, const struct stack_place *place, struct trace *trace,
                         char top[ID_LENGTH + 1], struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;
    char copy[ID_LENGTH + 1];

    if (stack_repair(place, err) < 0 || stack_top(place->sandbox, top, err) < 0 ||
        layers_chain(place->layers, top, &chain, err) < 0 || bottom_find(place->layers, top, copy, err) < 0)
        return -1;
    if (strcmp(top, copy) != 0 && !uppers_are_dirty(place, &chain))
        return 0;
    return freeze(still, place, trace, err) < 0 ? -1 : stack_top(place->sandbox, top, err);
}

static int turn(const struct still *still, const struct stack_place *place, struct trace *trace,
                const char *layer, uint64_t step, struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;
    char top[ID_LENGTH + 1];

    if (freeze_if_due(still, place, trace, top, err) < 0)
        return -1;
    if (states_write(trace, STATES_ROLLBACK, layer, step, err) < 0)
        return -1;
    return stack_turn(place, layer, &chain, err);
}

int still_checkpoint(const struct still *still, char layer[ID_LENGTH + 1], struct error *err)
{
    autoclose int layers = layers_open(still->state, err);
    struct stack_place place = place_of(still, layers);
    struct trace trace = TRACE_NONE;

    if (layers < 0 || trace_open(still->dir->fd, &trace, err) < 0)
        return -1;

    int result = freeze_if_due(still, &place, &trace, layer, err);

    trace_close(&trace);
    return result;
}

int still_turn(const struct still *still, const char *layer, uint64_t step, struct error *err)
{
    autoclose int layers = layers_open(still->state, err);
    struct stack_place place = place_of(still, layers);
    struct trace trace = TRACE_NONE;

    if (layers < 0 || trace_open(still->dir->fd, &trace, err) < 0)
        return -1;

    int result = turn(still, &place, &trace, layer, step, err);

    trace_close(&trace);
    return result;
}
