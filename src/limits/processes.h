#pragma once

/* The processes of a sandbox, seen from outside: where there is no group that counts them. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct processes {
    uint64_t count;     /* with threads, without PID 1 */
    uint64_t anonymous; /* bytes that are nobody's file, also where they were swapped to */
    uint64_t shared;    /* bytes of shared memory */
};

/* Whether this kernel lists who is inside.  Without that, the rest sees PID 1 alone. */
bool processes_can_be_seen(void);

/* Walks from PID 1 down, by what the kernel lists as children; who is born or dies meanwhile may be missed.  A
 * page that several have counts for each of them.  Costs some ten microseconds a process, and looks at a
 * bounded number of them. */
void processes_look(pid_t init, struct processes *out);

/* The same with each page once, and without `count`.  Reads every page table: only for when it is close. */
void processes_look_closer(pid_t init, struct processes *out);

/* Bytes of files without a name that a process has open: removed ones on a disk, and those that never were
 * anywhere but in memory (memfd). */
struct unlinked {
    uint64_t disk, memory;
};

void processes_unlinked(pid_t init, struct unlinked *out);

/* Whether somebody may hold removed files on a disk that the above cannot see: mapped and closed, or on their
 * way through a socket. */
bool processes_hide_files(pid_t init);

/* Whether somebody has a file mapped so that it can be written without a call, or may have: its times tell of
 * the first such write only. */
bool processes_map_files(pid_t init);

/* Whether nobody but PID 1 runs any more, after they were told to stop: each thread has stopped, is dead, or
 * waits in the kernel for a child that has its memory, and has stopped (vfork). */
bool processes_are_still(pid_t init);
