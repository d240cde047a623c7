#pragma once

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof *(array))

/* A growing array is any struct with `items`, `len` and `cap`.  array_add() makes room for one
 * more, zeroed, and gives its address: *array_add(&list) = value; */
#define array_add(array)                                                                                       \
    ((__typeof__((array)->items))array_grow((void **)&(array)->items, &(array)->len, &(array)->cap,            \
                                            sizeof *(array)->items))

void *array_grow(void **items, size_t *len, size_t *cap, size_t size);

/* A list of strings that it owns.  `items` has a NULL behind the last one, so it can be used as
 * argv or environ (and is NULL only while nothing was ever added). */
struct strings {
    char **items;
    size_t len, cap;
};

#define STRINGS_NONE ((struct strings){ 0 })
#define autostrings __attribute__((cleanup(strings_free)))

void strings_free(struct strings *strings);
void strings_add(struct strings *strings, const char *string); /* copies */
void strings_take(struct strings *strings, char *string);      /* owns it from now on */
void strings_copy(struct strings *strings, const struct strings *from);
bool strings_have(const struct strings *strings, const char *string);
void strings_sort(struct strings *strings); /* by bytes, duplicates removed */
int strings_compare(const struct strings *a, const struct strings *b);
