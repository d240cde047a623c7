#pragma once

/* Which try is better: the higher score, then the smaller change, then the earlier number. */

#include "explore/results.h"

/* Less than 0: `a` comes first. */
int ranking_compare(const struct tried *a, const struct tried *b);

/* Whether it may win at all: our own failures and what has no score may not, nor what failed where only success
 * counts. */
bool ranking_is_good(const struct tried *tried);

struct ranked {
    const struct tried *tried; /* of the results */
};

/* The lines in their order, task by task, as many as there are.  The caller frees. */
struct ranked *ranking_sort(const struct results *results);

/* The best one of a task (0: there are none) that may win; NULL: none. */
const struct tried *ranking_best(const struct results *results, uint64_t task);
