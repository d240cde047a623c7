#include "box/tree.h"

#include "base/text.h"
#include "box/place.h"

#include <stdlib.h>
#include <string.h>

static void clear(struct tree *tree)
{
    free(tree->source);
    free(tree->target);
    free(tree->origin);
    strings_free(&tree->hide);
    strings_free(&tree->protect);
}

void trees_free(struct trees *trees)
{
    for (size_t i = 0; i < trees->len; i++)
        clear(&trees->items[i]);
    free(trees->items);
    *trees = TREES_NONE;
}

struct tree *trees_add(struct trees *trees, const struct place *place, const char *target, enum tree_mode mode,
                       const char *why)
{
    struct tree *tree = array_add(trees);

    *tree = (struct tree){
        .source = text_copy(place->path),
        .target = text_copy(target),
        .mode = mode,
        .device = place->stat.st_dev,
        .inode = place->stat.st_ino,
        .file = !S_ISDIR(place->stat.st_mode),
        .why = why,
    };
    return tree;
}

static int by_target(const void *a, const void *b)
{
    return strcmp(((const struct tree *)a)->target, ((const struct tree *)b)->target);
}

void trees_sort(struct trees *trees)
{
    if (trees->len)
        qsort(trees->items, trees->len, sizeof *trees->items, by_target);
}

struct tree *trees_at(const struct trees *trees, const char *target)
{
    for (size_t i = 0; i < trees->len; i++)
        if (strcmp(trees->items[i].target, target) == 0)
            return &trees->items[i];
    return NULL;
}

struct tree *trees_around(const struct trees *trees, const char *path)
{
    struct tree *nearest = NULL;

    for (size_t i = 0; i < trees->len; i++) {
        struct tree *tree = &trees->items[i];

        if (path_within(path, tree->target) && (!nearest || strlen(tree->target) > strlen(nearest->target)))
            nearest = tree;
    }
    return nearest;
}

void trees_remove(struct trees *trees, struct tree *tree)
{
    size_t at = (size_t)(tree - trees->items);

    clear(tree);
    memmove(tree, tree + 1, (trees->len - at - 1) * sizeof *tree);
    trees->len--;
}
