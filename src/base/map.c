#include "base/map.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FIRST_SLOTS = 64 };

/* FNV-1a with a secret start: keys are chosen by hostile code, and it must not be able to make
 * them all fall on one slot. */
static uint64_t hash(const char *key)
{
    static uint64_t secret;
    uint64_t value;

    while (!secret)
        if (getrandom(&secret, sizeof secret, GRND_NONBLOCK) < (ssize_t)sizeof secret)
            secret = (uint64_t)(uintptr_t)&value | 1;
    value = secret;
    for (; *key; key++) {
        value = (value ^ (unsigned char)*key) * 0x100000001b3ULL;
        value ^= value >> 29;
    }
    return value ^ value >> 32;
}

static struct map_entry *find(const struct map *map, const char *key)
{
    size_t at = (size_t)hash(key) & (map->slots_len - 1);

    while (map->slots[at].key && strcmp(map->slots[at].key, key) != 0)
        at = (at + 1) & (map->slots_len - 1);
    return &map->slots[at];
}

static void grow(struct map *map)
{
    struct map old = *map;

    map->slots_len = old.slots_len ? old.slots_len * 2 : FIRST_SLOTS;
    map->slots = memory_zero(map->slots_len * sizeof *map->slots);
    for (size_t i = 0; i < old.slots_len; i++)
        if (old.slots[i].key)
            *find(map, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

void map_free(struct map *map)
{
    for (size_t i = 0; i < map->slots_len; i++)
        free(map->slots[i].key);
    free(map->slots);
    *map = MAP_NONE;
}

uint64_t map_add(struct map *map, const char *key, uint64_t count)
{
    if ((map->len + 1) * 4 > map->slots_len * 3)
        grow(map);
    struct map_entry *entry = find(map, key);

    if (!entry->key) {
        if (map->most && map->len >= map->most) {
            map->refused++;
            return 0;
        }
        entry->key = text_copy(key);
        map->len++;
    }
    return entry->count += count;
}

uint64_t map_get(const struct map *map, const char *key)
{
    return map->slots_len ? find(map, key)->count : 0;
}

const struct map_entry *map_next(const struct map *map, size_t *at)
{
    while (*at < map->slots_len) {
        const struct map_entry *entry = &map->slots[(*at)++];

        if (entry->key)
            return entry;
    }
    return NULL;
}
