#include "store/lineage.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* A merged layer may be merged again, each time of two or more: nobody gets as deep as this. */
enum { NESTED_MAX = 64 };

/* A layer that is gone, or cannot be read, stands for itself: that only makes stacks part earlier. */
static void expand(int layers, const char *lid, unsigned depth, struct strings *out)
{
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;
    autostrings struct strings parts = STRINGS_NONE;
    struct error ignored;

    if (depth < NESTED_MAX && layers_read(layers, lid, &layer, &ignored) == 0)
        for (size_t i = 0; i < layer.merged.len; i++) {
            autolayerinfo struct layer_info part = LAYER_INFO_NONE;

            if (layers_read(layers, layer.merged.items[i], &part, &ignored) < 0) {
                strings_free(&parts);
                break;
            }
            expand(layers, part.id, depth + 1, &parts);
        }
    if (!parts.len)
        strings_add(out, lid);
    else
        strings_copy(out, &parts);
}

/* A stack, and for each of its layers how many single steps there are from it down to the base. */
struct line {
    struct strings chain, steps;
    size_t below[LAYERS_DEPTH_MAX];
};

#define autoline __attribute__((cleanup(line_free)))

static void line_free(struct line *line)
{
    strings_free(&line->chain);
    strings_free(&line->steps);
}

static int read_line(int layers, const char *top, struct line *out, struct error *err)
{
    if (layers_chain(layers, top, &out->chain, err) < 0)
        return -1;
    for (size_t i = 0; i < out->chain.len; i++) {
        out->below[i] = out->steps.len;
        expand(layers, out->chain.items[i], 0, &out->steps);
    }
    for (size_t i = 0; i < out->chain.len; i++)
        out->below[i] = out->steps.len - out->below[i];
    return 0;
}

static size_t in_common(const struct strings *a, const struct strings *b)
{
    size_t same = 0;

    while (same < a->len && same < b->len &&
           strcmp(a->items[a->len - 1 - same], b->items[b->len - 1 - same]) == 0)
        same++;
    return same;
}

static void add_above(const struct line *line, size_t common, struct strings *out)
{
    for (size_t i = 0; i < line->chain.len; i++)
        if (line->below[i] > common)
            strings_add(out, line->chain.items[i]);
}

int lineage_apart(int layers, const char *a, const char *b, struct strings *out, struct error *err)
{
    autoline struct line one = { .chain = STRINGS_NONE }, other = { .chain = STRINGS_NONE };

    if (read_line(layers, a, &one, err) < 0 || read_line(layers, b, &other, err) < 0)
        return -1;

    size_t common = in_common(&one.steps, &other.steps);

    add_above(&one, common, out);
    add_above(&other, common, out);
    return 0;
}

int lineage_steps(int layers, const char *top, struct strings *out, struct error *err)
{
    autoline struct line line = { .chain = STRINGS_NONE };

    if (read_line(layers, top, &line, err) < 0)
        return -1;
    strings_copy(out, &line.steps);
    return 0;
}
