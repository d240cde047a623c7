#pragma once

#include <stddef.h>

/* SHA-256, as lower-case hexadecimal text. */
enum { DIGEST_TEXT = 65 };

struct digest;

struct digest *digest_new(void);
void digest_add(struct digest *digest, const void *bytes, size_t len);

/* Gives the result and frees; NULL for `out` only frees. */
void digest_end(struct digest *digest, char out[DIGEST_TEXT]);
