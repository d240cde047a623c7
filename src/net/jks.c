/* Numbers have their high bytes first, a string has its length in two bytes before it:
 *
 *   FEEDFEED  version 2  count
 *   for each: kind 2, its alias, when it was added (8), "X.509", length, the certificate
 *   SHA-1 of the password in UTF-16, two words, and all of the above */

#include "net/jks.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char password[] = "changeit";

static void add_number(struct text *out, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0) {
        char byte = (char)(value >> (8 * bytes));

        text_add_bytes(out, &byte, 1);
    }
}

static void add_string(struct text *out, const char *string)
{
    add_number(out, strlen(string), 2);
    text_add(out, string);
}

static void add_certificate(struct text *out, unsigned number, const unsigned char *der, long len)
{
    char alias[32];

    snprintf(alias, sizeof alias, "root-%u", number);
    add_number(out, 2, 4);
    add_string(out, alias);
    add_number(out, 0, 8);
    add_string(out, "X.509");
    add_number(out, (uint64_t)len, 4);
    text_add_bytes(out, der, (size_t)len);
}

static void add_digest(struct text *out)
{
    static const char words[] = "Mighty Aphrodite";
    unsigned char digest[HASH_BYTES_MAX];
    struct hash hash;

    hash_begin(&hash, HASH_SHA1);
    for (size_t i = 0; password[i]; i++)
        hash_add(&hash, (const char[]){ 0, password[i] }, 2);
    hash_add(&hash, words, sizeof words - 1);
    hash_add(&hash, out->data, out->len);
    hash_end(&hash, digest);
    text_add_bytes(out, digest, SHA_DIGEST_LENGTH);
}

/* What a letter of base64 stands for; 64: nothing, as the end of a line; 65: it is none. */
static const unsigned char *letters(void)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static unsigned char table[256];

    if (table['B'])
        return table;
    memset(table, 65, sizeof table);
    for (unsigned char i = 0; i < 64; i++)
        table[(unsigned char)all[i]] = i;
    table['\n'] = table['\r'] = table['='] = 64;
    return table;
}

/* By hand, since OpenSSL takes five times as long and this may be done while somebody waits.  How many bytes;
 * -1: it is no base64. */
static long decode(const char *text, size_t len, unsigned char *out)
{
    const unsigned char *table = letters();
    uint32_t held = 0;
    unsigned bits = 0;
    long count = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char value = table[(unsigned char)text[i]];

        if (value == 65)
            return -1;
        if (value == 64)
            continue;
        held = held << 6 | value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[count++] = (unsigned char)(held >> bits);
        }
    }
    return count;
}

/* How many there were; -1: one of them is none. */
static int add_all(struct text *out, const char *bundle, size_t len)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
    autofree unsigned char *der = memory_resize(NULL, len + 1);
    const char *at = bundle;
    int count = 0;

    while ((at = strstr(at, begin))) {
        at += sizeof begin - 1;
        const char *over = strstr(at, end);
        long size = over ? decode(at, (size_t)(over - at), der) : -1;

        if (size <= 0)
            return -1;
        add_certificate(out, (unsigned)++count, der, size);
        at = over;
    }
    return count;
}

bool jks_write(const char *bundle, size_t len, struct text *out)
{
    add_number(out, 0xfeedfeed, 4);
    add_number(out, 2, 4);
    size_t at = out->len;

    add_number(out, 0, 4);
    int count = add_all(out, bundle, len);

    for (unsigned i = 0; count >= 0 && i < 4; i++)
        out->data[at + i] = (char)((unsigned)count >> (24 - 8 * i));
    add_digest(out);
    return count >= 0;
}
