#include "net/dns.h"

#include <string.h>
#include <strings.h>

enum {
    FLAGS_ANSWER = 0x8000,
    FLAGS_OPCODE = 0x7800,
    FLAGS_TRUNCATED = 0x0200,
    FLAGS_WANTED = 0x0100,    /* recursion */
    FLAGS_AVAILABLE = 0x0080, /* recursion */
    FLAGS_CODE = 0x000f,
    CLASS_IN = 1,
    TYPE_CNAME = 5,
    TYPE_OPTIONS = 41,
    TYPE_IXFR = 251, /* from here on: transfers and questions for everything */
    LABEL_MAX = 63,
    POINTER = 0xc0,
    HOPS_MAX = 32,
    RECORDS_MAX = 256,
    ALIASES_MAX = 16,
    RECORD_FIXED = 10, /* of a record, behind its name: type, class, time to live, length */
};

struct reader {
    const unsigned char *bytes;
    size_t len, at;
    bool bad;
};

static uint32_t take(struct reader *reader, size_t size)
{
    uint32_t value = 0;

    if (reader->bad || size > reader->len - reader->at) {
        reader->bad = true;
        return 0;
    }
    while (size--)
        value = value << 8 | reader->bytes[reader->at++];
    return value;
}

/* Appends a label; false: it does not fit, or has a byte that would make another name of it. */
static bool add_label(char *name, size_t *len, const unsigned char *label, size_t size)
{
    size_t dot = *len ? 1 : 0;

    if (size > DNS_NAME_SIZE - 1 - *len - dot || *len + dot > DNS_NAME_SIZE - 1)
        return false;
    if (memchr(label, '.', size) || memchr(label, '\0', size))
        return false;
    if (dot)
        name[(*len)++] = '.';
    memcpy(name + *len, label, size);
    *len += size;
    name[*len] = '\0';
    return true;
}

/* Pointers lead only backwards, and not often: every name comes to its end. */
static void take_name(struct reader *reader, char name[DNS_NAME_SIZE], size_t *len)
{
    size_t at = reader->at, limit = reader->at, hops = 0;
    bool jumped = false;

    *len = 0;
    name[0] = '\0';
    while (!reader->bad) {
        if (at >= reader->len)
            break;
        size_t size = reader->bytes[at++];

        if ((size & POINTER) == POINTER && at < reader->len && hops++ < HOPS_MAX) {
            size_t to = (size & ~(size_t)POINTER) << 8 | reader->bytes[at++];

            if (!jumped)
                reader->at = at;
            jumped = true;
            if (to >= limit)
                break;
            at = limit = to;
            continue;
        }
        if (size == 0) {
            if (!jumped)
                reader->at = at;
            return;
        }
        if (size > LABEL_MAX || size > reader->len - at || !add_label(name, len, reader->bytes + at, size))
            break;
        at += size;
    }
    reader->bad = true;
}

enum dns_read dns_read_question(const unsigned char *bytes, size_t len, struct dns_question *out,
                                enum dns_code *code)
{
    struct reader reader = { bytes, len, 0, false };

    *out = (struct dns_question){ 0 };
    (void)take(&reader, 2);
    uint32_t flags = take(&reader, 2), questions = take(&reader, 2);

    (void)take(&reader, 4); /* answers and authorities: of no interest */
    (void)take(&reader, 2); /* what is added: options that we do not have */
    if (reader.bad || flags & FLAGS_ANSWER)
        return DNS_IGNORE;
    *code = flags & FLAGS_OPCODE ? DNS_NOTIMP : DNS_FORMERR;
    if (flags & FLAGS_OPCODE || questions != 1)
        return DNS_ANSWER;
    take_name(&reader, out->name, &out->len);
    out->type = (uint16_t)take(&reader, 2);
    uint32_t class = take(&reader, 2);

    if (reader.bad)
        return DNS_ANSWER;
    out->end = reader.at;
    *code = DNS_REFUSED;
    return class == CLASS_IN && out->type < TYPE_IXFR ? DNS_QUESTION : DNS_ANSWER;
}

static size_t put(unsigned char *out, size_t at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[at + i] = (unsigned char)(value >> 8 * (size - 1 - i));
    return at + size;
}

size_t dns_write_answer(const unsigned char *asked, size_t end, enum dns_code code,
                        const struct address *address, uint32_t ttl, unsigned char *out)
{
    bool question = end > DNS_HEADER && end <= DNS_UDP_MAX - 64;
    bool answered = question && address && address->len;
    uint32_t flags = ((uint32_t)asked[2] << 8 | asked[3]) & FLAGS_WANTED;
    size_t at;

    memcpy(out, asked, 2);
    put(out, 2, flags | FLAGS_ANSWER | FLAGS_AVAILABLE | code, 2);
    put(out, 4, question ? 1 : 0, 2);
    put(out, 6, answered ? 1 : 0, 2);
    put(out, 8, 0, 4);
    if (!question)
        return DNS_HEADER;
    memcpy(out + DNS_HEADER, asked + DNS_HEADER, end - DNS_HEADER);
    if (!answered)
        return end;
    at = put(out, end, POINTER << 8 | DNS_HEADER, 2);
    at = put(out, at, address->len == 4 ? DNS_A : DNS_AAAA, 2);
    at = put(out, at, CLASS_IN, 2);
    at = put(out, at, ttl, 4);
    at = put(out, at, address->len, 2);
    memcpy(out + at, address->bytes, address->len);
    return at + address->len;
}

