#include "keeper/relay.h"

#include "base/error.h"
#include "base/own.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MUCH = 3 << 20 };

static unsigned char *random_bytes(size_t len)
{
    unsigned char *bytes = malloc(len);
    unsigned seed = 12345;

    for (size_t i = 0; i < len; i++) {
        seed = seed * 1103515245 + 12345;
        bytes[i] = (unsigned char)(seed >> 16);
    }
    return bytes;
}

static void make_pipe(int *reader, int *writer)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *reader = ends[0];
    *writer = ends[1];
}

/* A child that writes all of it and ends: the pipe's other end is the relay's. */
static pid_t fork_writer(int fd, int other, const unsigned char *bytes, size_t len)
{
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        close(other);
        for (size_t done = 0; done < len;) {
            size_t most = 1 + (done * 7919) % 100000;
            ssize_t put = write(fd, bytes + done, most < len - done ? most : len - done);

            if (put < 0)
                _exit(1);
            done += (size_t)put;
        }
        _exit(0);
    }
    close(fd);
    return pid;
}

/* A child that reads to the end, slowly at first, and compares. */
static pid_t fork_reader(int fd, int other, const unsigned char *bytes, size_t len)
{
    pid_t pid = fork();

    if (pid == 0) {
        unsigned char *got = malloc(len + 1);
        size_t done = 0;
        ssize_t part;

        if (other >= 0)
            close(other);
        usleep(20000);
        while ((part = read(fd, got + done, len + 1 - done)) > 0)
            done += (size_t)part;
        _exit(part == 0 && done == len && memcmp(got, bytes, len) == 0 ? 0 : 1);
    }
    close(fd);
    return pid;
}

static int status_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static unsigned turns;

static void run_relay(struct relay *relay, struct loop *loop)
{
    struct error err;

    for (turns = 0; !relay->ended; turns++) {
        assert_true(turns < 100000);
        assert_true(loop_turn(loop, 5000, &err) > 0);
    }
}

/* Sends MUCH through a relay out of the "sandbox" to `host`. */
static struct relay relay_out_to(int host, const unsigned char *bytes, size_t len, int *out_status)
{
    autoloop struct loop loop = { 0 };
    struct relay relay;
    int reader, writer;

    make_pipe(&reader, &writer);
    pid_t child = fork_writer(writer, reader, bytes, len);
    fcntl(reader, F_SETFL, O_NONBLOCK);
    relay_open(&relay, &loop, &(struct relay_plan){ .way = RELAY_OUT, .host = host, .inside = reader });
    run_relay(&relay, &loop);
    *out_status = status_of(child);
    return relay;
}

static void out_to_pipe_is_exact(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    int reader, writer, status;

    (void)state;
    make_pipe(&reader, &writer);
    pid_t child = fork_reader(reader, writer, bytes, MUCH);
    struct relay relay = relay_out_to(writer, bytes, MUCH, &status);
    assert_int_equal(relay.failed, 0);
    assert_int_equal(relay.bytes, MUCH);
    assert_int_equal(fcntl(writer, F_GETFL) & O_NONBLOCK, 0);
    close(writer);
    assert_int_equal(status, 0);
    assert_int_equal(status_of(child), 0);
}

static void out_to_file(int flags)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    autofree unsigned char *got = malloc(MUCH + 3);
    char name[] = "/tmp/relay-test-XXXXXX";
    __attribute__((unused)) autoclose int made = mkstemp(name);
    autoclose int file = open(name, O_RDWR | flags);
    int status;

    assert_int_equal(write(file, "abc", 3), 3);
    struct relay relay = relay_out_to(file, bytes, MUCH, &status);
    unlink(name);
    assert_int_equal(relay.failed, 0);
    assert_int_equal(pread(file, got, MUCH + 3, 0), MUCH + 3);
    assert_memory_equal(got, "abc", 3);
    assert_memory_equal(got + 3, bytes, MUCH);
    assert_int_equal(pread(file, got, 1, MUCH + 3), 0);
}

static void out_to_plain_file_is_exact(void **state)
{
    (void)state;
    out_to_file(0);
}

static void out_to_append_file_is_exact(void **state)
{
    (void)state;
    out_to_file(O_APPEND);
}

