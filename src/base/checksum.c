#include "base/checksum.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
    enum hash_kind hash;
} kinds[CHECKSUM_KINDS] = {
    [CHECKSUM_SHA256] = { "sha256-", 32, HASH_SHA256 }, [CHECKSUM_SHA512] = { "sha512-", 64, HASH_SHA512 }
};

static void write_sum(enum checksum_kind kind, const unsigned char *bytes, struct checksum *out)
{
    size_t at = (size_t)snprintf(out->text, sizeof out->text, "%s", kinds[kind].name);

    for (size_t i = 0; i < kinds[kind].bytes; i++)
        at += (size_t)snprintf(out->text + at, sizeof out->text - at, "%02x", bytes[i]);
}

bool checksum_read_hex(enum checksum_kind kind, const char *digits, size_t len, struct checksum *out)
{
    if (len != 2 * kinds[kind].bytes)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!digits[i] || !strchr("0123456789abcdefABCDEF", digits[i]))
            return false;
    size_t at = (size_t)snprintf(out->text, sizeof out->text, "%s", kinds[kind].name);

    for (size_t i = 0; i < len; i++)
        out->text[at + i] = (char)(digits[i] | (digits[i] >= 'A' ? 0x20 : 0));
    out->text[at + len] = '\0';
    return true;
}

bool checksum_read_base64(enum checksum_kind kind, const char *coded, size_t len, struct checksum *out)
{
    autofree char *copy = text_format("%.*s", (int)(len < CHECKSUM_SIZE ? len : CHECKSUM_SIZE), coded);
    autotext struct text bytes = TEXT_NONE;

    if (strlen(copy) != len || !text_add_from_base64(&bytes, copy) || bytes.len != kinds[kind].bytes)
        return false;
    write_sum(kind, (const unsigned char *)bytes.data, out);
    return true;
}

bool checksum_is(const char *text, enum checksum_kind *kind)
{
    for (size_t i = 0; i < CHECKSUM_KINDS; i++) {
        size_t name = strlen(kinds[i].name);
        struct checksum same;

        if (strncmp(text, kinds[i].name, name) != 0 ||
            !checksum_read_hex((enum checksum_kind)i, text + name, strlen(text + name), &same) ||
            strcmp(same.text, text) != 0)
            continue;
        if (kind)
            *kind = (enum checksum_kind)i;
        return true;
    }
    return false;
}

struct checksumming {
    enum checksum_kind kind;
    struct hash hash;
};

struct checksumming *checksumming_new(enum checksum_kind kind)
{
    struct checksumming *sum = memory_zero(sizeof *sum);

    sum->kind = kind;
    hash_begin(&sum->hash, kinds[kind].hash);
    return sum;
}

void checksumming_add(struct checksumming *sum, const void *bytes, size_t len)
{
    hash_add(&sum->hash, bytes, len);
}

void checksumming_end(struct checksumming *sum, struct checksum *out)
{
    unsigned char bytes[HASH_BYTES_MAX];

    if (sum && out) {
        hash_end(&sum->hash, bytes);
        write_sum(sum->kind, bytes, out);
    }
    free(sum);
}
