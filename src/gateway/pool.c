#include "gateway/pool.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* The beginnings of net/places.h. */
static const unsigned char four_bytes[POOL_KINDS][2] = { { 198, 18 }, { 198, 19 } };
static const unsigned char six_bytes[POOL_KINDS][8] = { { 0xfd, 0, 0xc0, 0xfe, 0, 0, 0, 1 },
                                                        { 0xfd, 0, 0xc0, 0xfe, 0, 0, 0, 2 } };

void pool_init(struct pool *pool, unsigned generation)
{
    memset(pool, 0, sizeof *pool);
    pool->generation = generation % POOL_GENERATIONS;
}

static unsigned find(const struct pool *pool, enum pool_kind kind, const char *name)
{
    for (unsigned i = 0; i < POOL_NAMES && pool->names[kind][i]; i++)
        if (strcmp(pool->names[kind][i], name) == 0)
            return i;
    return POOL_NAMES;
}

static unsigned take(struct pool *pool, enum pool_kind kind, const char *name)
{
    unsigned at = pool->used[kind];

    if (at == POOL_NAMES && kind == POOL_ALLOWED)
        return POOL_NAMES;
    at %= POOL_NAMES;
    free(pool->names[kind][at]);
    pool->names[kind][at] = text_copy(name);
    pool->used[kind] = at + 1;
    return at;
}

bool pool_give(struct pool *pool, enum pool_kind kind, const char *name, struct address *four,
               struct address *six)
{
    unsigned char bytes[16] = { 0 };
    unsigned at = find(pool, kind, name);

    if (at == POOL_NAMES)
        at = take(pool, kind, name);
    if (at == POOL_NAMES)
        return false;
    unsigned number = pool->generation * POOL_NAMES + at + 256;

    memcpy(bytes, four_bytes[kind], sizeof four_bytes[kind]);
    bytes[2] = (unsigned char)(number >> 8);
    bytes[3] = (unsigned char)number;
    *four = address_from(bytes, 4);
    memcpy(bytes, six_bytes[kind], sizeof six_bytes[kind]);
    bytes[14] = (unsigned char)(number >> 8);
    bytes[15] = (unsigned char)number;
    *six = address_from(bytes, 16);
    return true;
}

static bool is_in(const struct address *address, enum pool_kind kind)
{
    if (address->len == 4)
        return memcmp(address->bytes, four_bytes[kind], sizeof four_bytes[kind]) == 0;
    return address->len == 16 && memcmp(address->bytes, six_bytes[kind], sizeof six_bytes[kind]) == 0;
}

enum pool_found pool_find(const struct pool *pool, const struct address *address, enum pool_kind *kind,
                          const char **name)
{
    static const unsigned char nothing[6];

    for (*kind = POOL_ALLOWED; *kind < POOL_KINDS; ++*kind) {
        if (!is_in(address, *kind))
            continue;
        const unsigned char *end = address->bytes + address->len - 2;
        unsigned number = (unsigned)end[0] << 8 | end[1], first = pool->generation * POOL_NAMES + 256;

        if ((address->len == 16 && memcmp(address->bytes + 8, nothing, sizeof nothing) != 0) ||
            number < first || number - first >= POOL_NAMES || !pool->names[*kind][number - first])
            return POOL_UNKNOWN;
        *name = pool->names[*kind][number - first];
        return POOL_NAME;
    }
    return POOL_NO_POOL;
}
