#pragma once

/* The process that brings work home while a sandbox runs (docs/live.md). */

#include "keeper/live_bring.h"

enum { LIVE_FINISH = 'F' }; /* what the keeper says when no process is left in the sandbox */

/* Returns when LIVE_FINISH came over `control`, and fills in what is left; or -1 when it was closed:
 * then the keeper is dead, and everything is left as it is.  `prints` is the file for them. */
struct live_end {
    uint64_t brought, counts[BRING_KINDS];
    struct bring_rests rests;
    bool slow; /* not everything could be watched */
    struct error problem;
};

int live_main(const struct live_sides *sides, int control, int prints, struct live_end *end);
