/* One session.  OpenSSL reads and writes through a BIO of ours, because the first bytes of a client were read
 * before we came, and because a write to a closed socket must not end the process. */

#include "net/tls_inner.h"

#include "base/clock.h"
#include "base/hostname.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

struct tls {
    SSL *ssl; /* NULL: it failed before it began */
    int fd;
    unsigned char *early;
    size_t early_at, early_len;
    uint32_t wants;
    bool more;   /* is to be written at once behind this record */
    bool ended;  /* the socket said that nothing more comes */
    bool dry;    /* the last read had to wait */
    bool failed; /* nothing may be done with it any more */
    bool keeps;  /* sessions that its server offers, as `id` */
    unsigned char id[TLS_ID];
    char *asked;       /* of a client: who it believes, and as whom */
    uint64_t verified; /* when its server's certificate was; 0: not yet */
    char why[TLS_WHY];
};

enum {
    READ_AHEAD = 4 * (TLS_RECORD_MAX + 256), /* held only while there is something in it */
    TICKETS_LIVE = 3600,
};

/* What is spoken behind TLS, each with its length before it; the best first. */
static const unsigned char http1[] = "\x08http/1.1", http2[] = "\x02h2";

static struct {
    BIO_METHOD *socket;
    SSL_CTX *server, *client;
    EVP_PKEY *leaf_key;
    bool ready; /* certificates can be made */
} shared;

EVP_PKEY *tls_leaf_key(void)
{
    if (!shared.leaf_key)
        shared.leaf_key = tls_key_new();
    return shared.leaf_key;
}

static int take_early(struct tls *tls, char *out, int size)
{
    size_t left = tls->early_len - tls->early_at;
    size_t taken = left < (size_t)size ? left : (size_t)size;

    memcpy(out, tls->early + tls->early_at, taken);
    tls->early_at += taken;
    if (tls->early_at == tls->early_len) {
        free(tls->early);
        tls->early = NULL;
    }
    return (int)taken;
}

static int socket_read(BIO *bio, char *out, int size)
{
    struct tls *tls = BIO_get_data(bio);
    ssize_t got;

    BIO_clear_retry_flags(bio);
    if (tls->early)
        return take_early(tls, out, size);
    do {
        got = recv(tls->fd, out, (size_t)size, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        BIO_set_retry_read(bio);
    tls->ended |= got == 0;
    return (int)got;
}

static int socket_write(BIO *bio, const char *bytes, int len)
{
    struct tls *tls = BIO_get_data(bio);
    ssize_t sent;

    BIO_clear_retry_flags(bio);
    do {
        sent = send(tls->fd, bytes, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL | (tls->more ? MSG_MORE : 0));
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN)
        BIO_set_retry_write(bio);
    return (int)sent;
}

static long socket_control(BIO *bio, int what, long number, void *pointer)
{
    struct tls *tls = BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (what == BIO_CTRL_EOF)
        return tls->ended;
    return what == BIO_CTRL_FLUSH || what == BIO_CTRL_DUP;
}

static BIO_METHOD *socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");

    if (method && BIO_meth_set_read(method, socket_read) && BIO_meth_set_write(method, socket_write) &&
        BIO_meth_set_ctrl(method, socket_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* Where `protocol` stands in a list; NULL: it does not. */
static const unsigned char *find_protocol(const unsigned char *list, unsigned len,
                                          const unsigned char *protocol)
{
    for (unsigned at = 0; at < len && list[at] < len - at; at += 1U + list[at])
        if (list[at] == protocol[0] && memcmp(list + at + 1, protocol + 1, protocol[0]) == 0)
            return list + at;
    return NULL;
}

/* Without a choice of ours a client could go on with what it likes best. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned len, void *nothing)
{
    const unsigned char *found = find_protocol(offered, len, http2);

    (void)ssl;
    (void)nothing;
    if (!found)
        found = find_protocol(offered, len, http1);
    if (!found)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = found + 1;
    *out_len = found[0];
    return SSL_TLSEXT_ERR_OK;
}

/* The fastest first, which are as safe as the longer ones (browsers do the same). */
static bool prefer_fast(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    return SSL_CTX_set_ciphersuites(
               context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
           SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM+AES128:ALL:!COMPLEMENTOFDEFAULT:!eNULL") == 1;
}

static SSL_CTX *context_new(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);

    if (!context)
        return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_security_level(context, 2);

    SSL_CTX_set_default_read_buffer_len(context, READ_AHEAD);
    SSL_CTX_set_read_ahead(context, 1); /* one call for several records, not two for each */
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) && SSL_CTX_set_num_tickets(context, 1) &&
        prefer_fast(context))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static SSL_CTX *server_new(void)
{
    SSL_CTX *context = context_new(TLS_server_method());

    if (!context)
        return NULL;
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_timeout(context, TICKETS_LIVE); /* their key is of this process */
    return context;
}

/* Only of a server that was believed. */
static int session_came(SSL *ssl, SSL_SESSION *session)
{
    struct tls *tls = SSL_get_app_data(ssl);

    if (!tls->keeps || tls->failed || SSL_get_verify_result(ssl) != X509_V_OK)
        return 0;
    if (!tls->verified)
        tls->verified = clock_us();
    return tls_sessions_keep(tls->id, session, tls->verified);
}

static SSL_CTX *client_new(void)
{
    SSL_CTX *context = context_new(TLS_client_method());

    if (!context)
        return NULL;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, session_came);
    /* Whoever stands in a bundle is trusted, also if others have signed them. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
    if (SSL_CTX_set_alpn_protos(context, http1, sizeof http1 - 1) == 0)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

int tls_warm_certificates(void)
{
    unsigned char byte;

    if (shared.ready)
        return 0;
    tzset(); /* libc reads a file before it tells the time of a certificate */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_LOAD_SSL_STRINGS |
                             OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
                         NULL) != 1 ||
        RAND_bytes(&byte, 1) != 1 || RAND_priv_bytes(&byte, 1) != 1)
        return -1;
    shared.ready = true;
    return 0;
}

