#pragma once

/* What bytes are called by their hash, in the one form "sha512-<lower-case hexadecimal>": as it is compared,
 * sent and used for the names of files. */

#include <stdbool.h>
#include <stddef.h>

enum checksum_kind { CHECKSUM_SHA256, CHECKSUM_SHA512, CHECKSUM_KINDS };

enum { CHECKSUM_SIZE = 7 + 128 + 1 };

struct checksum {
    char text[CHECKSUM_SIZE]; /* empty: none */
};

#define CHECKSUM_NONE ((struct checksum){ "" })

/* False, and nothing written: these are not exactly the digits of one. */
bool checksum_read_hex(enum checksum_kind kind, const char *digits, size_t len, struct checksum *out);
bool checksum_read_base64(enum checksum_kind kind, const char *coded, size_t len, struct checksum *out);

/* Whether `text` is one, in its one form.  `kind` may be NULL. */
bool checksum_is(const char *text, enum checksum_kind *kind);

/* Of bytes that come in parts. */
struct checksumming;

struct checksumming *checksumming_new(enum checksum_kind kind);
void checksumming_add(struct checksumming *sum, const void *bytes, size_t len);

/* Gives the result and frees; NULL for `out` only frees. */
void checksumming_end(struct checksumming *sum, struct checksum *out);
