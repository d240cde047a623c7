#pragma once

/* TLS as a server in another's name, and as a client that believes nobody without proof.
 *
 * Of one thread.  Sessions work over sockets that do not block, own neither them nor anything they were made
 * from, and use no more memory than a record each way.  No file is read, no configuration, no variable of the
 * environment. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct tls;
struct tls_authority;
struct tls_trust;

enum { TLS_LEAVES_MAX = 256, TLS_WHY = 128, TLS_RECORD_MAX = 16384 };

/* Does what OpenSSL would do at its first use.  After it, nothing here needs a file or a call but those on
 * sockets and memory, getrandom and getpid.  Called by all others; by itself, before rights are given up.  -1:
 * it cannot be had. */
int tls_warm(void);

/* A certificate authority of one sandbox, by which we answer in the name of any host. */
struct tls_authority *tls_authority_new(struct error *err);
struct tls_authority *tls_authority_load(const char *key_pem, const char *certificate_pem, struct error *err);
void tls_authority_free(struct tls_authority *authority); /* or NULL; the key is wiped */

/* As PEM, as long as it lives. */
const char *tls_authority_key(const struct tls_authority *authority);
const char *tls_authority_certificate(const struct tls_authority *authority);

/* The number by which OpenSSL looks for it in a directory: "%08x.0" is its file. */
uint32_t tls_authority_hash(const struct tls_authority *authority);

/* How many certificates it remembers: at most TLS_LEAVES_MAX, the oldest is forgotten first. */
size_t tls_authority_leaves(const struct tls_authority *authority);

/* The certificate of a host name or an address, as PEM; the caller frees.  NULL: it is no name. */
char *tls_authority_leaf(struct tls_authority *authority, const char *name);

/* Whom we believe: the certificates of a bundle as it stands in files.  One that cannot be read is an error,
 * and so is a bundle without any. */
struct tls_trust *tls_trust_new(const void *bundle, size_t len, struct error *err);
void tls_trust_free(struct tls_trust *trust); /* or NULL */
size_t tls_trust_count(const struct tls_trust *trust);

/* Never NULL: what cannot even begin fails at its handshake.
 *   tls_accept   is the server `name` for whoever is at the other end of `fd`.  The `early` bytes were read
 * from it before, and are copied.  Of protocols behind TLS, h2 is chosen, or else http/1.1; whoever offers
 * only others is refused.  It may come again with what we give it, to the same name and certificate, as long as
 * this process lives.
 *   tls_connect  is a client of the server `name`, and believes it only with a certificate that `trust`
 * vouches for and that has this name.  TLS 1.2 at least; http/1.1. */
struct tls *tls_accept(struct tls_authority *authority, const char *name, int fd, const void *early,
                       size_t early_len);
struct tls *tls_connect(struct tls_trust *trust, const char *name, int fd);

/* Before the first message of a client: it goes on from a session of the same `trust`, name and `place`, if the
 * server has offered that and its certificate was verified in the last ten minutes; and what it offers now is
 * kept for the next one. */
void tls_resume(struct tls *tls, const char *place);
void tls_free(struct tls *tls); /* or NULL; the socket stays open */

enum tls_step { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_FAILED };

/* As far as it goes without waiting.  After a failure the other side has been told, if it listens. */
enum tls_step tls_handshake(struct tls *tls);

/* Whether the client has chosen HTTP/2, after the handshake. */
bool tls_speaks_h2(const struct tls *tls);

/* One inert line about what has failed: "its certificate is not for this name".  "" if nothing has. */
const char *tls_why(const struct tls *tls);

/* Like recv and send, after the handshake.  0: the other side has said that nothing more comes.  -1 and errno:
 * EAGAIN, then tls_wants() tells what to wait for, which need not be the obvious; ECONNRESET, it is gone
 * without a word, so that what was read may be only a part; EPROTO, what came is no TLS. */
ssize_t tls_read(struct tls *tls, void *out, size_t size);
ssize_t tls_write(struct tls *tls, const void *bytes, size_t len);
uint32_t tls_wants(const struct tls *tls); /* EPOLLIN or EPOLLOUT */

/* Whether tls_read would find something that no event of the socket tells of: 0, or how many bytes at least. */
size_t tls_pending(const struct tls *tls);

/* Says that nothing more comes, if that can be said at once. */
void tls_end(struct tls *tls);
