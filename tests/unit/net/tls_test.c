#include "net/tls.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "net/tls_inner.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct tls_authority *ours;
static struct tls_trust *trust;

static struct tls_trust *trust_in(const char *pem)
{
    struct error err = { 0 };
    struct tls_trust *made = tls_trust_new(pem, strlen(pem), &err);

    if (!made)
        fail_msg("%s", err.text);
    return made;
}

static int set_up(void **state)
{
    struct error err = { 0 };

    (void)state;
    ours = tls_authority_new(&err);
    if (!ours)
        fail_msg("%s", err.text);
    trust = trust_in(tls_authority_certificate(ours));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tls_trust_free(trust);
    tls_authority_free(ours);
    return 0;
}

struct pair {
    int fds[2]; /* of the server, of the client */
    struct tls *server, *client;
};

static void pair_open(struct pair *pair)
{
    *pair = (struct pair){ 0 };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair->fds), 0);
}

static void pair_close(struct pair *pair)
{
    tls_free(pair->server);
    tls_free(pair->client);
    for (int i = 0; i < 2; i++)
        if (pair->fds[i] >= 0)
            close(pair->fds[i]);
}

static bool waits(enum tls_step step)
{
    return step == TLS_WANT_READ || step == TLS_WANT_WRITE;
}

/* As far as both come; gives how the client fared. */
static enum tls_step shake(struct pair *pair, enum tls_step *server)
{
    enum tls_step client = TLS_WANT_READ;

    *server = TLS_WANT_READ;
    for (int i = 0; i < 50 && (waits(client) || waits(*server)); i++) {
        client = waits(client) ? tls_handshake(pair->client) : client;
        *server = waits(*server) ? tls_handshake(pair->server) : *server;
    }
    return client;
}

static void pair_meet(struct pair *pair, const char *served, const char *asked)
{
    enum tls_step server;

    pair_open(pair);
    pair->server = tls_accept(ours, served, pair->fds[0], NULL, 0);
    pair->client = tls_connect(trust, asked, pair->fds[1]);
    enum tls_step client = shake(pair, &server);

    if (client != TLS_DONE || server != TLS_DONE)
        fail_msg("%s for %s: %s, %s", served, asked, tls_why(pair->client), tls_why(pair->server));
}

