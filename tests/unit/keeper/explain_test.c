#include "keeper/explain.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "init/filters.h"
#include "init/wire.h"
#include "keeper/look.h"
#include "spec/spec.h"
#include "tests/support/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The policy of this test: sockets are refused, all else is allowed. */
int filter_verdict(unsigned kind, const struct seccomp_data *data)
{
    (void)kind;
    return data->nr == SYS_socket ? EACCES : VERDICT_ALLOW;
}

const char *filter_call_name(int number)
{
    return number == SYS_socket ? "socket" : "unknown";
}

const char *filter_reason(unsigned kind, const struct seccomp_data *data)
{
    (void)kind, (void)data;
    return "no such family";
}

static void paths_are_normalised(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "/", "/" },
        { "//", "/" },
        { "/a/b", "/a/b" },
        { "/a//b/", "/a/b" },
        { "/a/./b/.", "/a/b" },
        { "/a/../b", "/b" },
        { "/../../a", "/a" },
        { "/a/b/../..", "/" },
        { "/a/...", "/a/..." },
        { "/a/..b/c", "/a/..b/c" },
        { "/a/b/../c/", "/a/c" },
    };
    char path[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(path, sizeof path, "%s", cases[i].in);
        look_normalise(path);
        assert_string_equal(path, cases[i].out);
    }
}

static void a_path_lies_in_a_directory(void **state)
{
    static const struct {
        const char *path, *above;
    } cases[] = { { "/a/b", "/a" }, { "/a", "/" }, { "/", "/" }, { "/a/b/c", "/a/b" } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autofree char *above = look_above(cases[i].path);

        assert_string_equal(above, cases[i].above);
    }
}

static int install_filter(void)
{
    static const int numbers[] = { SYS_openat, SYS_socket, SYS_newfstatat, SYS_mkdirat, SYS_connect };
    struct sock_filter code[2 + ARRAY_LEN(numbers) + 1] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) };
    size_t len = 1;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++, len++)
        code[len] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i],
                                                 (unsigned char)(ARRAY_LEN(numbers) - i), 0);
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = { (unsigned short)len, code };

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static bool gives(long value, int number)
{
    return value < 0 ? errno == number : number == 0;
}

static int connect_to(const char *address, unsigned short port)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = inet_addr(address) };

    return connect(-1, (const struct sockaddr *)&in, sizeof in);
}

/* Addresses that cannot be read, or are too long, or end too soon. */
static bool connects_badly(void)
{
    struct sockaddr_storage in = { .ss_family = AF_INET };
    const struct sockaddr *address = (const struct sockaddr *)&in;

    return gives(connect(-1, (const struct sockaddr *)(uintptr_t)1, 16), EBADF) &&
           gives(connect(-1, address, sizeof in), EBADF) && gives(connect(-1, address, 3), EBADF) &&
           gives(connect(-1, address, (socklen_t)-1), EBADF) && gives(connect(-1, NULL, 16), EBADF);
}

/* What a command might do; the exit tells the first thing that went otherwise than it should. */
static int misbehave(const char *dir)
{
    char path[200];

    snprintf(path, sizeof path, "%s/secret", dir);
    for (int i = 0; i < 3; i++)
        if (!gives(openat(AT_FDCWD, path, O_RDONLY), ENOENT))
            return 1;
    snprintf(path, sizeof path, "%s/nowhere", dir);
    if (!gives(openat(AT_FDCWD, path, O_RDONLY), ENOENT))
        return 2;
    snprintf(path, sizeof path, "%s/new", dir);
    if (!gives(openat(AT_FDCWD, path, O_WRONLY | O_CREAT, 0600), EROFS))
        return 3;
    if (!gives(socket(38, SOCK_STREAM, 0), EACCES))
        return 4;
    if (chdir(dir) < 0 || !gives(openat(AT_FDCWD, "./x/../.env", O_RDONLY), ENOENT))
        return 5;
    if (!gives(openat(AT_FDCWD, "../../dev/null", O_WRONLY), 0))
        return 6;
    if (!gives(openat(AT_FDCWD, (const char *)(uintptr_t)1, O_RDONLY), EFAULT))
        return 7;
    if (!gives(openat(AT_FDCWD, "", O_RDONLY), ENOENT))
        return 8;
    if (!gives(connect_to("198.51.100.1", 80), EBADF) || !gives(connect_to("198.51.100.1", 80), EBADF) ||
        !gives(connect_to("127.0.0.1", 53), EBADF) || !gives(connect_to("127.0.0.1", 80), EBADF))
        return 9;
    if (!connects_badly())
        return 10;
    return 0;
}

