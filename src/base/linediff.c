/* Lines become numbers, equal lines equal numbers, and the shortest way from one row of numbers to
 * the other is found in linear space: E. Myers, "An O(ND) Difference Algorithm and Its Variations",
 * 1986.  From both ends the furthest points that d steps reach are kept, diagonal by diagonal; where
 * the two meet is a point of a shortest way, and the parts before and after it are found alike. */

#include "base/linediff.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONTEXT = 3U,
    STEPS_MAX = 2000, /* differences of one part; beyond that it is shown as replaced */
};

struct line {
    const char *start;
    size_t len; /* with its newline */
    uint64_t hash;
};

struct side {
    struct line *lines;
    size_t count;
    bool *changed;
};

struct compare {
    struct side old, new;
    long *forward, *backward; /* by diagonal, from `middle` */
    long middle;
};

static uint64_t hash_line(const char *start, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325ULL;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)start[i]) * 0x100000001b3ULL;
    return hash;
}

static void split(const char *text, size_t len, struct side *out)
{
    size_t count = 0;

    for (size_t at = 0; at < len; count++) {
        const char *end = memchr(text + at, '\n', len - at);

        at = end ? (size_t)(end - text) + 1 : len;
    }
    out->lines = memory_zero((count + 1) * sizeof *out->lines);
    out->changed = memory_zero((count + 1) * sizeof *out->changed);
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t next = end ? (size_t)(end - text) + 1 : len;

        out->lines[out->count++] = (struct line){ text + at, next - at, hash_line(text + at, next - at) };
        at = next;
    }
}

static void side_free(struct side *side)
{
    free(side->lines);
    free(side->changed);
}

static bool same(const struct compare *compare, long i, long j)
{
    const struct line *a = &compare->old.lines[i], *b = &compare->new.lines[j];

    return a->hash == b->hash && a->len == b->len && memcmp(a->start, b->start, a->len) == 0;
}

/* A part: lines [i, i_end) of the old and [j, j_end) of the new text. */
struct part {
    long i, i_end, j, j_end;
};

static void mark(struct compare *compare, struct part part)
{
    for (long i = part.i; i < part.i_end; i++)
        compare->old.changed[i] = true;
    for (long j = part.j; j < part.j_end; j++)
        compare->new.changed[j] = true;
}

/* One step further from the start; true where the ways meet, at (*i, *j). */
static bool step_forward(struct compare *compare, struct part part, long d, long *i, long *j)
{
    long *forward = compare->forward + compare->middle, *backward = compare->backward + compare->middle;
    long n = part.i_end - part.i, m = part.j_end - part.j, delta = n - m;

    for (long k = -d; k <= d; k += 2) {
        long x = k == -d || (k != d && forward[k - 1] < forward[k + 1]) ? forward[k + 1] : forward[k - 1] + 1;

        while (x < n && x - k < m && x - k >= 0 && same(compare, part.i + x, part.j + x - k))
            x++;
        forward[k] = x;
        if (delta & 1 && labs(delta - k) < d && x + backward[delta - k] >= n) {
            *i = part.i + x;
            *j = part.j + x - k;
            return true;
        }
    }
    return false;
}

/* Likewise from the end; x counts from there. */
static bool step_backward(struct compare *compare, struct part part, long d, long *i, long *j)
{
    long *forward = compare->forward + compare->middle, *backward = compare->backward + compare->middle;
    long n = part.i_end - part.i, m = part.j_end - part.j, delta = n - m;

    for (long k = -d; k <= d; k += 2) {
        long x =
            k == -d || (k != d && backward[k - 1] < backward[k + 1]) ? backward[k + 1] : backward[k - 1] + 1;

        while (x < n && x - k < m && x - k >= 0 && same(compare, part.i_end - 1 - x, part.j_end - 1 - (x - k)))
            x++;
        backward[k] = x;
        if (!(delta & 1) && labs(delta - k) <= d && x + forward[delta - k] >= n) {
            *i = part.i_end - x;
            *j = part.j_end - (x - k);
            return true;
        }
    }
    return false;
}

static bool find_meeting(struct compare *compare, struct part part, long *i, long *j)
{
    compare->forward[compare->middle + 1] = compare->backward[compare->middle + 1] = 0;
    for (long d = 0; d <= STEPS_MAX; d++)
        if (step_forward(compare, part, d, i, j) || step_backward(compare, part, d, i, j))
            return *i >= part.i && *i <= part.i_end && *j >= part.j && *j <= part.j_end;
    return false;
}

