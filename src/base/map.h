#pragma once

#include <stddef.h>
#include <stdint.h>

/* From strings to counters.  Grows up to a bound that its owner chooses, because keys may come
 * from inside a sandbox. */
struct map_entry {
    char *key; /* NULL: free */
    uint64_t count;
};

struct map {
    struct map_entry *slots; /* a power of two of them, at most three quarters in use */
    size_t slots_len, len;
    size_t most;      /* entries; 0: without bound */
    uint64_t refused; /* additions that found no room */
};

#define MAP_NONE ((struct map){ 0 })
#define automap __attribute__((cleanup(map_free)))

void map_free(struct map *map);

/* Adds to the counter of `key` (copied) and gives its new value; 0 if the map is full. */
uint64_t map_add(struct map *map, const char *key, uint64_t count);

uint64_t map_get(const struct map *map, const char *key); /* 0: never added */

/* Walks over all entries in no particular order: start with *at = 0; NULL at the end. */
const struct map_entry *map_next(const struct map *map, size_t *at);
