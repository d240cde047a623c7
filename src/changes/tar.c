#include "changes/tar.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The header of 1988, which every reader knows. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
    char target[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

_Static_assert(sizeof(struct header) == TAR_BLOCK, "a header is one block");

#define OCTAL_11 UINT64_C(077777777777)

static void put_octal(char *field, size_t size, uint64_t value)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%0*" PRIo64, (int)size - 1, value);
    memcpy(field, digits, size);
}

/* As much as there is room for; a name may fill its field to the last byte. */
static void put_string(char *field, size_t size, const char *string)
{
    size_t len = strlen(string);

    memcpy(field, string, len < size ? len : size);
}

static void add_zeros(struct text *out, size_t count)
{
    static const char zeros[TAR_BLOCK];

    for (; count > 0; count -= count < TAR_BLOCK ? count : TAR_BLOCK)
        text_add_bytes(out, zeros, count < TAR_BLOCK ? count : TAR_BLOCK);
}

static void add_block(struct text *out, struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;

    memset(header->sum, ' ', sizeof header->sum);
    for (size_t i = 0; i < sizeof *header; i++)
        sum += bytes[i];
    snprintf(header->sum, sizeof header->sum, "%06o", sum); /* then a NUL and the blank */
    text_add_bytes(out, header, sizeof *header);
}

static void fill(struct header *header, const char *path, char type, mode_t mode, uint64_t size, uint64_t mtime)
{
    *header = (struct header){ .type = type };
    put_string(header->name, sizeof header->name, path);
    put_octal(header->mode, sizeof header->mode, mode & 0777);
    put_octal(header->uid, sizeof header->uid, 0);
    put_octal(header->gid, sizeof header->gid, 0);
    put_octal(header->size, sizeof header->size, size <= OCTAL_11 ? size : 0);
    put_octal(header->mtime, sizeof header->mtime, mtime);
    memcpy(header->magic, "ustar", 6);
    memcpy(header->version, "00", 2);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static void add_record(struct text *out, const char *key, const char *value)
{
    size_t bare = strlen(key) + strlen(value) + 3, len = bare;

    for (size_t whole; (whole = bare + (size_t)snprintf(NULL, 0, "%zu", len)) != len;)
        len = whole;
    text_addf(out, "%zu %s=", len, key);
    text_add(out, value);
    text_add(out, "\n");
}

static void add_extended(struct text *out, const struct text *records)
{
    struct header header;

    fill(&header, "PaxHeaders/member", 'x', 0644, records->len, 0);
    add_block(out, &header);
    text_add_bytes(out, records->data, records->len);
    add_zeros(out, tar_padding(records->len));
}

void tar_add_header(const struct tar_member *member, struct text *out)
{
    static const char types[] = {
        [TAR_FILE] = '0', [TAR_DIRECTORY] = '5', [TAR_LINK] = '2', [TAR_HARD_LINK] = '1'
    };
    autotext struct text records = TEXT_NONE, path = TEXT_NONE, size = TEXT_NONE;
    uint64_t mtime = member->mtime < 0 ? 0 : (uint64_t)member->mtime;
    struct header header;

    text_add(&path, member->path);
    if (member->type == TAR_DIRECTORY)
        text_add(&path, "/");
    if (path.len > sizeof header.name)
        add_record(&records, "path", path.data);
    if (member->target && strlen(member->target) > sizeof header.target)
        add_record(&records, "linkpath", member->target);
    if (member->size > OCTAL_11) {
        text_addf(&size, "%" PRIu64, member->size);
        add_record(&records, "size", size.data);
    }
    if (records.len)
        add_extended(out, &records);
    fill(&header, text_string(&path), types[member->type], member->mode, member->size,
         mtime <= OCTAL_11 ? mtime : OCTAL_11);
    if (member->target)
        put_string(header.target, sizeof header.target, member->target);
    add_block(out, &header);
}

size_t tar_padding(uint64_t size)
{
    return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

void tar_add_end(struct text *out)
{
    add_zeros(out, (size_t)2 * TAR_BLOCK);
}