static _Noreturn void be_command(const char *dir, int socket_fd)
{
    struct message message = { .kind = MESSAGE_LISTENER };

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || mount("none", dir, "tmpfs", MS_RDONLY, NULL) < 0)
        _exit(77);
    int listener = install_filter();
    if (listener < 0)
        _exit(77);
    wire_send(socket_fd, &message, &listener, 1);
    close(listener);
    _exit(misbehave(dir));
}

static void touch(const char *dir, const char *name)
{
    autofree char *path = text_format("%s/%s", dir, name);

    close(open(path, O_CREAT | O_WRONLY, 0600));
}

/* Gives the exit status of the command; 77: this machine does not let us. */
static int supervise(struct explain *explain, const char *dir)
{
    int sockets[2], fds[PROTOCOL_FDS_MAX], status;
    autoloop struct loop loop = { 0 };
    struct message message;
    struct error err;
    size_t count;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        be_command(dir, sockets[1]);
    }
    close(sockets[1]);
    if (wire_receive(sockets[0], &message, fds, &count, &err) == WIRE_MESSAGE && count == 1) {
        explain_listen(explain, &loop, fds[0]);
        while (loop_turn(&loop, 300, &err) > 0 || waitpid(pid, &status, WNOHANG | WNOWAIT) == 0)
            ;
    }
    close(sockets[0]);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static void assert_finding(const struct findings *findings, const char *how, const char *subject,
                           const char *why, uint64_t count, const char *grant)
{
    for (size_t i = 0; i < findings->len; i++) {
        const struct finding *finding = &findings->items[i];

        if (strcmp(finding->how, how) == 0 && text_ends(finding->subject, subject)) {
            assert_string_equal(finding->why, why);
            assert_int_equal(finding->count, count);
            assert_contains(finding->grant, grant);
            return;
        }
    }
    fail_msg("there is no finding %s %s", how, subject);
}

static void refusals_are_found_and_calls_go_on(void **state)
{
    char dir[] = "/tmp/explain-test-XXXXXX";
    struct spec spec = { .image = (char[]){ "host" } };
    struct findings findings = { 0 };

    (void)state;
    assert_non_null(mkdtemp(dir));
    touch(dir, "secret");
    touch(dir, ".env");
    spec.network = NETWORK_RULES;
    strings_add(&spec.hide, ".env");
    struct explain *explain = explain_new(&(struct explain_view){ .spec = &spec });
    int status = supervise(explain, dir);

    if (status != 77) {
        assert_int_equal(status, 0);
        explain_findings(explain, &findings);
        assert_int_equal(findings.len, 5);
        assert_finding(&findings, "read", "/secret", "absent", 3, "--read /tmp/");
        assert_finding(&findings, "write", "/new", "read-only", 1, "--write /tmp/");
        assert_finding(&findings, "read", "/.env", "hidden", 1, "files.hide");
        assert_finding(&findings, "connect", "198.51.100.1 port 80", "an address that no rule names", 2,
                       "--allow");
        assert_finding(&findings, "call", "socket(domain=0x26)", "no such family", 1, "not grantable");
    }
    findings_free(&findings);
    explain_free(explain);
    strings_free(&spec.hide);
    char command[100];
    snprintf(command, sizeof command, "%s/secret", dir);
    unlink(command);
    snprintf(command, sizeof command, "%s/.env", dir);
    unlink(command);
    rmdir(dir);
    if (status == 77)
        skip();
}

static void something_that_is_no_listener_is_closed(void **state)
{
    struct spec spec = { .image = (char[]){ "host" } };
    struct explain *explain = explain_new(&(struct explain_view){ .spec = &spec });
    autoloop struct loop loop = { 0 };
    struct error err;
    int fd = open("/dev/zero", O_RDONLY);

    (void)state;
    explain_listen(explain, &loop, fd);
    assert_int_equal(loop_turn(&loop, 1000, &err), 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(loop_turn(&loop, 0, &err), 0);
    explain_free(explain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_normalised),
        cmocka_unit_test(a_path_lies_in_a_directory),
        cmocka_unit_test(refusals_are_found_and_calls_go_on),
        cmocka_unit_test(something_that_is_no_listener_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
