#include "explore/ranking.h"

#include "base/memory.h"
#include "explore/score.h"

#include <stdlib.h>
#include <string.h>

bool ranking_is_good(const struct tried *tried)
{
    double score;

    if (strcmp(tried->reason, "failed") == 0 || !tried->score || !score_read(tried->score, &score))
        return false;
    return score > 0 || (tried->score_by && strcmp(tried->score_by, "number") == 0);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_scores(const struct tried *a, const struct tried *b)
{
    double of_a = 0, of_b = 0;
    bool has_a = a->score && score_read(a->score, &of_a), has_b = b->score && score_read(b->score, &of_b);

    if (has_a != has_b)
        return has_a ? -1 : 1;
    return (of_a < of_b) - (of_a > of_b);
}

/* A file that has no lines counts as well. */
static uint64_t size_of(const struct tried *tried)
{
    return tried->added + tried->removed + tried->files;
}

int ranking_compare(const struct tried *a, const struct tried *b)
{
    bool good_a = ranking_is_good(a), good_b = ranking_is_good(b);
    int order = good_a != good_b ? (good_a ? -1 : 1) : compare_scores(a, b);

    if (order == 0)
        order = compare_numbers(size_of(a), size_of(b));
    return order ? order : compare_numbers(a->number, b->number);
}

static int by_rank(const void *a, const void *b)
{
    const struct tried *of_a = ((const struct ranked *)a)->tried, *of_b = ((const struct ranked *)b)->tried;
    int order = compare_numbers(of_a->task, of_b->task);

    return order ? order : ranking_compare(of_a, of_b);
}

struct ranked *ranking_sort(const struct results *results)
{
    struct ranked *sorted = memory_zero((results->len + 1) * sizeof *sorted);

    for (size_t i = 0; i < results->len; i++)
        sorted[i].tried = &results->items[i];
    qsort(sorted, results->len, sizeof *sorted, by_rank);
    return sorted;
}

const struct tried *ranking_best(const struct results *results, uint64_t task)
{
    const struct tried *best = NULL;

    for (size_t i = 0; i < results->len; i++) {
        const struct tried *tried = &results->items[i];

        if (tried->task == task && ranking_is_good(tried) && (!best || ranking_compare(tried, best) < 0))
            best = tried;
    }
    return best;
}
