#pragma once

/* What the files of TLS share. */

#include "net/tls.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>

/* How long before now a certificate begins: clocks differ. */
enum { TLS_BACKDATED = 24 * 3600 };

/* The part of tls_warm() that certificates need.  Less than half of it. */
int tls_warm_certificates(void);

/* The one key of all certificates that are not an authority's; NULL: it cannot be made. */
EVP_PKEY *tls_leaf_key(void);

/* Makes an ECDSA key on P-256; NULL on failure. */
EVP_PKEY *tls_key_new(void);

/* The parts that all certificates have: version, a random serial, their time, key and issuer.  NULL on failure.
 */
X509 *tls_certificate_new(EVP_PKEY *key, const X509_NAME *issuer, time_t from, time_t until);

/* Adds an extension by its number and the text that OpenSSL writes it in; `issuer` may be `to` itself. */
bool tls_certificate_add(X509 *to, X509 *issuer, int nid, const char *value);

/* A certificate for `name`, signed; NULL: it is no name of a host and no address. */
X509 *tls_leaf_new(const char *name, X509 *issuer, EVP_PKEY *issuer_key);

/* From what the authority remembers, or new; borrowed until the next call.  NULL as above. */
X509 *tls_authority_mint(struct tls_authority *authority, const char *name);

X509_STORE *tls_trust_store(struct tls_trust *trust);

/* Why the last call on `ssl` failed, from OpenSSL's queue of errors and the verdict on the certificate. */
void tls_explain(const SSL *ssl, char out[TLS_WHY]);

/* The PEM of what `write` writes; the caller frees. */
char *tls_pem(int (*write)(BIO *out, const void *what), const void *what);

/* For readers of PEM: without it, OpenSSL would ask whoever sits at the terminal. */
int tls_no_password(char *out, int size, int writing, void *nothing);