int tls_warm(void)
{
    if (tls_warm_certificates() < 0)
        return -1;
    shared.socket = shared.socket ? shared.socket : socket_method();
    shared.server = shared.server ? shared.server : server_new();
    shared.client = shared.client ? shared.client : client_new();
    return shared.socket && shared.server && shared.client && tls_leaf_key() ? 0 : -1;
}

static bool attach(struct tls *tls, SSL_CTX *context)
{
    SSL *ssl = SSL_new(context);
    BIO *bio = ssl ? BIO_new(shared.socket) : NULL;

    if (!bio) {
        SSL_free(ssl);
        return false;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, tls);
    tls->ssl = ssl;
    return true;
}

static struct tls *session_new(int fd)
{
    struct tls *tls = memory_zero(sizeof *tls);

    tls->fd = fd;
    tls->wants = EPOLLIN;
    ERR_clear_error();
    return tls;
}

static struct tls *stillborn(struct tls *tls, const char *why)
{
    SSL_free(tls->ssl);
    tls->ssl = NULL;
    tls->failed = true;
    snprintf(tls->why, sizeof tls->why, "%s", why);
    return tls;
}

/* A session is for whoever was shown this certificate, and nobody else's. */
static bool stands_for(SSL *ssl, const X509 *leaf)
{
    const ASN1_INTEGER *serial = X509_get0_serialNumber(leaf);

    return SSL_set_session_id_context(ssl, ASN1_STRING_get0_data(serial),
                                      (unsigned)ASN1_STRING_length(serial)) == 1;
}

struct tls *tls_accept(struct tls_authority *authority, const char *name, int fd, const void *early,
                       size_t early_len)
{
    struct tls *tls = session_new(fd);

    if (tls_warm() < 0 || !attach(tls, shared.server))
        return stillborn(tls, "TLS cannot be had");
    X509 *leaf = tls_authority_mint(authority, name);

    if (!leaf || SSL_use_certificate(tls->ssl, leaf) != 1 ||
        SSL_use_PrivateKey(tls->ssl, shared.leaf_key) != 1 || !stands_for(tls->ssl, leaf))
        return stillborn(tls, "there can be no certificate for this name");
    if (early_len) {
        tls->early = memory_resize(NULL, early_len);
        tls->early_len = early_len;
        memcpy(tls->early, early, early_len);
    }
    SSL_set_accept_state(tls->ssl);
    return tls;
}

/* Not from the certificate's subject, where names stood long ago. */
static bool expect(SSL *ssl, const char *name)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    struct hostname host;

    if (hostname_read(name, strlen(name), &host))
        return false;
    if (hostname_is_address(&host))
        return X509_VERIFY_PARAM_set1_ip(param, host.address.bytes, host.address.len) == 1;
    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(ssl, host.text) == 1 && SSL_set_tlsext_host_name(ssl, host.text) == 1;
}

struct tls *tls_connect(struct tls_trust *trust, const char *name, int fd)
{
    struct tls *tls = session_new(fd);

    if (tls_warm() < 0 || !attach(tls, shared.client) ||
        SSL_set1_verify_cert_store(tls->ssl, tls_trust_store(trust)) != 1)
        return stillborn(tls, "TLS cannot be had");
    if (!expect(tls->ssl, name))
        return stillborn(tls, "nobody can have this name");
    SSL_set_connect_state(tls->ssl);
    tls->asked = text_format("%llu %s", (unsigned long long)tls_trust_number(trust), name);
    return tls;
}

