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

/* Which one it is: no other has, or had, that number. */
uint64_t tls_trust_number(const struct tls_trust *trust);

/* tls_sessions.c: at most TLS_SESSIONS_MAX, of which the oldest is forgotten first.  An id says all that the
 * verification of a certificate depends on, and where it was shown; `verified` is when, by clock_us(). */
enum { TLS_SESSIONS_MAX = 64, TLS_ID = 32 };

SSL_SESSION *tls_sessions_find(const unsigned char id[TLS_ID], uint64_t *verified); /* borrowed, or NULL */
bool tls_sessions_keep(const unsigned char id[TLS_ID], SSL_SESSION *session,
                       uint64_t verified); /* true: taken */
void tls_sessions_forget(const unsigned char id[TLS_ID]);
size_t tls_sessions_count(void);

/* Whether the handshake went on from a session of before. */
bool tls_resumed(const struct tls *tls);

/* Why the last call on `ssl` failed, from OpenSSL's queue of errors and the verdict on the certificate. */
void tls_explain(const SSL *ssl, char out[TLS_WHY]);

/* The PEM of what `write` writes; the caller frees. */
char *tls_pem(int (*write)(BIO *out, const void *what), const void *what);

/* For readers of PEM: without it, OpenSSL would ask whoever sits at the terminal. */
int tls_no_password(char *out, int size, int writing, void *nothing);
