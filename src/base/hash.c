#include "base/hash.h"

/* Less is hashed before a virtual machine has answered. */
enum { WORTH_ASKING = 16 << 10 };

static void (*ask_processor)(void);

void hash_ask_late(void (*ask)(void))
{
    ask_processor = ask;
}

static void ask_if_worth(size_t len)
{
    void (*ask)(void) = ask_processor;

    if (!ask || len < WORTH_ASKING)
        return;
    ask_processor = NULL;
    ask();
}

void hash_begin(struct hash *hash, enum hash_kind kind)
{
    hash->kind = kind;
    if (kind == HASH_SHA1)
        SHA1_Init(&hash->sha1);
    else if (kind == HASH_SHA256)
        SHA256_Init(&hash->sha256);
    else
        SHA512_Init(&hash->sha512);
}

void hash_add(struct hash *hash, const void *bytes, size_t len)
{
    ask_if_worth(len);
    if (hash->kind == HASH_SHA1)
        SHA1_Update(&hash->sha1, bytes, len);
    else if (hash->kind == HASH_SHA256)
        SHA256_Update(&hash->sha256, bytes, len);
    else
        SHA512_Update(&hash->sha512, bytes, len);
}

void hash_end(struct hash *hash, unsigned char out[HASH_BYTES_MAX])
{
    if (hash->kind == HASH_SHA1)
        SHA1_Final(out, &hash->sha1);
    else if (hash->kind == HASH_SHA256)
        SHA256_Final(out, &hash->sha256);
    else
        SHA512_Final(out, &hash->sha512);
}
