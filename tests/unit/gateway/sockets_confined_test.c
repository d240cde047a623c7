/* What somebody who broke into a gateway can open and set: TCP and UDP, as the gateway does, and no other part
 * of the kernel's network. */

#include "base/array.h"
#include "gateway/gate.h"
#include "tests/support/unit.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DONE = 10, REFUSED, UNCONFINED };

static bool open_as(int family, int type, int protocol)
{
    return socket(family, type | SOCK_CLOEXEC, protocol) >= 0;
}

static bool tcp(void)
{
    return open_as(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) && open_as(AF_INET6, SOCK_STREAM, 0);
}

static bool udp(void)
{
    return open_as(AF_INET, SOCK_DGRAM, 0) && open_as(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
}

static bool local(void)
{
    return open_as(AF_UNIX, SOCK_STREAM, 0);
}

static bool netlink(void)
{
    return open_as(AF_NETLINK, SOCK_RAW, 0);
}

static bool udplite(void)
{
    return open_as(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE);
}

static bool tcp_by_name(void)
{
    return open_as(AF_INET, SOCK_STREAM, IPPROTO_TCP);
}

static bool set(int level, int option, const void *value, socklen_t size)
{
    return setsockopt(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), level, option, value, size) == 0;
}

static bool usual_options(void)
{
    const struct linger linger = { 1, 0 };
    const int on = 1;

    return set(IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) &&
           set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, &on, sizeof on) &&
           set(SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

static bool attach_filter(void)
{
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
    const struct sock_fprog program = { 1, &all };

    return set(SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static bool congestion(void)
{
    return set(IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static bool time_to_live(void)
{
    const int hops = 3;

    return set(IPPROTO_IP, IP_TTL, &hops, sizeof hops);
}

static const struct {
    const char *name;
    bool (*attempt)(void);
    bool needed;
} attempts[] = {
    { "tcp", tcp, true },
    { "udp", udp, true },
    { "options that are set", usual_options, true },
    { "unix", local, false },
    { "netlink", netlink, false },
    { "udplite", udplite, false },
    { "tcp by name", tcp_by_name, false },
    { "a filter of packets", attach_filter, false },
    { "another congestion control", congestion, false },
    { "an option of IP", time_to_live, false },
};

static int outcome(bool (*attempt)(void), bool confined)
{
    size_t descriptors;
    pid_t child = fork();
    int status;

    if (child == 0) { /* by the call itself: before _exit a sanitizer asks for what the filter refuses */
        if (confined && gateway_confine(&descriptors) < 0)
            syscall(SYS_exit_group, UNCONFINED);
        syscall(SYS_exit_group, attempt() ? DONE : REFUSED);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void only_tcp_and_udp_as_they_are_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++) {
        int confined = outcome(attempts[i].attempt, true), plain = outcome(attempts[i].attempt, false);

        if (confined != (attempts[i].needed ? DONE : REFUSED) || plain != DONE)
            fail_msg("%s: %d, and unconfined %d", attempts[i].name, confined, plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(only_tcp_and_udp_as_they_are_used) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
