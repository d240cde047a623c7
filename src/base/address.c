#include "base/address.h"

#include "base/array.h"

#include <arpa/inet.h>
#include <string.h>

/* What leads to no public place, most special first: the first row that fits counts. */
static const struct range {
    const char *prefix;
    unsigned char bits;
    enum address_class class;
} ranges[] = {
    { "169.254.169.254", 32, ADDRESS_METADATA },
    { "169.254.170.2", 32, ADDRESS_METADATA },
    { "169.254.170.23", 32, ADDRESS_METADATA },
    { "100.100.100.200", 32, ADDRESS_METADATA },
    { "192.0.0.192", 32, ADDRESS_METADATA },
    { "168.63.129.16", 32, ADDRESS_METADATA },
    { "0.0.0.0", 32, ADDRESS_UNSPECIFIED },
    { "0.0.0.0", 8, ADDRESS_RESERVED },
    { "10.0.0.0", 8, ADDRESS_PRIVATE },
    { "100.64.0.0", 10, ADDRESS_PRIVATE },
    { "127.0.0.0", 8, ADDRESS_LOOPBACK },
    { "169.254.0.0", 16, ADDRESS_LINK_LOCAL },
    { "172.16.0.0", 12, ADDRESS_PRIVATE },
    { "192.0.0.0", 24, ADDRESS_RESERVED },
    { "192.0.2.0", 24, ADDRESS_RESERVED },
    { "192.88.99.0", 24, ADDRESS_TRANSLATED },
    { "192.168.0.0", 16, ADDRESS_PRIVATE },
    { "198.18.0.0", 15, ADDRESS_RESERVED },
    { "198.51.100.0", 24, ADDRESS_RESERVED },
    { "203.0.113.0", 24, ADDRESS_RESERVED },
    { "224.0.0.0", 4, ADDRESS_MULTICAST },
    { "255.255.255.255", 32, ADDRESS_MULTICAST },
    { "240.0.0.0", 4, ADDRESS_RESERVED },
    { "fd00:ec2::254", 128, ADDRESS_METADATA },
    { "fd00:ec2::23", 128, ADDRESS_METADATA },
    { "fd20:ce::254", 128, ADDRESS_METADATA },
    { "::", 128, ADDRESS_UNSPECIFIED },
    { "::1", 128, ADDRESS_LOOPBACK },
    { "::", 96, ADDRESS_TRANSLATED }, /* IPv4-compatible, given up long ago */
    { "::ffff:0:0:0", 96, ADDRESS_TRANSLATED },
    { "64:ff9b::", 96, ADDRESS_TRANSLATED },
    { "64:ff9b:1::", 48, ADDRESS_TRANSLATED },
    { "100::", 64, ADDRESS_RESERVED },
    { "2001::", 32, ADDRESS_TRANSLATED },
    { "2001::", 23, ADDRESS_RESERVED },
    { "2001:db8::", 32, ADDRESS_RESERVED },
    { "2002::", 16, ADDRESS_TRANSLATED },
    { "3fff::", 20, ADDRESS_RESERVED },
    { "fc00::", 7, ADDRESS_PRIVATE },
    { "fe80::", 10, ADDRESS_LINK_LOCAL },
    { "fec0::", 10, ADDRESS_PRIVATE },
    { "ff00::", 8, ADDRESS_MULTICAST },
};

static const char *const class_names[] = {
    [ADDRESS_PUBLIC] = "a public address",
    [ADDRESS_UNSPECIFIED] = "the address of no machine",
    [ADDRESS_LOOPBACK] = "an address of this machine itself",
    [ADDRESS_PRIVATE] = "an address of a private network",
    [ADDRESS_LINK_LOCAL] = "an address of the local link",
    [ADDRESS_METADATA] = "an address at which clouds hand out credentials",
    [ADDRESS_MULTICAST] = "an address of many machines at once",
    [ADDRESS_TRANSLATED] = "an address that hides another one",
    [ADDRESS_RESERVED] = "a reserved address",
};

struct address address_from(const void *bytes, size_t len)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
    struct address address = ADDRESS_NONE;
    const unsigned char *at = bytes;

    if (len == 16 && memcmp(at, mapped, sizeof mapped) == 0) {
        at += sizeof mapped;
        len = 4;
    }
    if (len != 4 && len != 16)
        return ADDRESS_NONE;
    memcpy(address.bytes, at, len);
    address.len = (unsigned char)len;
    return address;
}

