#include "base/sha256.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sha256 {
    struct hash hash;
};

struct sha256 *sha256_new(void)
{
    struct sha256 *sha256 = memory_zero(sizeof *sha256);

    hash_begin(&sha256->hash, HASH_SHA256);
    return sha256;
}

void sha256_add(struct sha256 *sha256, const void *bytes, size_t len)
{
    hash_add(&sha256->hash, bytes, len);
}

void sha256_end(struct sha256 *sha256, unsigned char out[SHA256_BYTES])
{
    unsigned char bytes[HASH_BYTES_MAX];

    if (sha256 && out) {
        hash_end(&sha256->hash, bytes);
        memcpy(out, bytes, SHA256_BYTES);
    }
    free(sha256);
}

void sha256_text(const unsigned char bytes[SHA256_BYTES], char out[SHA256_TEXT])
{
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
