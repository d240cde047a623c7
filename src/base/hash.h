#pragma once

#include <stddef.h>

/* The plain functions of libcrypto: EVP would link a megabyte of algorithms into every start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

enum hash_kind { HASH_SHA1, HASH_SHA256, HASH_SHA512 };
enum { HASH_BYTES_MAX = 64 };

struct hash {
    enum hash_kind kind;
    union {
        SHA_CTX sha1;
        SHA256_CTX sha256;
        SHA512_CTX sha512;
    };
};

void hash_begin(struct hash *hash, enum hash_kind kind);
void hash_add(struct hash *hash, const void *bytes, size_t len);
void hash_end(struct hash *hash, unsigned char out[HASH_BYTES_MAX]);

/* Of a program that has libcrypto not ask at its start what the processor can do: how to ask once there is much
 * to hash.  Until then, and after, the results are the same. */
void hash_ask_late(void (*ask)(void));