bool address_same(const struct address *a, const struct address *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void address_show(const struct address *address, char out[ADDRESS_SIZE])
{
    out[0] = '\0';
    if (address->len)
        inet_ntop(address->len == 4 ? AF_INET : AF_INET6, address->bytes, out, ADDRESS_SIZE);
}

static bool in_range(const struct address *address, const struct range *range)
{
    unsigned char prefix[16] = { 0 };
    int family = strchr(range->prefix, ':') ? AF_INET6 : AF_INET;
    size_t whole = range->bits / 8, rest = range->bits % 8;

    if (address->len != (family == AF_INET ? 4 : 16) || inet_pton(family, range->prefix, prefix) != 1 ||
        memcmp(address->bytes, prefix, whole) != 0)
        return false;
    return rest == 0 || (address->bytes[whole] ^ prefix[whole]) >> (8 - rest) == 0;
}

enum address_class address_class(const struct address *address)
{
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if (in_range(address, &ranges[i]))
            return ranges[i].class;
    return address->len ? ADDRESS_PUBLIC : ADDRESS_UNSPECIFIED;
}

const char *address_class_name(enum address_class class)
{
    return class_names[class];
}

/* Spellings */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int digit_value(char byte)
{
    if (is_digit(byte))
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 99;
}

/* One number as inet_aton() takes it: decimal, 0... octal, 0x... hexadecimal.  False: it is none. */
static bool read_number(const char *at, size_t len, uint64_t *out)
{
    int base = 10;

    if (len > 1 && at[0] == '0') {
        bool hex = (at[1] | 0x20) == 'x';

        base = hex ? 16 : 8;
        at += hex ? 2 : 1;
        len -= hex ? 2 : 1;
    }
    *out = 0;
    for (size_t i = 0; i < len; i++) {
        int digit = digit_value(at[i]);

        /* 089 is no octal number, and yet some read it: it is a number of unknown value. */
        if (digit > 15 || (base != 16 && digit > 9))
            return false;
        *out = digit < base && *out <= UINT32_MAX ? *out * (uint64_t)base + (uint64_t)digit : UINT64_MAX;
    }
    return true;
}

/* Up to four numbers with dots between them, the last of which fills what is left.  Gives how many there are,
 * 0 if it is something else; `out` is set if they are in bounds. */
static size_t read_numbers(const char *at, size_t len, struct address *out)
{
    uint64_t value = 0, number = 0;
    size_t count = 0;
    bool fits = true;

    for (const char *end = at + len;;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t part = (size_t)((dot ? dot : end) - at);

        if (part == 0 || !read_number(at, part, &number))
            return 0;
        count++;
        fits = fits && count <= 4 && number <= (dot ? 0xff : UINT32_MAX >> 8 * (count - 1));
        if (!dot)
            break;
        value = value << 8 | (number & 0xff);
        at = dot + 1;
    }
    if (fits) {
        value = value << 8 * (5 - count) | number;

        unsigned char bytes[4] = { (unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                   (unsigned char)(value >> 8), (unsigned char)value };

        *out = address_from(bytes, sizeof bytes);
    }
    return count;
}

static enum address_spelling read_v4(const char *bytes, size_t len, struct address *out)
{
    bool dot = len && bytes[len - 1] == '.';
    char shown[ADDRESS_SIZE];

    if (!read_numbers(bytes, len - dot, out))
        return ADDRESS_NOT;
    address_show(out, shown);
    return strlen(shown) == len && memcmp(shown, bytes, len) == 0 ? ADDRESS_PLAIN : ADDRESS_ODD;
}

static enum address_spelling read_v6(const char *bytes, size_t len, struct address *out)
{
    const char *zone = memchr(bytes, '%', len);
    size_t part = zone ? (size_t)(zone - bytes) : len;
    unsigned char raw[16];
    char text[ADDRESS_SIZE];

    if (part >= sizeof text || memchr(bytes, '\0', part))
        return ADDRESS_ODD;
    memcpy(text, bytes, part);
    text[part] = '\0';
    if (inet_pton(AF_INET6, text, raw) != 1)
        return ADDRESS_ODD;
    *out = address_from(raw, sizeof raw);
    return zone ? ADDRESS_ODD : ADDRESS_PLAIN;
}

enum address_spelling address_read(const char *bytes, size_t len, struct address *out)
{
    *out = ADDRESS_NONE;
    if (len > 2 && bytes[0] == '[' && bytes[len - 1] == ']') {
        bytes++;
        len -= 2;
        return memchr(bytes, ':', len) ? read_v6(bytes, len, out) : ADDRESS_ODD;
    }
    if (len && memchr(bytes, ':', len))
        return read_v6(bytes, len, out);
    return len ? read_v4(bytes, len, out) : ADDRESS_NOT;
}
