#include "changes/binary.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LINE = 52, GROUP = 4, DIGITS = 5 };

void binary_name(const char *bytes, size_t len, char out[BINARY_HEX + 1])
{
    char head[32];
    unsigned char name[HASH_BYTES_MAX];
    int head_len = snprintf(head, sizeof head, "blob %zu", len) + 1;
    struct hash hash;

    hash_begin(&hash, HASH_SHA1);
    hash_add(&hash, head, (size_t)head_len);
    hash_add(&hash, bytes, len);
    hash_end(&hash, name);
    for (size_t i = 0; i < BINARY_HEX / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", name[i]);
}

static void add_group(struct text *out, const unsigned char *bytes, size_t len)
{
    static const char digits[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    uint32_t value = 0;
    char group[DIGITS];

    for (size_t i = 0; i < GROUP; i++)
        value = value << 8 | (i < len ? bytes[i] : 0);
    for (size_t i = DIGITS; i-- > 0; value /= 85)
        group[i] = digits[value % 85];
    text_add_bytes(out, group, sizeof group);
}

static void add_line(struct text *out, const unsigned char *bytes, size_t len)
{
    char length = (char)(len <= 26 ? 'A' + len - 1 : 'a' + len - 27);

    text_add_bytes(out, &length, 1);
    for (size_t i = 0; i < len; i += GROUP)
        add_group(out, bytes + i, len - i < GROUP ? len - i : GROUP);
    text_add(out, "\n");
}

void binary_add_literal(struct text *out, const char *bytes, size_t len)
{
    uLongf packed_len = compressBound(len);
    autofree unsigned char *packed = memory_resize(NULL, packed_len);

    if (compress2(packed, &packed_len, (const unsigned char *)bytes, len, Z_BEST_SPEED) != Z_OK)
        abort(); /* only without memory */
    text_addf(out, "literal %zu\n", len);
    for (size_t i = 0; i < packed_len; i += LINE)
        add_line(out, packed + i, packed_len - i < LINE ? packed_len - i : LINE);
    text_add(out, "\n");
}
