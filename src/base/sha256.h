#pragma once

#include <stddef.h>

enum { SHA256_BYTES = 32, SHA256_TEXT = 2 * SHA256_BYTES + 1 };

struct sha256;

struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *sha256, const void *bytes, size_t len);

/* Gives the result and frees; NULL for `out` only frees. */
void sha256_end(struct sha256 *sha256, unsigned char out[SHA256_BYTES]);

/* As lower-case hexadecimal text. */
void sha256_text(const unsigned char bytes[SHA256_BYTES], char out[SHA256_TEXT]);
