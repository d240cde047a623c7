#pragma once

/* How many tries may run at once: never more than memory admits. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADMIT_GUESS_KIB = 128 << 10 }; /* what a try is taken to need before one was seen */

struct admission {
    uint64_t limit_kib; /* of each; 0: none */
    uint64_t seen_kib;  /* the most that one has needed so far; 0: none has ended */
    uint64_t first_kib; /* what was free when none ran */
};

/* What one more is taken to need. */
uint64_t admit_need(const struct admission *admission);

/* Whether one more may begin beside `running`, with so much free now.  The first one always may: less than one
 * is nothing. */
bool admit_one_more(const struct admission *admission, uint64_t free_kib, size_t running);

/* MemAvailable of a text as /proc/meminfo is; UINT64_MAX: it does not say. */
uint64_t admit_read(const char *meminfo);
