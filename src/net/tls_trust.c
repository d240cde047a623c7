#include "net/tls_inner.h"

#include "base/error.h"
#include "base/memory.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

struct tls_trust {
    X509_STORE *store;
    size_t count;
};

/* Until there is no more; false if something that calls itself a certificate is none. */
static bool add_all(struct tls_trust *trust, BIO *in)
{
    for (;;) {
        X509 *one = PEM_read_bio_X509_AUX(in, NULL, tls_no_password, NULL);

        if (!one)
            break;
        bool added = X509_STORE_add_cert(trust->store, one) == 1; /* also if it is there already */

        X509_free(one);
        if (!added)
            return false;
        trust->count++;
    }
    bool over = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;

    ERR_clear_error();
    return over;
}

struct tls_trust *tls_trust_new(const void *bundle, size_t len, struct error *err)
{
    if (tls_warm() < 0 || len > INT_MAX) {
        error_set(err, ERROR_UNSUPPORTED, "certificates cannot be read");
        return NULL;
    }
    struct tls_trust *trust = memory_zero(sizeof *trust);
    BIO *in = BIO_new_mem_buf(bundle, (int)len);

    trust->store = X509_STORE_new();
    bool good = in && trust->store && add_all(trust, in);

    BIO_free(in);
    if (good && trust->count)
        return trust;
    if (good)
        error_set(err, ERROR_INVALID, "there is no certificate in it");
    else
        error_set(err, ERROR_INVALID, "certificate %zu cannot be read", trust->count + 1);
    tls_trust_free(trust);
    return NULL;
}

void tls_trust_free(struct tls_trust *trust)
{
    if (!trust)
        return;
    X509_STORE_free(trust->store);
    free(trust);
}

size_t tls_trust_count(const struct tls_trust *trust)
{
    return trust->count;
}

X509_STORE *tls_trust_store(struct tls_trust *trust)
{
    return trust->store;
}
