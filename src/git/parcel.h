#pragma once

/* The commits of one branch on their way home: a pack and its index, checked by a git that sees nothing else
 * of the sandbox. */

#include "git/refs.h"
#include "git/shadow.h"

struct host;
struct repository;

struct parcel {
    struct shadow check; /* with pack, index and the owner's objects: what it says is true of what lands */
    int pack, index;
    char name[HASH_MAX + 1]; /* of the pack */
};

#define PARCEL_NONE ((struct parcel){ .check = SHADOW_NONE, .pack = -1, .index = -1 })
#define autoparcel __attribute__((cleanup(parcel_free)))

void parcel_free(struct parcel *parcel);

/* `from` has the objects of the sandbox; `known` is a list of lines "^HASH", of what the owner has. */
int parcel_make(const struct shadow *from, const struct repository *repository, const char *tip,
                const char *known, struct parcel *out, struct error *err);
