/* Any bytes to our end of a session, at once or in two parts: it neither hangs nor is ever done, since whoever
 * sends what was written before cannot know what we answer. */
#include "base/error.h"
#include "net/tls.h"
#include "tests/fuzz/fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

static struct tls_authority *authority;
static struct tls_trust *trust;

static void begin(void)
{
    struct error err = { 0 };

    authority = tls_authority_new(&err);
    check(authority);
    const char *pem = tls_authority_certificate(authority);

    trust = tls_trust_new(pem, strlen(pem), &err);
    check(trust);
}

static void give(int fd, const uint8_t *data, size_t size)
{
    check(size == 0 || send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size);
    check(shutdown(fd, SHUT_WR) == 0);
}

static void fails(struct tls *tls)
{
    char byte;
    enum tls_step step = TLS_WANT_READ;

    for (int i = 0; i < 10 && (step == TLS_WANT_READ || step == TLS_WANT_WRITE); i++)
        step = tls_handshake(tls);
    check(step == TLS_FAILED && tls_why(tls)[0] != '\0');
    check(tls_read(tls, &byte, 1) == -1 && tls_write(tls, "x", 1) == -1 && tls_pending(tls) == 0);
    tls_end(tls);
    tls_free(tls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fds[2];

    if (size < 2 || size > 65536)
        return 0;
    if (!authority)
        begin();
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    bool server = data[0] < 0xc0;
    size_t early = (size_t)data[1] * 4;

    data += 2;
    size -= 2;
    early = server && early < size ? early : 0;
    give(fds[1], data + early, size - early);
    fails(server ? tls_accept(authority, "a.example.com", fds[0], data, early)
                 : tls_connect(trust, "a.example.com", fds[0]));
    close(fds[0]);
    close(fds[1]);
    return 0;
}
