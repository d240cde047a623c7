#include "changes/digest.h"

#include "base/memory.h"
#include "base/own.h"
#include "changes/scan.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

/* The plain SHA-256 functions: EVP would link a megabyte of algorithms into every start. */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

/* A content is hashed block by block, and blocks of zeros are left out: a file of many terabytes
 * without data must not keep us.  Its size, and the place of each block, are hashed too. */
enum { BLOCK = 64 << 10 };

static void add_number(SHA256_CTX *context, uint64_t number)
{
    uint64_t wire = htole64(number);

    SHA256_Update(context, &wire, sizeof wire);
}

static bool is_zero(const char *bytes, size_t len)
{
    return !*bytes && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static void add_block(SHA256_CTX *context, uint64_t at, const char *bytes, size_t len)
{
    if (is_zero(bytes, len))
        return;
    add_number(context, at);
    SHA256_Update(context, bytes, len);
}

void digest_bytes(const char *bytes, size_t len, struct digest *out)
{
    SHA256_CTX context;

    SHA256_Init(&context);
    add_number(&context, len);
    for (size_t at = 0; at < len; at += BLOCK)
        add_block(&context, at, bytes + at, len - at < BLOCK ? len - at : BLOCK);
    SHA256_Final(out->bytes, &context);
}

int digest_file(int fd, struct digest *out)
{
    autofree char *block = memory_zero(BLOCK);
    struct stat status;
    SHA256_CTX context;

    memset(out, 0, sizeof *out);
    if (fstat(fd, &status) < 0)
        return -1;
    SHA256_Init(&context);
    add_number(&context, (uint64_t)status.st_size);
    for (off_t at = 0; at < status.st_size; at += BLOCK) {
        at = content_data(fd, at, status.st_size) / BLOCK * BLOCK;

        size_t len = status.st_size - at < BLOCK ? (size_t)(status.st_size - at) : BLOCK;

        if (len == 0)
            break;
        if (content_read(fd, at, block, len) != (ssize_t)len)
            return -1; /* or shorter than its status said: somebody is just writing it */
        add_block(&context, (uint64_t)at, block, len);
    }
    SHA256_Final(out->bytes, &context);
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

static void add_text(SHA256_CTX *context, const char *text)
{
    add_number(context, text ? strlen(text) + 1 : 0);
    SHA256_Update(context, text ? text : "", text ? strlen(text) : 0);
}

static void add_side(SHA256_CTX *context, const struct side *side)
{
    add_number(context, side->type);
    add_number(context, side->mode);
    add_number(context, side->size);
    add_text(context, side->target);
}

void digest_changes(const struct changes *changes, const struct digest *contents, char out[DIGEST_TEXT])
{
    unsigned char all[SHA256_DIGEST_LENGTH];
    SHA256_CTX context;

    SHA256_Init(&context);
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        add_text(&context, change->path);
        add_text(&context, change->from);
        add_number(&context, change->kind);
        add_number(&context, change->flags);
        add_number(&context, change->count);
        add_side(&context, &change->old);
        add_side(&context, &change->new);
        SHA256_Update(&context, contents[i].bytes, sizeof contents[i].bytes);
    }
    SHA256_Final(all, &context);
    for (size_t i = 0; i < sizeof all; i++)
        snprintf(out + 2 * i, 3, "%02x", all[i]);
}
