#pragma once

/* A copy of a body that passes: its beginning, its length and its hash. */

#include "base/sha256.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct cached;

struct tap {
    struct sha256 *hash; /* NULL: nothing was begun */
    struct text kept;
    uint64_t size;
    bool keep;             /* its bytes too */
    bool cut;              /* `kept` has not all of them */
    struct cached *cached; /* to which it goes too; NULL: none */
};

/* How many bytes all taps may keep at a time, if that is less than is usual; and how many they do. */
void taps_bound(uint64_t most);
size_t taps_kept(void);

/* The same again is the end of what was before. */
void tap_begin(struct tap *tap, bool keep);
void tap_add(struct tap *tap, const void *bytes, size_t len);

/* The hash of all that passed. */
void tap_end(struct tap *tap, char sha256[SHA256_TEXT]);
void tap_free(struct tap *tap);