static void out_to_socket_is_exact(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    int ends[2], status;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork_reader(ends[0], ends[1], bytes, MUCH);
    struct relay relay = relay_out_to(ends[1], bytes, MUCH, &status);
    assert_int_equal(relay.failed, 0);
    close(ends[1]);
    assert_int_equal(status_of(child), 0);
}

static void out_to_full_device_fails_with_its_error(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    autoclose int full = open("/dev/full", O_WRONLY);
    int status;

    (void)state;
    struct relay relay = relay_out_to(full, bytes, MUCH, &status);
    assert_int_equal(relay.failed, ENOSPC);
    assert_int_equal(status, 128 + SIGPIPE);
}

static void out_to_closed_reader_is_told_as_sigpipe(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    int reader, writer, status;

    (void)state;
    make_pipe(&reader, &writer);
    close(reader);
    struct relay relay = relay_out_to(writer, bytes, MUCH, &status);
    assert_int_equal(relay.failed, EPIPE);
    assert_int_equal(status, 128 + SIGPIPE);
    close(writer);
}

static void out_to_nothing_is_refused(void **state)
{
    /* More than a pipe holds: the writer is still writing when the other end is closed. */
    autofree unsigned char *bytes = random_bytes(MUCH);
    int status;

    (void)state;
    relay_out_to(-1, bytes, MUCH, &status);
    assert_int_equal(status, 128 + SIGPIPE);
}

/* A writer that is slow, and one that stands still: the loop must sleep. */
static void out_does_not_spin(void **state)
{
    autoloop struct loop loop = { 0 };
    struct relay relay;
    struct error err;
    int reader, writer, host_reader, host_writer;

    (void)state;
    make_pipe(&reader, &writer);
    make_pipe(&host_reader, &host_writer);
    fcntl(reader, F_SETFL, O_NONBLOCK);
    fcntl(writer, F_SETFL, O_NONBLOCK);
    relay_open(&relay, &loop, &(struct relay_plan){ .way = RELAY_OUT, .host = host_writer, .inside = reader });
    struct pollfd full = { writer, POLLOUT, 0 };
    char page[4096] = { 0 };
    int calls = 0;

    do {
        while (write(writer, page, sizeof page) > 0)
            ;
        loop_turn(&loop, 0, &err);
        assert_true(++calls < 200);
    } while (poll(&full, 1, 0) > 0);
    loop_turn(&loop, 0, &err);
    assert_int_equal(relay.source.fd, -1); /* it waits for the sink */
    assert_int_equal(relay.sink.fd, host_writer);
    relay_close(&relay);
    close(writer);
    close(host_reader);
    close(host_writer);
}

static void relay_in_from(int host, const unsigned char *bytes, size_t len)
{
    autoloop struct loop loop = { 0 };
    struct relay relay;
    int reader, writer;

    make_pipe(&reader, &writer);
    pid_t child = fork_reader(reader, writer, bytes, len);
    fcntl(writer, F_SETFL, O_NONBLOCK);
    relay_open(&relay, &loop, &(struct relay_plan){ .way = RELAY_IN, .host = host, .inside = writer });
    run_relay(&relay, &loop);
    assert_int_equal(status_of(child), 0);
}

static void in_from_pipe_is_exact(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    int reader, writer;

    (void)state;
    make_pipe(&reader, &writer);
    pid_t child = fork_writer(writer, reader, bytes, MUCH);
    relay_in_from(reader, bytes, MUCH);
    assert_int_equal(status_of(child), 0);
    assert_int_equal(fcntl(reader, F_GETFL) & O_NONBLOCK, 0);
    close(reader);
}

static void in_from_socket_is_exact(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork_writer(ends[1], ends[0], bytes, MUCH);
    relay_in_from(ends[0], bytes, MUCH);
    assert_int_equal(status_of(child), 0);
    close(ends[0]);
}

static void in_from_file_is_exact(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    autoclose int file = memfd_create("stdin", 0);

    (void)state;
    assert_int_equal(write(file, bytes, MUCH), MUCH);
    lseek(file, 0, SEEK_SET);
    relay_in_from(file, bytes, MUCH);
}

