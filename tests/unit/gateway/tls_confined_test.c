/* TLS where a gateway speaks it: without files, and with the few calls that are left. */

#include "base/error.h"
#include "gateway/gate.h"
#include "net/tls.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool waits(enum tls_step step)
{
    return step == TLS_WANT_READ || step == TLS_WANT_WRITE;
}

/* Both ends of one conversation; false if anything about it is wrong. */
static bool converse(struct tls_authority *authority, struct tls_trust *trust, const char *name,
                     const int fds[2])
{
    struct tls *server = tls_accept(authority, name, fds[0], NULL, 0);
    struct tls *client = tls_connect(trust, name, fds[1]);
    enum tls_step one = TLS_WANT_READ, other = TLS_WANT_READ;
    char bytes[8];

    for (int i = 0; i < 50 && (waits(one) || waits(other)); i++) {
        one = waits(one) ? tls_handshake(client) : one;
        other = waits(other) ? tls_handshake(server) : other;
    }
    bool good = one == TLS_DONE && other == TLS_DONE && tls_write(client, "hello", 5) == 5 &&
                tls_read(server, bytes, sizeof bytes) == 5 && tls_write(server, "world", 5) == 5 &&
                tls_read(client, bytes, sizeof bytes) == 5;

    tls_end(client);
    good = good && tls_read(server, bytes, sizeof bytes) == 0;
    tls_free(server);
    tls_free(client);
    return good;
}

enum { GOOD = 10, BAD, UNCONFINED };

/* By the call itself: before _exit a sanitizer asks for what the filter refuses. */
static void leave(int status)
{
    syscall(SYS_exit_group, status);
}

static void speak(bool lazily, const int fds[2][2])
{
    struct error err = { 0 };
    size_t descriptors;
    struct tls_authority *authority = lazily ? NULL : tls_authority_new(&err);

    if (tls_warm() < 0)
        leave(BAD);
    if (gateway_confine(&descriptors) < 0)
        leave(UNCONFINED);
    if (!authority)
        authority = tls_authority_new(&err);
    const char *pem = authority ? tls_authority_certificate(authority) : "";
    struct tls_trust *trust = tls_trust_new(pem, strlen(pem), &err);

    if (!authority || !trust)
        leave(BAD);
    leave(converse(authority, trust, "a.example.com", fds[0]) && converse(authority, trust, "192.0.2.1", fds[1])
              ? GOOD
              : BAD);
}

static void open_a_file(void)
{
    size_t descriptors;

    if (gateway_confine(&descriptors) < 0)
        leave(UNCONFINED);
    leave(open("/", O_RDONLY | O_CLOEXEC) < 0 ? GOOD : BAD);
}

static int end_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void after_warming_it_needs_nothing_that_a_gateway_lacks(void **state)
{
    (void)state;
    for (int lazily = 0; lazily < 2; lazily++) {
        int fds[2][2];

        for (int i = 0; i < 2; i++)
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds[i]), 0);
        pid_t child = fork();

        if (child == 0)
            speak(lazily, fds);
        assert_int_equal(end_of(child), GOOD);
        for (int i = 0; i < 4; i++)
            close(fds[i / 2][i % 2]);
    }
}

/* The control arm: the filter was there. */
static void a_call_it_lacks_ends_it(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0)
        open_a_file();
#ifdef COVE_SANITIZED
    assert_int_equal(end_of(child), GOOD);
#else
    assert_int_equal(end_of(child), -SIGSYS);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_warming_it_needs_nothing_that_a_gateway_lacks),
        cmocka_unit_test(a_call_it_lacks_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
