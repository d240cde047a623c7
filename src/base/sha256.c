#include "base/sha256.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* The plain SHA-256 functions: EVP would link a megabyte of algorithms into every start. */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

struct sha256 {
    SHA256_CTX context;
};

struct sha256 *sha256_new(void)
{
    struct sha256 *sha256 = memory_zero(sizeof *sha256);

    SHA256_Init(&sha256->context);
    return sha256;
}

void sha256_add(struct sha256 *sha256, const void *bytes, size_t len)
{
    SHA256_Update(&sha256->context, bytes, len);
}

void sha256_end(struct sha256 *sha256, unsigned char out[SHA256_BYTES])
{
    if (sha256 && out)
        SHA256_Final(out, &sha256->context);
    free(sha256);
}

void sha256_text(const unsigned char bytes[SHA256_BYTES], char out[SHA256_TEXT])
{
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