static void both_ways_bytes_arrive_and_the_end_is_told(void **state)
{
    struct pair pair;
    char bytes[16];

    (void)state;
    pair_meet(&pair, "a.example.com", "a.example.com");
    assert_int_equal(tls_read(pair.client, bytes, sizeof bytes), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(tls_wants(pair.client), EPOLLIN);
    assert_int_equal(tls_write(pair.server, "hello", 5), 5);
    assert_int_equal(tls_read(pair.client, bytes, 2), 2);
    assert_int_equal(tls_pending(pair.client), 3);
    assert_int_equal(tls_read(pair.client, bytes, sizeof bytes), 3);
    assert_int_equal(tls_pending(pair.client), 0);
    assert_int_equal(tls_write(pair.client, "world", 5), 5);
    assert_int_equal(tls_read(pair.server, bytes, sizeof bytes), 5);
    tls_end(pair.client);
    assert_int_equal(tls_read(pair.server, bytes, sizeof bytes), 0);
    assert_string_equal(tls_why(pair.server), "");
    /* One direction has ended, the other goes on. */
    assert_int_equal(tls_write(pair.server, "last", 4), 4);
    pair_close(&pair);
}

static void addresses_have_certificates_too(void **state)
{
    static const struct {
        const char *served, *asked;
        bool good;
    } rows[] = {
        { "192.0.2.7", "192.0.2.7", true },          { "192.0.2.7", "192.0.2.8", false },
        { "2001:db8::7", "2001:db8::7", true },      { "2001:db8::7", "2001:db8:0:0::7", true },
        { "2001:db8::7", "2001:db8::8", false },     { "192.0.2.7", "a.example.com", false },
        { "a.example.com", "192.0.2.7", false },     { "A.Example.com.", "a.example.com", true },
        { "a.example.com", "b.example.com", false }, { "example.com", "a.example.com", false },
        { "a.example.com", "example.com", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum tls_step server;
        struct pair pair;

        pair_open(&pair);
        pair.server = tls_accept(ours, rows[i].served, pair.fds[0], NULL, 0);
        pair.client = tls_connect(trust, rows[i].asked, pair.fds[1]);
        if ((shake(&pair, &server) == TLS_DONE) != rows[i].good)
            fail_msg("%s for %s: %s", rows[i].served, rows[i].asked, tls_why(pair.client));
        if (!rows[i].good)
            assert_contains(tls_why(pair.client), "its certificate is not for this ");
        pair_close(&pair);
    }
}

static void what_is_no_name_has_no_certificate_and_is_not_asked(void **state)
{
    static const char *const names[] = { "", ".", "*.example.com", "a b", "a\nb", "0x7f.1", "127.1", "a..b" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct pair pair;
        char byte;

        pair_open(&pair);
        pair.server = tls_accept(ours, names[i], pair.fds[0], NULL, 0);
        pair.client = tls_connect(trust, names[i], pair.fds[1]);
        assert_int_equal(tls_handshake(pair.server), TLS_FAILED);
        assert_int_equal(tls_handshake(pair.client), TLS_FAILED);
        assert_string_equal(tls_why(pair.client), "nobody can have this name");
        assert_int_equal(recv(pair.fds[0], &byte, 1, MSG_DONTWAIT), -1);
        assert_int_equal(tls_write(pair.client, "x", 1), -1);
        assert_int_equal(tls_read(pair.server, &byte, 1), -1);
        assert_int_equal(tls_pending(pair.server), 0);
        tls_end(pair.server);
        pair_close(&pair);
    }
    assert_null(tls_authority_leaf(ours, "*.example.com"));
}

static void who_is_unknown_is_not_believed(void **state)
{
    struct error err = { 0 };
    struct tls_authority *other = tls_authority_new(&err);
    enum tls_step server;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    pair.server = tls_accept(other, "a.example.com", pair.fds[0], NULL, 0);
    pair.client = tls_connect(trust, "a.example.com", pair.fds[1]);
    assert_int_equal(shake(&pair, &server), TLS_FAILED);
    assert_string_equal(tls_why(pair.client), "its certificate is signed by nobody who is trusted");
    /* The other side has been told: in TLS 1.3 behind its handshake. */
    char byte;

    if (server == TLS_DONE)
        assert_int_equal(tls_read(pair.server, &byte, 1), -1);
    assert_string_equal(tls_why(pair.server), "the other side does not trust our certificate");
    assert_int_equal(tls_write(pair.client, "secret", 6), -1);
    pair_close(&pair);
    tls_authority_free(other);
}

/* A server by OpenSSL alone, with any certificate and version. */
struct raw {
    SSL_CTX *context;
    SSL *ssl;
};

static void raw_open(struct raw *raw, bool server, int fd, int version)
{
    raw->context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    SSL_CTX_set_security_level(raw->context, 0);
    SSL_CTX_set_cipher_list(raw->context, "ALL:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(raw->context, 0);
    SSL_CTX_set_max_proto_version(raw->context, version);
    raw->ssl = SSL_new(raw->context);
    SSL_set_fd(raw->ssl, fd);
    if (server)
        SSL_set_accept_state(raw->ssl);
    else
        SSL_set_connect_state(raw->ssl);
}

static void raw_close(struct raw *raw)
{
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->context);
}

static enum tls_step raw_shake(struct raw *raw, struct tls *tls)
{
    enum tls_step step = TLS_WANT_READ;

    for (int i = 0; i < 50 && waits(step); i++) {
        step = tls_handshake(tls);
        (void)SSL_do_handshake(raw->ssl);
    }
    return step;
}

/* Meets a server whose certificate was valid from and until so many seconds from now. */
static void meet_dated(long from, long until, enum tls_step wanted, const char *why)
{
    BIO *in = BIO_new_mem_buf(tls_authority_key(ours), -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    BIO *in2 = BIO_new_mem_buf(tls_authority_certificate(ours), -1);
    X509 *issuer = PEM_read_bio_X509(in2, NULL, NULL, NULL);
    time_t now = time(NULL);
    X509 *leaf = tls_certificate_new(tls_leaf_key(), X509_get_subject_name(issuer), now + from, now + until);
    struct raw raw;
    struct pair pair;

    assert_true(tls_certificate_add(leaf, issuer, NID_subject_alt_name, "DNS:a.example.com"));
    assert_true(X509_sign(leaf, key, EVP_sha256()) > 0);
    pair_open(&pair);
    raw_open(&raw, true, pair.fds[0], TLS1_3_VERSION);
    assert_int_equal(SSL_use_certificate(raw.ssl, leaf), 1);
    assert_int_equal(SSL_use_PrivateKey(raw.ssl, tls_leaf_key()), 1);
    pair.client = tls_connect(trust, "a.example.com", pair.fds[1]);
    assert_int_equal(raw_shake(&raw, pair.client), wanted);
    assert_string_equal(tls_why(pair.client), why);
    pair_close(&pair);
    raw_close(&raw);
    X509_free(leaf);
    X509_free(issuer);
    EVP_PKEY_free(key);
    BIO_free(in);
    BIO_free(in2);
}

static void a_certificate_is_believed_in_its_time(void **state)
{
    (void)state;
    meet_dated(-7200, 3600, TLS_DONE, "");
    meet_dated(-7200, -3600, TLS_FAILED, "its certificate has expired");
    meet_dated(3600, 7200, TLS_FAILED, "its certificate is not valid yet");
}

static void versions_before_1_2_are_refused(void **state)
{
    static const struct {
        int version;
        bool good;
    } rows[] = { { TLS1_3_VERSION, true }, { TLS1_2_VERSION, true }, { TLS1_1_VERSION, false } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct pair pair;
        struct raw raw;

        pair_open(&pair);
        raw_open(&raw, false, pair.fds[1], rows[i].version);
        pair.server = tls_accept(ours, "a.example.com", pair.fds[0], NULL, 0);
        enum tls_step step = raw_shake(&raw, pair.server);

        if ((step == TLS_DONE) != rows[i].good)
            fail_msg("version %d: %s", rows[i].version, tls_why(pair.server));
        if (!rows[i].good)
            assert_string_equal(tls_why(pair.server), "it wants TLS older than 1.2");
        /* A client cannot begin anew either. */
        if (rows[i].version == TLS1_2_VERSION) {
            char byte;

            (void)SSL_renegotiate(raw.ssl);
            (void)SSL_do_handshake(raw.ssl);
            assert_int_equal(tls_read(pair.server, &byte, 1), -1);
            assert_int_equal(SSL_do_handshake(raw.ssl), -1);
            assert_int_equal(SSL_get_error(raw.ssl, -1), SSL_ERROR_SSL);
        }
        pair_close(&pair);
        raw_close(&raw);
    }
}

static void of_protocols_behind_it_http_2_and_1_1_are_spoken(void **state)
{
    static const struct {
        const char *offered, *chosen; /* NULL: refused */
    } rows[] = {
        { "\x08http/1.1", "http/1.1" },
        { "\x02h2\x08http/1.1", "h2" },
        { "\x08http/1.1\x02h2", "h2" },
        { "\x02h2", "h2" },
        { "\x02h3", NULL },
        { "\x08http/1.0", NULL },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const unsigned char *chosen;
        unsigned len;
        struct pair pair;
        struct raw raw;

        pair_open(&pair);
        raw_open(&raw, false, pair.fds[1], TLS1_3_VERSION);
        SSL_set_alpn_protos(raw.ssl, (const unsigned char *)rows[i].offered, (unsigned)strlen(rows[i].offered));
        pair.server = tls_accept(ours, "a.example.com", pair.fds[0], NULL, 0);
        enum tls_step step = raw_shake(&raw, pair.server);

        SSL_get0_alpn_selected(raw.ssl, &chosen, &len);
        assert_int_equal(step, rows[i].chosen ? TLS_DONE : TLS_FAILED);
        assert_int_equal(len, rows[i].chosen ? strlen(rows[i].chosen) : 0);
        assert_int_equal(step == TLS_DONE && tls_speaks_h2(pair.server), len == 2);
        if (!rows[i].chosen)
            assert_string_equal(tls_why(pair.server), "it offers neither h2 nor http/1.1");
        pair_close(&pair);
        raw_close(&raw);
    }
}

static void what_was_read_before_is_not_lost(void **state)
{
    unsigned char early[4096];
    enum tls_step server;
    struct pair pair;

    (void)state;
    for (size_t part = 1; part < 200; part += 99) {
        pair_open(&pair);
        pair.client = tls_connect(trust, "a.example.com", pair.fds[1]);
        assert_int_equal(tls_handshake(pair.client), TLS_WANT_READ);
        ssize_t got = recv(pair.fds[0], early, part, 0);

        assert_int_equal(got, part);
        pair.server = tls_accept(ours, "a.example.com", pair.fds[0], early, (size_t)got);
        memset(early, 0, sizeof early);
        assert_int_equal(shake(&pair, &server), TLS_DONE);
        assert_int_equal(server, TLS_DONE);
        pair_close(&pair);
    }
}

static void an_end_without_a_word_is_told_from_a_good_one(void **state)
{
    struct pair pair;
    char bytes[16];

    (void)state;
    pair_meet(&pair, "a.example.com", "a.example.com");
    assert_int_equal(tls_write(pair.server, "half", 4), 4);
    close(pair.fds[0]);
    pair.fds[0] = -1;
    assert_int_equal(tls_read(pair.client, bytes, sizeof bytes), 4);
    assert_int_equal(tls_read(pair.client, bytes, sizeof bytes), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_string_equal(tls_why(pair.client), "it ended without a word");
    /* And a write does not end the process. */
    assert_int_equal(tls_write(pair.client, "x", 1), -1);
    pair_close(&pair);

    pair_meet(&pair, "a.example.com", "a.example.com");
    close(pair.fds[0]);
    pair.fds[0] = -1;
    assert_int_equal(tls_write(pair.client, "x", 1), -1);
    assert_int_equal(errno, ECONNRESET);
    pair_close(&pair);

    enum tls_step server;

    pair_open(&pair);
    pair.server = tls_accept(ours, "a.example.com", pair.fds[0], NULL, 0);
    pair.client = tls_connect(trust, "a.example.com", pair.fds[1]);
    assert_int_equal(tls_handshake(pair.client), TLS_WANT_READ);
    assert_int_equal(shutdown(pair.fds[1], SHUT_WR), 0);
    (void)shake(&pair, &server);
    assert_int_equal(server, TLS_FAILED);
    assert_string_equal(tls_why(pair.server), "it ended without a word");
    pair_close(&pair);
}

static void what_is_no_tls_is_refused(void **state)
{
    static const char *const garbage[] = { "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "SSH-2.0-x\r\n",
                                           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                           "\x80\x80\x80\x80\x80" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
        struct pair pair;

        pair_open(&pair);
        assert_true(write(pair.fds[1], garbage[i], strlen(garbage[i])) > 0);
        assert_int_equal(shutdown(pair.fds[1], SHUT_WR), 0);
        pair.server = tls_accept(ours, "a.example.com", pair.fds[0], NULL, 0);
        assert_int_equal(tls_handshake(pair.server), TLS_FAILED);
        assert_string_not_equal(tls_why(pair.server), "");
        assert_int_equal(tls_handshake(pair.server), TLS_FAILED);
        pair_close(&pair);
    }
    struct pair pair;
    char byte;

    pair_meet(&pair, "a.example.com", "a.example.com");
    assert_int_equal(write(pair.fds[1], "this is not a record", 20), 20);
    assert_int_equal(tls_read(pair.server, &byte, 1), -1);
    assert_int_equal(errno, EPROTO);
    assert_int_equal(tls_read(pair.server, &byte, 1), -1);
    assert_int_equal(errno, EPROTO);
    pair_close(&pair);
}

/* More than the socket holds: each side takes what it can, and all arrives. */
static void a_full_socket_is_waited_for(void **state)
{
    static char out[1 << 20], in[1 << 20];
    size_t sent = 0, got = 0;
    bool waited = false;
    struct pair pair;

    (void)state;
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (char)(i * 31 >> 3);
    pair_meet(&pair, "a.example.com", "a.example.com");
    while (got < sizeof in) {
        ssize_t one = sent < sizeof out ? tls_write(pair.server, out + sent, sizeof out - sent) : 0;

        if (one < 0) {
            assert_int_equal(errno, EAGAIN);
            assert_int_equal(tls_wants(pair.server), EPOLLOUT);
            waited = true;
        }
        sent += one > 0 ? (size_t)one : 0;
        if (one > 0)
            continue;
        one = tls_read(pair.client, in + got, 5000);
        if (one < 0)
            assert_int_equal(errno, EAGAIN);
        got += one > 0 ? (size_t)one : 0;
    }
    assert_true(waited);
    assert_memory_equal(in, out, sizeof in);
    pair_close(&pair);
}

static void certificates_are_remembered_but_not_all(void **state)
{
    struct error err = { 0 };
    struct tls_authority *authority = tls_authority_new(&err);
    autofree char *first = tls_authority_leaf(authority, "h0.example.com");
    autofree char *again = tls_authority_leaf(authority, "h0.example.com");
    char name[32];

    (void)state;
    assert_string_equal(first, again);
    for (int i = 1; i < TLS_LEAVES_MAX + 10; i++) {
        snprintf(name, sizeof name, "h%d.example.com", i);
        autofree char *pem = tls_authority_leaf(authority, name);

        assert_non_null(pem);
    }
    assert_int_equal(tls_authority_leaves(authority), TLS_LEAVES_MAX);
    autofree char *later = tls_authority_leaf(authority, "h0.example.com");

    assert_string_not_equal(first, later);
    assert_int_equal(tls_authority_leaves(authority), TLS_LEAVES_MAX);
    tls_authority_free(authority);
}

static void an_authority_can_be_kept(void **state)
{
    struct error err = { 0 };
    struct tls_authority *other = tls_authority_new(&err);
    struct tls_authority *loaded =
        tls_authority_load(tls_authority_key(ours), tls_authority_certificate(ours), &err);
    enum tls_step server;
    struct pair pair;

    (void)state;
    assert_non_null(loaded);
    assert_string_equal(tls_authority_certificate(loaded), tls_authority_certificate(ours));
    pair_open(&pair);
    pair.server = tls_accept(loaded, "a.example.com", pair.fds[0], NULL, 0);
    pair.client = tls_connect(trust, "a.example.com", pair.fds[1]);
    assert_int_equal(shake(&pair, &server), TLS_DONE);
    pair_close(&pair);
    tls_authority_free(loaded);
    /* Another's key, no key, and nobody is asked for a password. */
    assert_null(tls_authority_load(tls_authority_key(other), tls_authority_certificate(ours), &err));
    assert_null(tls_authority_load("", tls_authority_certificate(ours), &err));
    assert_null(
        tls_authority_load("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
                           tls_authority_certificate(ours), &err));
    tls_authority_free(other);
}

static void a_bundle_is_taken_whole_or_not_at_all(void **state)
{
    struct error err = { 0 };
    struct tls_authority *other = tls_authority_new(&err);
    autofree char *two = text_format("# roots\n%s\nbetween\n%s%s", tls_authority_certificate(ours),
                                     tls_authority_certificate(other), tls_authority_certificate(other));
    struct tls_trust *both = trust_in(two);
    static const char *const bad[] = { "", "nothing",
                                       "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n" };

    (void)state;
    assert_int_equal(tls_trust_count(both), 3);
    tls_trust_free(both);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_null(tls_trust_new(bad[i], strlen(bad[i]), &err));
    autofree char *spoiled = text_format("%s%s", tls_authority_certificate(ours), bad[2]);

    assert_null(tls_trust_new(spoiled, strlen(spoiled), &err));
    assert_string_equal(err.text, "certificate 2 cannot be read");
    tls_authority_free(other);
}

static int write_key(BIO *out, const void *key)
{
    return PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
}

static int write_certificate(BIO *out, const void *certificate)
{
    return PEM_write_bio_X509(out, certificate);
}

/* One whose name others may have as well. */
static struct tls_authority *namesake(void)
{
    struct error err = { 0 };
    EVP_PKEY *key = tls_key_new();
    X509 *made = tls_certificate_new(key, NULL, time(NULL) - 3600, time(NULL) + 3600);
    X509_NAME *name = X509_get_subject_name(made);

    assert_true(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"same", -1, -1, 0));
    assert_true(X509_set_issuer_name(made, name));
    assert_true(tls_certificate_add(made, made, NID_basic_constraints, "critical,CA:TRUE"));
    assert_true(tls_certificate_add(made, made, NID_subject_key_identifier, "hash"));
    assert_true(X509_sign(made, key, EVP_sha256()) > 0);
    autofree char *key_pem = tls_pem(write_key, key), *pem = tls_pem(write_certificate, made);
    struct tls_authority *loaded = tls_authority_load(key_pem, pem, &err);

    assert_non_null(loaded);
    X509_free(made);
    EVP_PKEY_free(key);
    return loaded;
}

static void of_several_with_one_name_the_right_one_is_found(void **state)
{
    struct tls_authority *both[] = { namesake(), namesake() }, *third = namesake();
    autofree char *bundle = text_format("%s%s%s", tls_authority_certificate(ours),
                                        tls_authority_certificate(both[0]), tls_authority_certificate(both[1]));
    struct tls_trust *many = trust_in(bundle);

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct tls_authority *servers[] = { both[1], both[0], third, ours, both[1], both[0] };
        enum tls_step server, wanted = servers[i] == third ? TLS_FAILED : TLS_DONE;
        struct pair pair;

        pair_open(&pair);
        pair.server = tls_accept(servers[i], "a.example.com", pair.fds[0], NULL, 0);
        pair.client = tls_connect(many, "a.example.com", pair.fds[1]);
        if (shake(&pair, &server) != wanted)
            fail_msg("row %d: %s", i, tls_why(pair.client));
        pair_close(&pair);
    }
    tls_trust_free(many);
    tls_authority_free(both[0]);
    tls_authority_free(both[1]);
    tls_authority_free(third);
}

/* Who serves, who is asked for, whom the client believes, and where; NULL: it does not resume. */
struct meeting {
    struct tls_authority *authority;
    struct tls_trust *trust;
    const char *name, *place;
};

/* Whether the client went on from a session of before; or fails. */
static bool meet_again(struct meeting meeting)
{
    struct pair pair;
    enum tls_step server;
    char byte;

    pair_open(&pair);
    pair.server = tls_accept(meeting.authority, meeting.name, pair.fds[0], NULL, 0);
    pair.client = tls_connect(meeting.trust, meeting.name, pair.fds[1]);
    if (meeting.place)
        tls_resume(pair.client, meeting.place);
    enum tls_step client = shake(&pair, &server);

    if (client != TLS_DONE || server != TLS_DONE)
        fail_msg("%s: %s, %s", meeting.place, tls_why(pair.client), tls_why(pair.server));
    assert_int_equal(tls_write(pair.server, "x", 1), 1);
    assert_int_equal(tls_read(pair.client, &byte, 1), 1); /* and what lay before it */
    bool resumed = tls_resumed(pair.client);

    assert_int_equal(tls_resumed(pair.server), resumed);
    pair_close(&pair);
    return resumed;
}

static void a_session_is_resumed_only_by_who_would_verify_the_same(void **state)
{
    struct tls_trust *same = trust_in(tls_authority_certificate(ours));
    const struct meeting first = { ours, trust, "r.example.com", "1 443 192.0.2.1" };
    struct meeting other_trust = first, other_name = first, other_place = first, none = first;

    (void)state;
    other_trust.trust = same;
    other_name.name = "s.example.com";
    other_place.place = "2 443 192.0.2.1";
    none.place = NULL;
    assert_false(meet_again(first));
    assert_true(meet_again(first));
    assert_true(meet_again(first)); /* of which the one before has told */
    assert_false(meet_again(none));
    assert_false(meet_again(other_trust));
    assert_false(meet_again(other_name));
    assert_false(meet_again(other_place));
    assert_true(meet_again(first));
    tls_trust_free(same);
    same = trust_in(tls_authority_certificate(ours)); /* perhaps at the same place in memory */
    other_trust.trust = same;
    assert_false(meet_again(other_trust));
    tls_trust_free(same);
}

static void a_server_that_has_another_certificate_shows_it_and_is_refused(void **state)
{
    struct error err = { 0 };
    struct tls_authority *other = tls_authority_new(&err);
    const struct meeting first = { ours, trust, "t.example.com", "1" };
    struct pair pair;
    enum tls_step server;

    (void)state;
    assert_non_null(other);
    assert_false(meet_again(first));
    assert_true(meet_again(first));
    pair_open(&pair);
    pair.server = tls_accept(other, first.name, pair.fds[0], NULL, 0);
    pair.client = tls_connect(trust, first.name, pair.fds[1]);
    tls_resume(pair.client, first.place);
    assert_int_equal(shake(&pair, &server), TLS_FAILED);
    assert_false(tls_resumed(pair.client));
    pair_close(&pair);
    assert_false(meet_again(first)); /* what failed is forgotten */
    assert_true(meet_again(first));
    tls_authority_free(other);
}

/* The client believes everybody, offers what it was given for one name, and asks for another. */
static void what_a_client_was_given_for_one_name_is_good_for_no_other(void **state)
{
    static const char *const names[] = { "u.example.com", "u.example.com", "v.example.com" };
    SSL_SESSION *given = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct raw raw;
        struct pair pair;
        char byte;

        pair_open(&pair);
        raw_open(&raw, false, pair.fds[1], TLS1_3_VERSION);
        pair.server = tls_accept(ours, names[i], pair.fds[0], NULL, 0);
        if (given)
            assert_int_equal(SSL_set_session(raw.ssl, given), 1);
        SSL_SESSION_free(given);
        for (int round = 0; round < 10; round++) {
            (void)SSL_do_handshake(raw.ssl);
            (void)tls_handshake(pair.server);
        }
        assert_int_equal(tls_write(pair.server, "x", 1), 1);
        assert_int_equal(SSL_read(raw.ssl, &byte, 1), 1);
        assert_int_equal(SSL_session_reused(raw.ssl), i == 1);
        given = SSL_get1_session(raw.ssl);
        SSL_set_shutdown(raw.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        pair_close(&pair);
        raw_close(&raw);
    }
    SSL_SESSION_free(given);
}

static void sessions_are_resumed_for_a_while_and_there_are_only_so_many(void **state)
{
    struct meeting one = { ours, trust, "w.example.com", "1" };
    unsigned char id[TLS_ID] = { 1 }, in_time[TLS_ID] = { 2 }, late[TLS_ID] = { 3 };
    uint64_t verified, now = clock_us();

    (void)state;
    assert_false(meet_again(one));
    autofree char *text = text_format("%llu w.example.com 1", (unsigned long long)tls_trust_number(trust));

    SHA256((const unsigned char *)text, strlen(text), id);
    SSL_SESSION *session = tls_sessions_find(id, &verified);

    assert_non_null(session);
    assert_true(verified >= now && verified <= clock_us());
    SSL_SESSION_up_ref(session);
    assert_true(tls_sessions_keep(in_time, session, now - 590 * 1000000ULL));
    SSL_SESSION_up_ref(session);
    assert_true(tls_sessions_keep(late, session, now - 601 * 1000000ULL));
    assert_ptr_equal(tls_sessions_find(in_time, &verified), session);
    assert_null(tls_sessions_find(late, &verified));

    assert_true(meet_again(one));
    assert_non_null(tls_sessions_find(id, &verified));
    assert_true(verified <= now + 5000000); /* not since it was resumed: */
    uint64_t first = verified;

    (void)usleep(2000);
    assert_true(meet_again(one));
    assert_non_null(tls_sessions_find(id, &verified));
    assert_true(verified == first);
    for (size_t i = 0; i < 2 * TLS_SESSIONS_MAX; i++) {
        autofree char *place = text_format("many %zu", i);

        one.place = place;
        assert_false(meet_again(one));
    }
    assert_int_equal(tls_sessions_count(), TLS_SESSIONS_MAX);
}

static void write_file(const char *path, const char *text)
{
    autofile FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
}

/* Other programs find the certificates good as well. */
static void openssl_verifies_them(void **state)
{
    char dir[] = "/tmp/tls_test.XXXXXX";

    (void)state;
    if (access("/usr/bin/openssl", X_OK) < 0)
        skip();
    assert_non_null(mkdtemp(dir));
    autofree char *ca = text_format("%s/ca", dir), *leaf = text_format("%s/leaf", dir);
    autofree char *name = tls_authority_leaf(ours, "a.example.com");
    autofree char *address = tls_authority_leaf(ours, "2001:db8::7");
    const struct {
        const char *pem, *option, *value;
        int status;
    } rows[] = { { name, "-verify_hostname", "a.example.com", 0 },
                 { name, "-verify_hostname", "b.example.com", 2 },
                 { address, "-verify_ip", "2001:db8::7", 0 } };

    write_file(ca, tls_authority_certificate(ours));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int status;

        write_file(leaf, rows[i].pem);
        pid_t child = fork();

        if (child == 0) {
            int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

            dup2(null, 1);
            dup2(null, 2);
            execl("/usr/bin/openssl", "openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile",
                  ca, rows[i].option, rows[i].value, leaf, (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WEXITSTATUS(status), rows[i].status);
    }
    unlink(ca);
    unlink(leaf);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_bytes_arrive_and_the_end_is_told),
        cmocka_unit_test(addresses_have_certificates_too),
        cmocka_unit_test(what_is_no_name_has_no_certificate_and_is_not_asked),
        cmocka_unit_test(who_is_unknown_is_not_believed),
        cmocka_unit_test(a_certificate_is_believed_in_its_time),
        cmocka_unit_test(versions_before_1_2_are_refused),
        cmocka_unit_test(of_protocols_behind_it_http_2_and_1_1_are_spoken),
        cmocka_unit_test(what_was_read_before_is_not_lost),
        cmocka_unit_test(an_end_without_a_word_is_told_from_a_good_one),
        cmocka_unit_test(what_is_no_tls_is_refused),
        cmocka_unit_test(a_full_socket_is_waited_for),
        cmocka_unit_test(certificates_are_remembered_but_not_all),
        cmocka_unit_test(an_authority_can_be_kept),
        cmocka_unit_test(a_bundle_is_taken_whole_or_not_at_all),
        cmocka_unit_test(of_several_with_one_name_the_right_one_is_found),
        cmocka_unit_test(openssl_verifies_them),
        cmocka_unit_test(a_session_is_resumed_only_by_who_would_verify_the_same),
        cmocka_unit_test(a_server_that_has_another_certificate_shows_it_and_is_refused),
        cmocka_unit_test(what_a_client_was_given_for_one_name_is_good_for_no_other),
        cmocka_unit_test(sessions_are_resumed_for_a_while_and_there_are_only_so_many),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
