#include "base/array.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void *array_grow(void **items, size_t *len, size_t *cap, size_t size)
{
    if (*len == *cap) {
        *cap = *cap ? *cap * 2 : 8;
        *items = memory_resize(*items, *cap * size);
    }
    return memset((char *)*items + (*len)++ * size, 0, size);
}

void strings_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->len; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = STRINGS_NONE;
}

void strings_take(struct strings *strings, char *string)
{
    *array_add(strings) = string;
    *array_add(strings) = NULL; /* the end mark, not counted */
    strings->len--;
}

void strings_add(struct strings *strings, const char *string)
{
    strings_take(strings, text_copy(string));
}

void strings_copy(struct strings *strings, const struct strings *from)
{
    for (size_t i = 0; i < from->len; i++)
        strings_add(strings, from->items[i]);
}

bool strings_have(const struct strings *strings, const char *string)
{
    for (size_t i = 0; i < strings->len; i++)
        if (strcmp(strings->items[i], string) == 0)
            return true;
    return false;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strings_sort(struct strings *strings)
{
    size_t kept = 0;

    if (!strings->len)
        return;
    qsort(strings->items, strings->len, sizeof *strings->items, by_bytes);
    for (size_t i = 0; i < strings->len; i++) {
        if (kept && strcmp(strings->items[kept - 1], strings->items[i]) == 0)
            free(strings->items[i]);
        else
            strings->items[kept++] = strings->items[i];
    }
    strings->len = kept;
    strings->items[kept] = NULL;
}

int strings_compare(const struct strings *a, const struct strings *b)
{
    int order = 0;

    for (size_t i = 0; order == 0 && i < a->len && i < b->len; i++)
        order = strcmp(a->items[i], b->items[i]);
    return order ? order : (int)a->len - (int)b->len;
}
