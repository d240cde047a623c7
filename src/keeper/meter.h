#pragma once

/* What a running sandbox uses, and whether that is more than it may: the part of its limits that the
 * keeper has to look at itself, and the numbers for the report. */

#include "limits/disk.h"
#include "limits/limits.h"

#include <sys/types.h>

struct box;
struct cgroup;
struct result;

struct meter {
    const struct limits *limits;
    const struct cgroup *cgroup;
    pid_t init;
    int layers;         /* the sandbox's directory, or -1 */
    uint64_t began, at; /* CLOCK_MONOTONIC in microseconds: the start, and the next look */
    uint64_t memory_peak, processes_peak;
    struct disk_free first, free;        /* of the disk: at the start, and when the layers were walked */
    uint64_t used_bytes, used_files;     /* of the layers then */
    uint64_t frozen_bytes, frozen_files; /* of what it wrote before, which lies elsewhere by now */
    uint64_t walk_again, walk_anyway;
    uint64_t memory_files, memory_files_at; /* in files without a name, and when to look again */
};

#define METER_NONE 0xff /* no limit is passed */

void meter_begin(struct meter *meter, const struct limits *limits, const struct box *box, int layers);

/* Whether a limit depends on our looking. */
bool meter_keeps(const struct meter *meter);

/* A frozen layer of the sandbox counts from now on. */
void meter_add_frozen(struct meter *meter, int layer);

/* The same of one that shares most of what it holds with others: only so much is its own. */
void meter_add_copied(struct meter *meter, uint64_t bytes, uint64_t files);

/* Milliseconds to the next look. */
int meter_patience(const struct meter *meter);

/* Looks, if it is time.  Gives the limit that is passed and has to end the run, else METER_NONE. */
unsigned meter_look(struct meter *meter);

/* The same of the disk alone, whatever the time: a command that is over may have been quicker than a look. */
unsigned meter_last_look(struct meter *meter);

/* Between the two: at once, unless the last look was just now and the disk has not lost as much since. */
unsigned meter_look_at_disk(struct meter *meter);

/* Whether the kernel ended something because of its memory limit. */
bool meter_killed(const struct meter *meter);

/* The numbers of the whole run, while PID 1 is still there: peaks, and which limits were reached. */
void meter_end(const struct meter *meter, struct result *result);
