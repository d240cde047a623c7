#pragma once

/* What steps changed is counted after their end was told, by a process that nobody waits for: it has a low
 * priority, a bounded time, and takes all that has come together meanwhile.  What it finds are two lines of the
 * trace for each step: the files and their number, and SHA-256 of the new contents. */

#include "base/text.h"
#include "keeper/loop.h"
#include "store/store.h"

#include <stdint.h>
#include <sys/types.h>

struct jobs;
struct stay;

/* A step, the checkpoint after it, and what showed the files before; "": nobody knows. */
struct counting_step {
    uint32_t number;
    char layer[ID_LENGTH + 1], before[ID_LENGTH + 1];
    bool told; /* its third line is written */
};

struct counting_steps {
    struct counting_step *items;
    size_t len, cap;
};

struct counting {
    const struct stay *stay;
    struct jobs *jobs;
    struct counting_steps waiting, under_way;
    uint64_t first, last; /* in microseconds: when the first and the last of those that wait came */
    pid_t child;          /* 0: none */
    struct loop_source source;
    struct text heard; /* from it: a line that is not whole yet */
};

#define COUNTING_NONE ((struct counting){ .source = { .fd = -1 } })

/* Its line in the trace comes in any case, if need be without numbers. */
void counting_add(struct counting *counting, uint32_t number, const char *layer, const char *before);

/* Starts the process when it is time to; how long until then, in milliseconds: -1: that is open. */
void counting_tend(struct counting *counting);
int counting_patience(const struct counting *counting);

/* After a start: what an earlier keeper has frozen and not counted. */
void counting_recover(struct counting *counting);

/* Before the trace is closed: waits so long for what is under way, and writes the lines that are left. */
void counting_settle(struct counting *counting, unsigned patience_ms);
