#include "changes/lines.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct line {
    const char *at;
    size_t len;
};

struct lines {
    struct line *items;
    size_t len, cap;
};

static int by_bytes(const void *a, const void *b)
{
    const struct line *one = a, *other = b;

    if (one->len != other->len)
        return one->len < other->len ? -1 : 1;
    return memcmp(one->at, other->at, one->len);
}

static void split(const char *text, size_t len, lines_wanted *wanted, struct lines *out)
{
    for (const char *at = text, *end = text + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct line line = { at, (size_t)((newline ? newline : end) - at) };

        if (wanted(line.at, line.len))
            *array_add(out) = line;
        at = newline ? newline + 1 : end;
    }
}

void lines_added(const char *old, size_t old_len, const char *new, size_t new_len, lines_wanted *wanted,
                 lines_visit *visit, void *owner)
{
    struct lines before = { 0 }, after = { 0 };

    split(new, new_len, wanted, &after);
    if (after.len)
        split(old, old_len, wanted, &before);
    if (before.len)
        qsort(before.items, before.len, sizeof *before.items, by_bytes);
    for (size_t i = 0; i < after.len; i++)
        if (!before.len || !bsearch(&after.items[i], before.items, before.len, sizeof *before.items, by_bytes))
            visit(owner, after.items[i].at, after.items[i].len);
    free(before.items);
    free(after.items);
}
