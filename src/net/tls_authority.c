#include "net/tls_inner.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An authority lives as long as its sandbox, so its certificate does not have to end before. */
enum { YEARS = 10, LEAF_MAX_AGE = 3 * 24 * 3600 };

struct leaf {
    char *name;
    X509 *certificate;
    time_t made;
};

struct tls_authority {
    EVP_PKEY *key;
    X509 *certificate;
    char *key_pem, *certificate_pem;
    struct leaf leaves[TLS_LEAVES_MAX]; /* `next` is the oldest, once there are so many */
    size_t next;
};

static int write_key(BIO *out, const void *key)
{
    return PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
}

static int write_certificate(BIO *out, const void *certificate)
{
    return PEM_write_bio_X509(out, certificate);
}

/* Takes both, which may be NULL. */
static struct tls_authority *put_together(EVP_PKEY *key, X509 *certificate, struct error *err)
{
    struct tls_authority *made = memory_zero(sizeof *made);

    made->key = key;
    made->certificate = certificate;
    if (key && certificate) {
        made->key_pem = tls_pem(write_key, key);
        made->certificate_pem = tls_pem(write_certificate, certificate);
    }
    if (made->key_pem && made->certificate_pem && X509_check_private_key(certificate, key) == 1)
        return made;
    error_set(err, ERROR_INVALID, "no certificate authority");
    tls_authority_free(made);
    return NULL;
}

/* Each has another name, or programs that remember two would take one for the other. */
static bool name_authority(X509 *certificate)
{
    unsigned char random[8];
    char name[64];

    if (RAND_bytes(random, sizeof random) != 1)
        return false;
    int at = snprintf(name, sizeof name, "Cove sandbox ");

    for (size_t i = 0; i < sizeof random; i++)
        at += snprintf(name + at, sizeof name - (size_t)at, "%02x", random[i]);
    X509_NAME *subject = X509_get_subject_name(certificate);

    return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) &&
           X509_set_issuer_name(certificate, subject);
}

static X509 *sign_itself(EVP_PKEY *key)
{
    time_t now = time(NULL);
    X509 *made = tls_certificate_new(key, NULL, now - TLS_BACKDATED, now + YEARS * 365L * 24 * 3600);

    if (made && name_authority(made) &&
        tls_certificate_add(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        tls_certificate_add(made, made, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        tls_certificate_add(made, made, NID_subject_key_identifier, "hash") &&
        X509_sign(made, key, EVP_sha256()) > 0)
        return made;
    X509_free(made);
    return NULL;
}

struct tls_authority *tls_authority_new(struct error *err)
{
    if (tls_warm_certificates() < 0) {
        error_set(err, ERROR_UNSUPPORTED, "OpenSSL cannot be used");
        return NULL;
    }
    EVP_PKEY *key = tls_key_new();

    return put_together(key, key ? sign_itself(key) : NULL, err);
}

struct tls_authority *tls_authority_load(const char *key_pem, const char *certificate_pem, struct error *err)
{
    if (tls_warm_certificates() < 0) {
        error_set(err, ERROR_UNSUPPORTED, "OpenSSL cannot be used");
        return NULL;
    }
    BIO *key_in = BIO_new_mem_buf(key_pem, -1), *certificate_in = BIO_new_mem_buf(certificate_pem, -1);
    EVP_PKEY *key = key_in ? PEM_read_bio_PrivateKey(key_in, NULL, tls_no_password, NULL) : NULL;
    X509 *certificate = certificate_in ? PEM_read_bio_X509(certificate_in, NULL, tls_no_password, NULL) : NULL;

    BIO_free(key_in);
    BIO_free(certificate_in);
    return put_together(key, certificate, err);
}

static void forget(struct leaf *leaf)
{
    free(leaf->name);
    X509_free(leaf->certificate);
    *leaf = (struct leaf){ 0 };
}

void tls_authority_free(struct tls_authority *authority)
{
    if (!authority)
        return;
    for (size_t i = 0; i < TLS_LEAVES_MAX; i++)
        forget(&authority->leaves[i]);
    EVP_PKEY_free(authority->key);
    X509_free(authority->certificate);
    if (authority->key_pem)
        OPENSSL_cleanse(authority->key_pem, strlen(authority->key_pem));
    free(authority->key_pem);
    free(authority->certificate_pem);
    free(authority);
}

const char *tls_authority_key(const struct tls_authority *authority)
{
    return authority->key_pem;
}

const char *tls_authority_certificate(const struct tls_authority *authority)
{
    return authority->certificate_pem;
}

uint32_t tls_authority_hash(const struct tls_authority *authority)
{
    return (uint32_t)X509_subject_name_hash(authority->certificate);
}

size_t tls_authority_leaves(const struct tls_authority *authority)
{
    size_t count = 0;

    for (size_t i = 0; i < TLS_LEAVES_MAX; i++)
        count += authority->leaves[i].certificate != NULL;
    return count;
}

static struct leaf *find_leaf(struct tls_authority *authority, const char *name)
{
    for (size_t i = 0; i < TLS_LEAVES_MAX; i++)
        if (authority->leaves[i].name && strcmp(authority->leaves[i].name, name) == 0)
            return &authority->leaves[i];
    return NULL;
}

X509 *tls_authority_mint(struct tls_authority *authority, const char *name)
{
    struct leaf *leaf = find_leaf(authority, name);
    time_t now = time(NULL);

    if (leaf && now >= leaf->made && now - leaf->made < LEAF_MAX_AGE)
        return leaf->certificate;
    X509 *made = tls_leaf_new(name, authority->certificate, authority->key);

    if (!made)
        return NULL;
    if (!leaf) {
        leaf = &authority->leaves[authority->next];
        authority->next = (authority->next + 1) % TLS_LEAVES_MAX;
    }
    forget(leaf);
    *leaf = (struct leaf){ .name = text_copy(name), .certificate = made, .made = now };
    return made;
}

char *tls_authority_leaf(struct tls_authority *authority, const char *name)
{
    X509 *leaf = tls_authority_mint(authority, name);

    return leaf ? tls_pem(write_certificate, leaf) : NULL;
}