static void in_from_nothing_ends_at_once(void **state)
{
    autoclose int null = open("/dev/null", O_RDONLY);
    autoclose int directory = open("/", O_RDONLY);

    (void)state;
    relay_in_from(null, (const unsigned char *)"", 0);
    relay_in_from(directory, (const unsigned char *)"", 0);
    relay_in_from(-1, (const unsigned char *)"", 0);
    relay_in_from(900, (const unsigned char *)"", 0); /* a number that is not open */
}

static void in_gives_back_what_was_not_read(void **state)
{
    autofree unsigned char *bytes = random_bytes(MUCH);
    autoclose int file = memfd_create("stdin", 0);
    autoloop struct loop loop = { 0 };
    struct relay relay;
    struct error err;
    unsigned char got[10];
    int reader, writer;

    (void)state;
    assert_int_equal(write(file, bytes, MUCH), MUCH);
    lseek(file, 0, SEEK_SET);
    make_pipe(&reader, &writer);
    fcntl(writer, F_SETFL, O_NONBLOCK);
    relay_open(&relay, &loop, &(struct relay_plan){ .way = RELAY_IN, .host = file, .inside = writer });
    loop_turn(&loop, 1000, &err);
    loop_turn(&loop, 0, &err);
    assert_int_equal(read(reader, got, sizeof got), sizeof got);
    relay_close(&relay);
    assert_int_equal(lseek(file, 0, SEEK_CUR), sizeof got);
    close(reader);
}

static void in_stops_when_nobody_reads(void **state)
{
    int host_reader, host_writer, reader, writer;
    autoloop struct loop loop = { 0 };
    struct relay relay;

    (void)state;
    make_pipe(&host_reader, &host_writer);
    make_pipe(&reader, &writer);
    fcntl(writer, F_SETFL, O_NONBLOCK);
    relay_open(&relay, &loop, &(struct relay_plan){ .way = RELAY_IN, .host = host_reader, .inside = writer });
    close(reader);
    run_relay(&relay, &loop); /* without a byte of input */
    assert_int_equal(turns, 1);
    close(host_reader);
    close(host_writer);
}

static size_t double_it(void *owner, const unsigned char *from, size_t len, unsigned char *to)
{
    (void)owner;
    for (size_t i = 0; i < len; i++)
        to[2 * i] = to[2 * i + 1] = from[i];
    return 2 * len;
}

static void a_change_is_applied_to_all(void **state)
{
    autofree unsigned char *bytes = random_bytes(100000);
    autofree unsigned char *twice = malloc(200000);
    autoloop struct loop loop = { 0 };
    struct relay relay;
    int reader, writer, host_reader, host_writer;

    (void)state;
    double_it(NULL, bytes, 100000, twice);
    make_pipe(&reader, &writer);
    make_pipe(&host_reader, &host_writer);
    pid_t from = fork_writer(writer, reader, bytes, 100000);
    pid_t to = fork_reader(host_reader, host_writer, twice, 200000);
    fcntl(reader, F_SETFL, O_NONBLOCK);
    relay_open(
        &relay, &loop,
        &(struct relay_plan){ .way = RELAY_OUT, .host = host_writer, .inside = reader, .change = double_it });
    run_relay(&relay, &loop);
    close(host_writer);
    assert_int_equal(status_of(from), 0);
    assert_int_equal(status_of(to), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_to_pipe_is_exact),
        cmocka_unit_test(out_to_plain_file_is_exact),
        cmocka_unit_test(out_to_append_file_is_exact),
        cmocka_unit_test(out_to_socket_is_exact),
        cmocka_unit_test(out_to_full_device_fails_with_its_error),
        cmocka_unit_test(out_to_closed_reader_is_told_as_sigpipe),
        cmocka_unit_test(out_to_nothing_is_refused),
        cmocka_unit_test(out_does_not_spin),
        cmocka_unit_test(in_from_pipe_is_exact),
        cmocka_unit_test(in_from_socket_is_exact),
        cmocka_unit_test(in_from_file_is_exact),
        cmocka_unit_test(in_from_nothing_ends_at_once),
        cmocka_unit_test(in_gives_back_what_was_not_read),
        cmocka_unit_test(in_stops_when_nobody_reads),
        cmocka_unit_test(a_change_is_applied_to_all),
    };

    signal(SIGPIPE, SIG_IGN); /* as stop_begin() does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