size_t dns_write_question(uint16_t id, const char *name, enum dns_type type, unsigned char *out)
{
    size_t at = put(out, 0, id, 2);

    at = put(out, at, FLAGS_WANTED, 2);
    at = put(out, at, 1, 2);
    at = put(out, at, 0, 4);
    at = put(out, at, 1, 2);
    while (*name) {
        size_t len = strcspn(name, ".");

        at = put(out, at, (uint32_t)len, 1);
        memcpy(out + at, name, len);
        at += len;
        name += len + (name[len] == '.' ? 1 : 0);
    }
    at = put(out, at, 0, 1);
    at = put(out, at, type, 2);
    at = put(out, at, CLASS_IN, 2);
    /* How long an answer may be, by a record of the root's. */
    at = put(out, at, 0, 1);
    at = put(out, at, TYPE_OPTIONS, 2);
    at = put(out, at, DNS_UDP_MAX, 2);
    return put(out, at, 0, 6);
}

/* --- what a server says --- */

struct record {
    char name[DNS_NAME_SIZE];
    uint32_t type, class, ttl;
    const unsigned char *data;
    size_t size, data_at;
};

static bool take_record(struct reader *reader, struct record *out)
{
    size_t len;

    take_name(reader, out->name, &len);
    out->type = take(reader, 2);
    out->class = take(reader, 2);
    out->ttl = take(reader, 4);
    out->size = take(reader, 2);
    if (reader->bad || out->size > reader->len - reader->at)
        return false;
    out->data = reader->bytes + reader->at;
    out->data_at = reader->at;
    reader->at += out->size;
    return true;
}

static void shorten(uint32_t *ttl, uint32_t other)
{
    if (other < *ttl)
        *ttl = other;
}

/* True: `name` is now what it is an alias of. */
static bool follow_alias(struct reader reader, uint32_t records, char name[DNS_NAME_SIZE], uint32_t *ttl)
{
    struct record record;

    for (uint32_t i = 0; i < records && take_record(&reader, &record); i++) {
        struct reader inside = { reader.bytes, reader.len, record.data_at, false };
        size_t len;

        if (record.type != TYPE_CNAME || record.class != CLASS_IN || strcasecmp(record.name, name) != 0)
            continue;
        take_name(&inside, name, &len);
        if (inside.bad || inside.at != record.data_at + record.size)
            return false;
        shorten(ttl, record.ttl);
        return true;
    }
    return false;
}

static void collect(struct reader reader, uint32_t records, const char *name, enum dns_type type,
                    struct dns_addresses *out)
{
    size_t size = type == DNS_A ? 4 : 16;
    struct record record;

    for (uint32_t i = 0; i < records && take_record(&reader, &record); i++) {
        if (record.type != type || record.class != CLASS_IN || record.size != size ||
            strcasecmp(record.name, name) != 0 || out->len == DNS_ADDRESSES_MAX)
            continue;
        out->items[out->len++] = address_from(record.data, size);
        shorten(&out->ttl, record.ttl);
    }
}

enum dns_heard dns_read_answer(const unsigned char *bytes, size_t len, uint16_t id, const char *name,
                               enum dns_type type, struct dns_addresses *out)
{
    struct reader reader = { bytes, len, 0, false };
    char asked[DNS_NAME_SIZE];
    size_t asked_len;

    *out = (struct dns_addresses){ .ttl = UINT32_MAX };

    uint32_t its_id = take(&reader, 2), flags = take(&reader, 2), questions = take(&reader, 2);
    uint32_t records = take(&reader, 2);

    (void)take(&reader, 4);
    if (reader.bad || its_id != id || !(flags & FLAGS_ANSWER) || questions != 1)
        return DNS_FOREIGN;
    take_name(&reader, asked, &asked_len);
    if (take(&reader, 2) != (uint32_t)type || take(&reader, 2) != CLASS_IN || reader.bad ||
        strcasecmp(asked, name) != 0)
        return DNS_FOREIGN;
    if (flags & FLAGS_TRUNCATED)
        return DNS_TRUNCATED;
    if ((flags & FLAGS_CODE) != DNS_NOERROR && (flags & FLAGS_CODE) != DNS_NXDOMAIN)
        return DNS_FAILED;
    if (records > RECORDS_MAX)
        records = RECORDS_MAX;
    for (int i = 0; i < ALIASES_MAX; i++) {
        collect(reader, records, asked, type, out);
        if (out->len || !follow_alias(reader, records, asked, &out->ttl))
            break;
    }
    if (!out->len)
        out->ttl = 0;
    return DNS_HEARD;
}
