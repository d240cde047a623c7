#pragma once

/* Addresses that stand for names.  There are two pools: of allowed names, and of the others, whose addresses
 * lead to the refusal only. */

#include "base/hostname.h"

enum pool_kind { POOL_ALLOWED, POOL_REFUSED, POOL_KINDS };

/* So many names has a gateway of one kind.  One that is started after another has died begins behind it, so
 * that an address that somebody still remembers does not stand for another name. */
enum { POOL_NAMES = 4096, POOL_GENERATIONS = 15 };

struct pool {
    char *names[POOL_KINDS][POOL_NAMES];
    unsigned used[POOL_KINDS]; /* of the refused, the next to be taken, over and over */
    unsigned generation;
};

void pool_init(struct pool *pool, unsigned generation);

/* The addresses of a name, one of each family.  False: there is none left. */
bool pool_give(struct pool *pool, enum pool_kind kind, const char *name, struct address *four,
               struct address *six);

enum pool_found { POOL_NO_POOL, POOL_UNKNOWN, POOL_NAME };

/* What an address stands for: it is of no pool, or of one but nobody's now, or `name` and `kind` are. */
enum pool_found pool_find(const struct pool *pool, const struct address *address, enum pool_kind *kind,
                          const char **name);
