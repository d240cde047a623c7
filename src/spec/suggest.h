#pragma once

#include <stddef.h>

struct text;

/* The best near miss seen so far.  Start with SUGGEST_NONE, offer all candidates, then look at
 * `best`: NULL if none was near enough to be meant. */
struct suggest {
    const char *best;
    size_t distance;
};

#define SUGGEST_NONE ((struct suggest){ 0 })

void suggest_offer(struct suggest *suggest, const char *word, const char *candidate);

/* " (did you mean ABOVEbest?)", or nothing. */
void suggest_add(const struct suggest *suggest, const char *above, struct text *out);
