#include "base/digest.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* The plain SHA-256 functions: EVP would link a megabyte of algorithms into every start. */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

struct digest {
    SHA256_CTX context;
};

struct digest *digest_new(void)
{
    struct digest *digest = memory_zero(sizeof *digest);

    SHA256_Init(&digest->context);
    return digest;
}

void digest_add(struct digest *digest, const void *bytes, size_t len)
{
    SHA256_Update(&digest->context, bytes, len);
}

void digest_end(struct digest *digest, char out[DIGEST_TEXT])
{
    unsigned char bytes[SHA256_DIGEST_LENGTH];

    if (!digest)
        return;
    SHA256_Final(bytes, &digest->context);
    free(digest);
    for (size_t i = 0; out && i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