static void compare_part(struct compare *compare, struct part part)
{
    long i, j;

    for (; part.i < part.i_end && part.j < part.j_end && same(compare, part.i, part.j); part.j++)
        part.i++;
    for (; part.i < part.i_end && part.j < part.j_end && same(compare, part.i_end - 1, part.j_end - 1);
         part.j_end--)
        part.i_end--;
    if (part.i == part.i_end || part.j == part.j_end || !find_meeting(compare, part, &i, &j) ||
        (i == part.i && j == part.j) || (i == part.i_end && j == part.j_end)) {
        mark(compare, part);
        return;
    }
    compare_part(compare, (struct part){ part.i, i, part.j, j });
    compare_part(compare, (struct part){ i, part.i_end, j, part.j_end });
}

static void compare_texts(struct compare *compare, const char *old, size_t old_len, const char *new,
                          size_t new_len)
{
    *compare = (struct compare){ 0 };
    split(old, old_len, &compare->old);
    split(new, new_len, &compare->new);
    compare->middle = STEPS_MAX + 1;
    compare->forward = memory_zero((2 * STEPS_MAX + 4) * sizeof *compare->forward);
    compare->backward = memory_zero((2 * STEPS_MAX + 4) * sizeof *compare->backward);
    compare_part(compare, (struct part){ 0, (long)compare->old.count, 0, (long)compare->new.count });
}

static void compare_free(struct compare *compare)
{
    side_free(&compare->old);
    side_free(&compare->new);
    free(compare->forward);
    free(compare->backward);
}

/* --- hunks --- */

static void put_line(struct text *out, char mark, const struct line *line)
{
    text_add_bytes(out, &mark, 1);
    text_add_bytes(out, line->start, line->len);
    if (line->start[line->len - 1] != '\n')
        text_add(out, "\n\\ No newline at end of file\n");
}

static void put_range(struct text *out, char mark, size_t start, size_t count)
{
    text_addf(out, "%c%zu", mark, count ? start + 1 : start);
    if (count != 1)
        text_addf(out, ",%zu", count);
}

/* From (i, j), where something differs, to where more lines in a row are equal than the context after
 * this and before the next hunk takes. */
static void find_hunk_end(const struct compare *compare, size_t *i, size_t *j)
{
    size_t equal = 0;

    while (equal <= CONTEXT + CONTEXT && (*i < compare->old.count || *j < compare->new.count)) {
        bool gone = *i < compare->old.count && compare->old.changed[*i];
        bool came = *j < compare->new.count && compare->new.changed[*j];

        equal = gone || came ? 0 : equal + 1;
        *i += gone || !came;
        *j += !gone;
    }
    if (equal > CONTEXT) {
        *i -= equal - CONTEXT;
        *j -= equal - CONTEXT;
    }
}

static void put_hunk(struct text *out, const struct compare *compare, struct part part)
{
    text_add(out, "@@ ");
    put_range(out, '-', (size_t)part.i, (size_t)(part.i_end - part.i));
    text_add(out, " ");
    put_range(out, '+', (size_t)part.j, (size_t)(part.j_end - part.j));
    text_add(out, " @@\n");
    while (part.i < part.i_end || part.j < part.j_end) {
        if (part.i < part.i_end && compare->old.changed[part.i])
            put_line(out, '-', &compare->old.lines[part.i++]);
        else if (part.j < part.j_end && compare->new.changed[part.j])
            put_line(out, '+', &compare->new.lines[part.j++]);
        else {
            put_line(out, ' ', &compare->old.lines[part.i++]);
            part.j++;
        }
    }
}

void linediff_hunks(const char *old, size_t old_len, const char *new, size_t new_len, struct text *out)
{
    struct compare compare;
    size_t i = 0, j = 0;

    compare_texts(&compare, old, old_len, new, new_len);
    while (i < compare.old.count || j < compare.new.count) {
        if (!(i < compare.old.count && compare.old.changed[i]) &&
            !(j < compare.new.count &&compare.new.changed[j])) {
            i++;
            j++;
            continue;
        }
        size_t before = i < CONTEXT ? i : CONTEXT;
        struct part part = { .i = (long)(i - before), .j = (long)(j - before) };

        find_hunk_end(&compare, &i, &j);
        part.i_end = (long)i;
        part.j_end = (long)j;
        put_hunk(out, &compare, part);
    }
    compare_free(&compare);
}

struct linediff_count linediff_count(const char *old, size_t old_len, const char *new, size_t new_len)
{
    struct linediff_count count = { 0 };
    struct compare compare;

    compare_texts(&compare, old, old_len, new, new_len);
    for (size_t i = 0; i < compare.old.count; i++)
        count.removed += compare.old.changed[i];
    for (size_t j = 0; j < compare.new.count; j++)
        count.added += compare.new.changed[j];
    compare_free(&compare);
    return count;
}
