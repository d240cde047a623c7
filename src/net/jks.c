/* Numbers have their high bytes first, a string has its length in two bytes before it:
 *
 *   FEEDFEED  version 2  count
 *   for each: kind 2, its alias, when it was added (8), "X.509", length, the certificate
 *   SHA-1 of the password in UTF-16, two words, and all of the above */

#include "net/jks.h"

#include "base/text.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The plain SHA-1 functions, as in base/sha256.c. */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

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
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA_CTX context;

    SHA1_Init(&context);
    for (size_t i = 0; password[i]; i++)
        SHA1_Update(&context, (const char[]){ 0, password[i] }, 2);
    SHA1_Update(&context, words, sizeof words - 1);
    SHA1_Update(&context, out->data, out->len);
    SHA1_Final(digest, &context);
    text_add_bytes(out, digest, sizeof digest);
}

/* How many there were; -1: one of them is none. */
static int add_all(struct text *out, BIO *in)
{
    char *name, *header;
    unsigned char *der;
    long len;
    int count = 0;

    while (PEM_read_bio(in, &name, &header, &der, &len) == 1) {
        if (strcmp(name, PEM_STRING_X509) == 0)
            add_certificate(out, (unsigned)++count, der, len);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_free(der);
    }
    bool over = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;

    ERR_clear_error();
    return over ? count : -1;
}

bool jks_write(const char *bundle, size_t len, struct text *out)
{
    BIO *in = len > INT_MAX ? NULL : BIO_new_mem_buf(bundle, (int)len);

    if (!in)
        return false;
    add_number(out, 0xfeedfeed, 4);
    add_number(out, 2, 4);
    size_t at = out->len;

    add_number(out, 0, 4);
    int count = add_all(out, in);

    BIO_free(in);
    for (unsigned i = 0; count >= 0 && i < 4; i++)
        out->data[at + i] = (char)((unsigned)count >> (24 - 8 * i));
    add_digest(out);
    return count >= 0;
}
