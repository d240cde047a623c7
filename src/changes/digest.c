#include "changes/digest.h"

#include "base/memory.h"
#include "base/own.h"
#include "changes/scan.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

/* A content is hashed block by block, and blocks of zeros are left out: a file of many terabytes
 * without data must not keep us.  Its size, and the place of each block, are hashed too. */
enum { BLOCK = 64 << 10 };

static void add_number(struct sha256 *sha256, uint64_t number)
{
    uint64_t wire = htole64(number);

    sha256_add(sha256, &wire, sizeof wire);
}

static bool is_zero(const char *bytes, size_t len)
{
    return !*bytes && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static void add_block(struct sha256 *sha256, uint64_t at, const char *bytes, size_t len)
{
    if (is_zero(bytes, len))
        return;
    add_number(sha256, at);
    sha256_add(sha256, bytes, len);
}

void digest_bytes(const char *bytes, size_t len, struct digest *out)
{
    struct sha256 *sha256 = sha256_new();

    add_number(sha256, len);
    for (size_t at = 0; at < len; at += BLOCK)
        add_block(sha256, at, bytes + at, len - at < BLOCK ? len - at : BLOCK);
    sha256_end(sha256, out->bytes);
}

int digest_file(int fd, struct digest *out)
{
    autofree char *block = memory_zero(BLOCK);
    struct stat status;

    memset(out, 0, sizeof *out);
    if (fstat(fd, &status) < 0)
        return -1;
    struct sha256 *sha256 = sha256_new();

    add_number(sha256, (uint64_t)status.st_size);
    for (off_t at = 0; at < status.st_size;) {
        at = content_data(fd, at, status.st_size) / BLOCK * BLOCK;

        size_t len = status.st_size - at < BLOCK ? (size_t)(status.st_size - at) : BLOCK;

        if (len == 0)
            break;
        if (content_read(fd, at, block, len) != (ssize_t)len) {
            sha256_end(sha256, NULL);
            return -1; /* or shorter than its status said: somebody is just writing it */
        }
        add_block(sha256, (uint64_t)at, block, len);
        at += (off_t)len; /* not beyond the end: a file can be as large as an off_t */
    }
    sha256_end(sha256, out->bytes);
    return 0;
}

int digest_plain(int dir, const char *path, uint64_t most, char out[SHA256_TEXT], uint64_t *bytes)
{
    autofree char *block = memory_zero(BLOCK);
    autoclose int fd = scan_open_file(dir, path);
    unsigned char hash[SHA256_BYTES];
    struct stat status;
    ssize_t got = 0;

    if (fd < 0 || fstat(fd, &status) < 0 || (uint64_t)status.st_size > most)
        return -1;

    struct sha256 *sha256 = sha256_new();

    for (off_t at = 0; (uint64_t)at <= most && (got = content_read(fd, at, block, BLOCK)) > 0; at += got)
        sha256_add(sha256, block, (size_t)got);
    sha256_end(sha256, hash);
    if (got != 0)
        return -1;
    sha256_text(hash, out);
    *bytes = (uint64_t)status.st_size;
    return 0;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void digest_contents(int upper, const struct changes *changes, struct digest *out)
{
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        autoclose int fd = change->new.type == SIDE_FILE ? scan_open_file(upper, change->path) : -1;

        memset(&out[i], 0, sizeof out[i]);
        if (fd >= 0)
            (void)digest_file(fd, &out[i]);
    }
}

static void add_text(struct sha256 *sha256, const char *text)
{
    add_number(sha256, text ? strlen(text) + 1 : 0);
    sha256_add(sha256, text ? text : "", text ? strlen(text) : 0);
}

static void add_side(struct sha256 *sha256, const struct side *side)
{
    add_number(sha256, side->type);
    add_number(sha256, side->mode);
    add_number(sha256, side->size);
    add_text(sha256, side->target);
}

void digest_changes(const struct changes *changes, const struct digest *contents, char out[SHA256_TEXT])
{
    unsigned char all[SHA256_BYTES];
    struct sha256 *sha256 = sha256_new();

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        add_text(sha256, change->path);
        add_text(sha256, change->from);
        add_number(sha256, change->kind);
        add_number(sha256, change->flags);
        add_number(sha256, change->count);
        add_side(sha256, &change->old);
        add_side(sha256, &change->new);
        sha256_add(sha256, contents[i].bytes, sizeof contents[i].bytes);
    }
    sha256_end(sha256, all);
    sha256_text(all, out);
}
