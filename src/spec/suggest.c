#include "spec/suggest.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 40 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to add, drop, change or swap with their neighbour until one word is the other. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t cost[LONGEST + 1][LONGEST + 1];

    for (size_t i = 0; i <= a_len; i++) {
        for (size_t j = 0; j <= b_len; j++) {
            if (!i || !j) {
                cost[i][j] = i + j;
                continue;
            }
            cost[i][j] =
                least(least(cost[i - 1][j], cost[i][j - 1]) + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost[a_len][b_len];
}

void suggest_offer(struct suggest *suggest, const char *word, const char *candidate)
{
    size_t word_len = strlen(word), len = strlen(candidate);

    if (word_len > LONGEST || len > LONGEST || !word_len)
        return;

    size_t far = distance(word, word_len, candidate, len);

    /* One slip in a short word, two in a longer one; more is another word. */
    if (far > (len < 5 ? 1 : 2) || (suggest->best && far >= suggest->distance))
        return;
    suggest->best = candidate;
    suggest->distance = far;
}

void suggest_add(const struct suggest *suggest, const char *above, struct text *out)
{
    if (suggest->best)
        text_addf(out, " (did you mean %s%s?)", above, suggest->best);
}