/* What does not come to it begins as if there were no session. */
void tls_resume(struct tls *tls, const char *place)
{
    autotext struct text all = TEXT_NONE;
    SSL_SESSION *session;

    if (tls->failed)
        return;
    text_addf(&all, "%s %s", tls->asked, place);
    tls->keeps = SHA256((const unsigned char *)text_string(&all), all.len, tls->id) &&
                 SSL_set_session_id_context(tls->ssl, tls->id, sizeof tls->id) == 1;
    session = tls->keeps ? tls_sessions_find(tls->id, &tls->verified) : NULL;
    if (session)
        (void)SSL_set_session(tls->ssl, session);
}

bool tls_resumed(const struct tls *tls)
{
    return tls->ssl && SSL_session_reused(tls->ssl);
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    /* Or OpenSSL would not have its session resumed. */
    if (tls->ssl && !tls->failed && SSL_is_init_finished(tls->ssl))
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(tls->ssl);
    free(tls->asked);
    free(tls->early);
    free(tls);
}

/* What a call on the session came to: 1 done, 0 the other side ended, -1 and errno. */
static int judge(struct tls *tls, int result, int system)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_NONE:
        return 1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
        tls->wants = EPOLLIN;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_WANT_WRITE:
        tls->wants = EPOLLOUT;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_SYSCALL:
        tls->failed = true;
        snprintf(tls->why, sizeof tls->why, "%s", system ? strerrordesc_np(system) : "it ended without a word");
        errno = ECONNRESET;
        return -1;
    default:
        tls->failed = true;
        tls_explain(tls->ssl, tls->why);
        errno = tls->ended ? ECONNRESET : EPROTO;
        return -1;
    }
}

enum tls_step tls_handshake(struct tls *tls)
{
    if (tls->failed)
        return TLS_FAILED;
    ERR_clear_error();
    errno = 0;
    int result = SSL_do_handshake(tls->ssl);

    if (judge(tls, result, errno) > 0) {
        if (!SSL_session_reused(tls->ssl))
            tls->verified = clock_us();
        return TLS_DONE;
    }
    if (!tls->failed && errno == EAGAIN)
        return tls->wants == EPOLLIN ? TLS_WANT_READ : TLS_WANT_WRITE;
    if (!tls->failed)
        snprintf(tls->why, sizeof tls->why, "it ended without a word");
    tls->failed = true;
    if (tls->keeps)
        tls_sessions_forget(tls->id);
    ERR_clear_error();
    return TLS_FAILED;
}

bool tls_speaks_h2(const struct tls *tls)
{
    const unsigned char *chosen = NULL;
    unsigned len = 0;

    SSL_get0_alpn_selected(tls->ssl, &chosen, &len);
    return len == http2[0] && memcmp(chosen, http2 + 1, len) == 0;
}

const char *tls_why(const struct tls *tls)
{
    return tls->why;
}

static bool may_go_on(const struct tls *tls)
{
    errno = EPROTO;
    return !tls->failed && SSL_is_init_finished(tls->ssl);
}

size_t tls_pending(const struct tls *tls)
{
    if (tls->failed || tls->dry)
        return 0;
    int ready = SSL_pending(tls->ssl);

    return ready > 0 ? (size_t)ready : SSL_has_pending(tls->ssl) == 1;
}

/* As read(), of one record. */
static ssize_t read_record(struct tls *tls, void *out, size_t size)
{
    ERR_clear_error();
    errno = 0;
    int got = SSL_read(tls->ssl, out, size > INT_MAX ? INT_MAX : (int)size);
    int verdict = judge(tls, got, errno);

    tls->dry = verdict < 0 && !tls->failed;
    return verdict > 0 ? got : verdict;
}

/* All records that have come.  Their end, or what is wrong with them, is told next time. */
ssize_t tls_read(struct tls *tls, void *out, size_t size)
{
    ssize_t got, total = 0;

    if (!may_go_on(tls))
        return -1;
    do {
        got = read_record(tls, (char *)out + total, size - (size_t)total);
        total += got > 0 ? got : 0;
    } while (got > 0 && (size_t)total < size && tls_pending(tls));
    return total ? total : got;
}

ssize_t tls_write(struct tls *tls, const void *bytes, size_t len)
{
    if (!may_go_on(tls))
        return -1;
    if (len == 0)
        return 0;
    ERR_clear_error();
    errno = 0;
    tls->more = len > TLS_RECORD_MAX;
    int sent = SSL_write(tls->ssl, bytes, len > INT_MAX ? INT_MAX : (int)len);
    int verdict = judge(tls, sent, errno);

    tls->more = false;
    if (verdict == 0)
        errno = ECONNRESET;
    return verdict > 0 ? sent : -1;
}

uint32_t tls_wants(const struct tls *tls)
{
    return tls->wants;
}

void tls_end(struct tls *tls)
{
    if (tls->failed || !SSL_is_init_finished(tls->ssl))
        return;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}
