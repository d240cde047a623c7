#include "net/tls_inner.h"

#include "base/hostname.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A week: short, and longer than any command waits. */
enum { LIFE = 7 * 24 * 3600, SERIAL_BYTES = 16 };

EVP_PKEY *tls_key_new(void)
{
    return EVP_EC_gen("P-256");
}

static bool give_serial(X509 *to)
{
    unsigned char bytes[SERIAL_BYTES];

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* above zero, and always as long */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(to));

    BN_free(number);
    return good;
}

X509 *tls_certificate_new(EVP_PKEY *key, const X509_NAME *issuer, time_t from, time_t until)
{
    X509 *made = X509_new();

    if (made && X509_set_version(made, X509_VERSION_3) && give_serial(made) &&
        ASN1_TIME_adj(X509_getm_notBefore(made), from, 0, 0) &&
        ASN1_TIME_adj(X509_getm_notAfter(made), until, 0, 0) && X509_set_pubkey(made, key) &&
        (!issuer || X509_set_issuer_name(made, issuer)))
        return made;
    X509_free(made);
    return NULL;
}

bool tls_certificate_add(X509 *to, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, to, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool good = extension && X509_add_ext(to, extension, -1);

    X509_EXTENSION_free(extension);
    return good;
}

/* Takes `value`. */
static bool add_name(X509 *to, int type, ASN1_STRING *value)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    GENERAL_NAMES *names = GENERAL_NAMES_new();

    if (!name || !names || !value || sk_GENERAL_NAME_push(names, name) <= 0) {
        GENERAL_NAME_free(name);
        GENERAL_NAMES_free(names);
        ASN1_STRING_free(value);
        return false;
    }
    GENERAL_NAME_set0_value(name, type, value);
    bool good = X509_add1_ext_i2d(to, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;

    GENERAL_NAMES_free(names);
    return good;
}

static bool name_it(X509 *to, const char *name)
{
    struct hostname host;

    if (hostname_read(name, strlen(name), &host))
        return false;
    bool is_name = !hostname_is_address(&host);
    ASN1_STRING *value = ASN1_STRING_type_new(is_name ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);

    if (!value || !ASN1_STRING_set(value, is_name ? (const void *)host.text : host.address.bytes,
                                   is_name ? (int)strlen(host.text) : host.address.len)) {
        ASN1_STRING_free(value);
        return false;
    }
    return add_name(to, is_name ? GEN_DNS : GEN_IPADD, value);
}

X509 *tls_leaf_new(const char *name, X509 *issuer, EVP_PKEY *issuer_key)
{
    time_t now = time(NULL);
    EVP_PKEY *key = tls_leaf_key();
    X509 *leaf =
        !key ? NULL : tls_certificate_new(key, X509_get_subject_name(issuer), now - TLS_BACKDATED, now + LIFE);

    /* The subject says nothing: names stand in their own extension, and only there. */
    if (leaf &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(leaf), "O", MBSTRING_ASC,
                                   (const unsigned char *)"Cove", -1, -1, 0) &&
        name_it(leaf, name) && tls_certificate_add(leaf, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
        tls_certificate_add(leaf, issuer, NID_key_usage, "critical,digitalSignature") &&
        tls_certificate_add(leaf, issuer, NID_ext_key_usage, "serverAuth") &&
        tls_certificate_add(leaf, issuer, NID_authority_key_identifier, "keyid:always") &&
        X509_sign(leaf, issuer_key, EVP_sha256()) > 0)
        return leaf;
    X509_free(leaf);
    return NULL;
}

int tls_no_password(char *out, int size, int writing, void *nothing)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)nothing;
    return -1;
}

char *tls_pem(int (*write)(BIO *, const void *), const void *what)
{
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes, *pem = NULL;

    if (out && write(out, what) == 1) {
        long len = BIO_get_mem_data(out, &bytes);

        pem = strndup(bytes, (size_t)len);
        OPENSSL_cleanse(bytes, (size_t)len);
    }
    BIO_free(out);
    return pem;
}
