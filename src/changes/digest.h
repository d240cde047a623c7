#pragma once

#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct changes;

/* What binds a review to what is brought home afterwards: SHA-256 over contents, and over all
 * changes together. */

/* Of one content.  All zero: there is none, or it could not be read. */
struct digest {
    unsigned char bytes[SHA256_BYTES];
};

/* Both say the same of the same bytes.  Parts that are zero cost nothing where the file has a hole. */
void digest_bytes(const char *bytes, size_t len, struct digest *out);
int digest_file(int fd, struct digest *out);

/* SHA-256 of the bytes alone, as sha256sum prints it, of a regular file that has at most so many; -1: anything
 * else.  `bytes` is how many they are. */
int digest_plain(int dir, const char *path, uint64_t most, char out[SHA256_TEXT], uint64_t *bytes);

bool digest_equal(const struct digest *a, const struct digest *b);

/* Contents of all changes as the sandbox left them, one for each; `upper` is its layer. */
void digest_contents(int upper, const struct changes *changes, struct digest *out);

/* Paths, kinds, modes, targets and contents of all of them, as 64 letters. */
void digest_changes(const struct changes *changes, const struct digest *contents, char out[SHA256_TEXT]);
