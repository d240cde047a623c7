#include "net/hello.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    RECORD_HEADER = 5,
    RECORD_HANDSHAKE = 22,
    RECORD_BODY_MAX = 16384,
    HANDSHAKE_HEADER = 4,
    CLIENT_HELLO = 1,
    RANDOM = 32,
    SESSION_MAX = 32,
    EXTENSION_NAME = 0,
    NAME_HOST = 0,
};

/* What is left of a message, or of a part of it. */
struct part {
    const unsigned char *at, *end;
    bool bad;
};

static uint32_t take(struct part *part, size_t size)
{
    uint32_t value = 0;

    if (part->bad || (size_t)(part->end - part->at) < size) {
        part->bad = true;
        return 0;
    }
    while (size--)
        value = value << 8 | *part->at++;
    return value;
}

/* A part with its length, of `size` bytes, before it. */
static struct part take_part(struct part *part, size_t size)
{
    size_t len = take(part, size);

    if (part->bad || (size_t)(part->end - part->at) < len) {
        part->bad = true;
        return (struct part){ part->end, part->end, true };
    }
    struct part inner = { part->at, part->at + len, false };

    part->at += len;
    return inner;
}

/* What is joined so far; `rest`: of the last record bytes are missing. */
static enum hello judge_joined(const unsigned char *joined, size_t len, bool rest)
{
    if (len < HANDSHAKE_HEADER)
        return HELLO_MORE;
    size_t whole = HANDSHAKE_HEADER + ((size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3]);

    if (joined[0] != CLIENT_HELLO || whole > HELLO_MAX || len > whole || (len == whole && rest))
        return HELLO_BAD;
    return len == whole ? HELLO_WHOLE : HELLO_MORE;
}

/* Joins what the records carry.  The message may come in several of them. */
static enum hello join(const unsigned char *bytes, size_t len, unsigned char *out, size_t *out_len)
{
    enum hello so_far = HELLO_MORE;

    *out_len = 0;
    while (len > 0 && so_far == HELLO_MORE) {
        if (bytes[0] != RECORD_HANDSHAKE || (len > 1 && bytes[1] != 3))
            return HELLO_BAD;
        if (len < RECORD_HEADER)
            return HELLO_MORE;
        size_t size = (size_t)bytes[3] << 8 | bytes[4], there = len - RECORD_HEADER;

        if (size == 0 || size > RECORD_BODY_MAX || size > HELLO_MAX - *out_len)
            return HELLO_BAD;
        there = there < size ? there : size;
        memcpy(out + *out_len, bytes + RECORD_HEADER, there);
        *out_len += there;
        so_far = judge_joined(out, *out_len, there < size);
        bytes += RECORD_HEADER + there;
        len -= RECORD_HEADER + there;
    }
    return so_far;
}

/* Exactly one name, of the one kind there is. */
static bool read_names(struct part extension, const char **name, size_t *name_len)
{
    struct part names = take_part(&extension, 2);

    if (extension.bad || extension.at != extension.end || take(&names, 1) != NAME_HOST)
        return false;
    struct part host = take_part(&names, 2);

    if (names.bad || names.at != names.end || host.at == host.end)
        return false;
    *name = (const char *)host.at;
    *name_len = (size_t)(host.end - host.at);
    return true;
}

static bool read_extensions(struct part extensions, const char **name, size_t *name_len)
{
    while (extensions.at < extensions.end) {
        uint32_t type = take(&extensions, 2);
        struct part extension = take_part(&extensions, 2);

        if (extensions.bad)
            return false;
        if (type != EXTENSION_NAME)
            continue;
        if (*name_len || !read_names(extension, name, name_len)) /* twice: whom would it be for? */
            return false;
    }
    return true;
}

enum hello hello_read(const unsigned char *bytes, size_t len, unsigned char *scratch, const char **name,
                      size_t *name_len)
{
    size_t size;
    enum hello joined = join(bytes, len, scratch, &size);

    *name = "";
    *name_len = 0;
    if (joined != HELLO_WHOLE)
        return joined;

    struct part hello = { scratch + HANDSHAKE_HEADER, scratch + size, false };

    if (take(&hello, 1) != 3)
        return HELLO_BAD;
    (void)take(&hello, 1);
    if ((size_t)(hello.end - hello.at) < RANDOM)
        return HELLO_BAD;
    hello.at += RANDOM;

    struct part session = take_part(&hello, 1), ciphers = take_part(&hello, 2), methods = take_part(&hello, 1);

    if (hello.bad || session.end - session.at > SESSION_MAX || ciphers.at == ciphers.end ||
        methods.at == methods.end)
        return HELLO_BAD;
    if (hello.at == hello.end)
        return HELLO_WHOLE;
    struct part extensions = take_part(&hello, 2);

    if (hello.bad || hello.at != hello.end || !read_extensions(extensions, name, name_len))
        return HELLO_BAD;
    return HELLO_WHOLE;
}
