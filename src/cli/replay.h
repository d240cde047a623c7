#pragma once

/* What a step wrote, once more: to standard output and standard error, or as lines of JSON. */

#include "cli/screen.h"
#include "store/output_read.h"

#include <stdbool.h>

struct error;

struct replay {
    bool json, timestamps;
    struct screen screens[2];
    bool within[2]; /* a line of this stream: it has its time already */
};

void replay_open(struct replay *replay, bool json, bool timestamps);

/* A visitor of output_read(), whose owner is a struct replay. */
int replay_event(void *owner, const struct output_event *event);

/* So many bytes of each stream were not kept here. */
void replay_left_out(struct replay *replay, const struct output_count *left_out);

/* errno of the first write that failed; 0: none. */
int replay_failed(const struct replay *replay);

/* Leaves terminals as they should be.  -1 if something could not be written. */
int replay_close(struct replay *replay, struct error *err);
