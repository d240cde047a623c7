#pragma once

/* What fuzzers that check what was taken have in common. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check(bool holds)
{
    if (!holds)
        abort();
}

static inline void check_hash(const char *hash, size_t digits)
{
    check(strlen(hash) == digits && strspn(hash, "0123456789abcdef") == digits);
}
