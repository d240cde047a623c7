/* OpenSSL takes 0.2 ms to read one certificate, and a bundle has 150, of which a session needs one.  So what is
 * read of each is who it is for; the store asks us for a name, and only who has it is read whole. */

#include "net/tls_inner.h"

#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>

struct root {
    unsigned char *der;
    long len;
    const unsigned char *name; /* whom it is for, in `der` ... */
    long name_len;
    X509_NAME *subject; /* ... and as it is compared, once somebody asked */
    bool taken;         /* the store has it */
};

struct tls_trust {
    uint64_t number;
    X509_STORE *store;
    struct root *roots;
    size_t len, cap;
};

/* Steps over one value of ASN.1, or into it; false if it is not of that tag, or not whole. */
static bool pass(const unsigned char **at, long *left, int wanted, bool into)
{
    const unsigned char *inner = *at;
    long len;
    int tag, class;
    int how = ASN1_get_object(&inner, &len, &tag, &class, *left);

    if ((how & 0x80) || (how & 1) || tag != wanted)
        return false;
    *left = into ? len : *left - (inner - *at) - len;
    *at = into ? inner : inner + len;
    return true;
}

/* Whom a certificate is for stands behind its serial number, algorithm, issuer and time. */
static bool find_name(struct root *root)
{
    static const int before[] = { V_ASN1_INTEGER, V_ASN1_SEQUENCE, V_ASN1_SEQUENCE, V_ASN1_SEQUENCE };
    const unsigned char *at = root->der;
    long left = root->len;

    for (int depth = 0; depth < 2; depth++)
        if (!pass(&at, &left, V_ASN1_SEQUENCE, true))
            return false;
    (void)pass(&at, &left, 0, false); /* the version, in certificates that have one */
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        if (!pass(&at, &left, before[i], false))
            return false;
    root->name = at;
    root->name_len = left;
    return pass(&at, &left, V_ASN1_SEQUENCE, false);
}

/* Takes `der`. */
static bool add_root(struct tls_trust *trust, unsigned char *der, long len)
{
    struct root root = { .der = der, .len = len };

    if (!find_name(&root)) {
        OPENSSL_free(der);
        return false;
    }
    if (trust->len == trust->cap) {
        trust->cap = trust->cap ? 2 * trust->cap : 64;
        trust->roots = memory_resize(trust->roots, trust->cap * sizeof *trust->roots);
    }
    trust->roots[trust->len++] = root;
    return true;
}

static bool is_certificate(const char *name)
{
    return strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0 ||
           strcmp(name, PEM_STRING_X509_TRUSTED) == 0;
}

/* Until there is no more; false if something that calls itself a certificate is none. */
static bool add_all(struct tls_trust *trust, BIO *in)
{
    char *name, *header;
    unsigned char *der;
    long len;

    while (PEM_read_bio(in, &name, &header, &der, &len) == 1) {
        bool wanted = is_certificate(name), good = true;

        OPENSSL_free(name);
        OPENSSL_free(header);
        if (wanted)
            good = add_root(trust, der, len);
        else
            OPENSSL_free(der);
        if (!good)
            return false;
    }
    bool over = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;

    ERR_clear_error();
    return over;
}

static bool take(const struct tls_trust *trust, struct root *root, X509_OBJECT *out, bool found)
{
    const unsigned char *at = root->der;
    X509 *whole = d2i_X509(NULL, &at, root->len);
    bool good = whole && X509_STORE_add_cert(trust->store, whole) == 1;

    root->taken = good;
    /* What is handed out is held by the store. */
    good = good && (found || X509_OBJECT_set1_X509(out, whole) == 1);
    if (good && !found)
        X509_free(whole);
    X509_free(whole);
    return good;
}

static bool is_for(struct root *root, const X509_NAME *name)
{
    const unsigned char *at = root->name;

    if (!root->subject)
        root->subject = d2i_X509_NAME(NULL, &at, root->name_len);
    return root->subject && X509_NAME_cmp(root->subject, name) == 0;
}

/* Several may have one name. */
static int find(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *out)
{
    const struct tls_trust *trust = X509_LOOKUP_get_method_data(lookup);
    bool found = false;

    for (size_t i = 0; type == X509_LU_X509 && i < trust->len; i++) {
        struct root *root = &trust->roots[i];

        if (!root->taken && is_for(root, name))
            found = take(trust, root, out, found) || found;
    }
    return found;
}

static bool open_store(struct tls_trust *trust)
{
    static X509_LOOKUP_METHOD *method;

    if (!method) {
        method = X509_LOOKUP_meth_new("a bundle");
        if (!method || !X509_LOOKUP_meth_set_get_by_subject(method, find))
            return false;
    }
    trust->store = X509_STORE_new();
    X509_LOOKUP *lookup = trust->store ? X509_STORE_add_lookup(trust->store, method) : NULL;

    return lookup && X509_LOOKUP_set_method_data(lookup, trust);
}

struct tls_trust *tls_trust_new(const void *bundle, size_t len, struct error *err)
{
    if (tls_warm() < 0 || len > INT_MAX) {
        error_set(err, ERROR_UNSUPPORTED, "certificates cannot be read");
        return NULL;
    }
    static uint64_t numbers;
    struct tls_trust *trust = memory_zero(sizeof *trust);

    trust->number = ++numbers;
    BIO *in = BIO_new_mem_buf(bundle, (int)len);
    bool good = in && open_store(trust) && add_all(trust, in);

    BIO_free(in);
    if (good && trust->len)
        return trust;
    if (good)
        error_set(err, ERROR_INVALID, "there is no certificate in it");
    else
        error_set(err, ERROR_INVALID, "certificate %zu cannot be read", trust->len + 1);
    tls_trust_free(trust);
    return NULL;
}

void tls_trust_free(struct tls_trust *trust)
{
    if (!trust)
        return;
    X509_STORE_free(trust->store);
    for (size_t i = 0; i < trust->len; i++) {
        OPENSSL_free(trust->roots[i].der);
        X509_NAME_free(trust->roots[i].subject);
    }
    free(trust->roots);
    free(trust);
}

size_t tls_trust_count(const struct tls_trust *trust)
{
    return trust->len;
}

uint64_t tls_trust_number(const struct tls_trust *trust)
{
    return trust->number;
}

X509_STORE *tls_trust_store(struct tls_trust *trust)
{
    return trust->store;
}
