#include "changes/gitindex.h"

#include <stdint.h>
#include <string.h>

enum {
    HEADER = 12,
    BEFORE_HASH = 40, /* times, device, inode, mode, ids, size */
    FLAG_ASSUMED = 0x8000,
    FLAG_EXTENDED = 0x4000,
    MORE_SKIPPED = 0x4000,
    SHA1 = 20,
    SHA256 = 32,
};

struct reading {
    const unsigned char *at, *start, *end; /* `end` is before the checksum */
    size_t hash;
    unsigned version;
    char path[GITINDEX_PATH_MAX];
    size_t path_len;
};

static size_t left(const struct reading *reading)
{
    return (size_t)(reading->end - reading->at);
}

static uint32_t number(const unsigned char *at, size_t bytes)
{
    uint32_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Seven bits a byte, each step counting one more, so that no number has two spellings. */
static bool read_varint(struct reading *reading, size_t *out)
{
    size_t value = 0;

    for (int i = 0; i < 4 && left(reading) > 0; i++) {
        unsigned char byte = *reading->at++;

        value = (i ? (value + 1) << 7 : 0) | (byte & 0x7f);
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* The path at the current place; version 4 says only how it differs from the one before. */
static bool read_path(struct reading *reading)
{
    size_t keep = 0, drop;

    if (reading->version == 4) {
        if (!read_varint(reading, &drop) || drop > reading->path_len)
            return false;
        keep = reading->path_len - drop;
    }

    const unsigned char *nul = memchr(reading->at, '\0', left(reading));
    size_t len = nul ? (size_t)(nul - reading->at) : 0;

    if (!nul || keep + len >= sizeof reading->path)
        return false;
    memcpy(reading->path + keep, reading->at, len + 1);
    reading->path_len = keep + len;
    reading->at = nul + 1;
    return true;
}

/* Entries of versions 2 and 3 end with one to eight NULs, at a multiple of eight bytes. */
static bool skip_padding(struct reading *reading, const unsigned char *entry)
{
    size_t size = (size_t)(reading->at - entry), padded = (size + 7) & ~(size_t)7;

    if (reading->version == 4)
        return true;
    if (padded - size > left(reading))
        return false;
    reading->at = entry + padded;
    return true;
}

static bool read_entry(struct reading *reading, struct gitindex_entry *out)
{
    const unsigned char *entry = reading->at;
    uint32_t flags, more = 0;

    if (left(reading) < BEFORE_HASH + reading->hash + 4)
        return false;
    reading->at += BEFORE_HASH + reading->hash;
    flags = number(reading->at, 2);
    reading->at += 2;
    if (flags & FLAG_EXTENDED) {
        if (reading->version < 3)
            return false;
        more = number(reading->at, 2);
        reading->at += 2;
    }
    if (!read_path(reading) || !skip_padding(reading, entry))
        return false;
    *out = (struct gitindex_entry){ reading->path, flags & FLAG_ASSUMED, more & MORE_SKIPPED };
    return true;
}

static bool read_extensions(struct reading *reading, struct gitindex *out)
{
    while (left(reading) >= 8) {
        uint32_t size = number(reading->at + 4, 4);

        out->fsmonitor = out->fsmonitor || memcmp(reading->at, "FSMN", 4) == 0;
        out->split = out->split || memcmp(reading->at, "link", 4) == 0;
        reading->at += 8;
        if (size > left(reading))
            return false;
        reading->at += size;
    }
    return left(reading) == 0;
}

static bool read_all(struct reading *reading, gitindex_visit *visit, void *owner, struct gitindex *out)
{
    uint32_t count = number(reading->start + 8, 4);
    struct gitindex_entry entry;

    for (uint32_t i = 0; i < count; i++) {
        if (!read_entry(reading, &entry))
            return false;
        if (visit)
            visit(owner, &entry);
    }
    return read_extensions(reading, out);
}

/* Nothing in the file says which hash it uses: the one with which it has the right form. */
int gitindex_read(const char *bytes, size_t len, gitindex_visit *visit, void *owner, struct gitindex *out)
{
    const unsigned char *start = (const unsigned char *)bytes;

    if (len < HEADER || len > GITINDEX_BYTES_MAX || memcmp(start, "DIRC", 4) != 0)
        return -1;
    for (size_t hash = SHA1; hash <= SHA256; hash += SHA256 - SHA1) {
        struct reading reading = { .start = start, .at = start + HEADER, .hash = hash };
        struct gitindex found = { 0 };

        reading.version = number(start + 4, 4);
        reading.end = start + len - (len - HEADER < hash ? 0 : hash);
        if (reading.version < 2 || reading.version > 4 || len - HEADER < hash)
            return -1;

        struct reading dry = reading;

        if (!read_all(&dry, NULL, NULL, &found))
            continue;
        (void)read_all(&reading, visit, owner, out);
        *out = found;
        return 0;
    }
    return -1;
}
