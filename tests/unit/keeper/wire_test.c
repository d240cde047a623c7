#include "init/wire.h"

#include "tests/support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int ours, theirs;

static int open_sockets(void **state)
{
    int ends[2];

    (void)state;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    ours = ends[0];
    theirs = ends[1];
    return 0;
}

static int close_sockets(void **state)
{
    (void)state;
    close(ours);
    close(theirs);
    return 0;
}

static size_t open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* Not by wire_send(): what a hostile process would do.  Several control messages if `parts` > 1. */
static void send_raw(const void *bytes, size_t len, size_t fds, size_t parts)
{
    static char control[64 * 1024];
    struct iovec part = { (void *)(uintptr_t)bytes, len };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control };

    memset(control, 0, sizeof control);
    for (size_t i = 0; i < parts && fds; i++) {
        struct cmsghdr *rights = (struct cmsghdr *)(void *)(control + header.msg_controllen);

        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fds * sizeof(int));
        for (size_t fd = 0; fd < fds; fd++)
            memcpy(CMSG_DATA(rights) + fd * sizeof(int), &theirs, sizeof(int));
        header.msg_controllen += CMSG_SPACE(fds * sizeof(int));
    }
    assert_int_equal(sendmsg(theirs, &header, MSG_NOSIGNAL), len);
}

static int receive(struct message *message, int *fds, size_t *count)
{
    struct error err;

    return wire_receive(ours, message, fds, count, &err);
}

static void a_message_arrives_as_it_was_sent(void **state)
{
    struct message sent = { .kind = MESSAGE_EXITED, .pid = 42, .status = 7, .peak_kib = 99 }, got;
    int fds[PROTOCOL_FDS_MAX], pair[PROTOCOL_FDS_MAX] = { 0, 1, 2, ours, ours, ours };
    size_t count;

    (void)state;
    assert_int_equal(wire_send(theirs, &sent, pair, PROTOCOL_FDS_MAX), 0);
    assert_int_equal(receive(&got, fds, &count), WIRE_MESSAGE);
    assert_memory_equal(&sent, &got, sizeof sent);
    assert_int_equal(count, PROTOCOL_FDS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
        close(fds[i]);
    }
}

static void too_many_descriptors_are_not_sent(void **state)
{
    struct message message = { 0 };
    int fds[PROTOCOL_FDS_MAX + 1] = { 0 };

    (void)state;
    assert_int_equal(wire_send(theirs, &message, fds, PROTOCOL_FDS_MAX + 1), -1);
}

static void wrong_sizes_are_refused_and_leave_nothing(void **state)
{
    static const size_t sizes[] = { 1, 4, sizeof(struct message) - 1, sizeof(struct message) + 1, 60000 };
    static char bytes[60000];
    int fds[PROTOCOL_FDS_MAX];
    struct message message;
    size_t count, before = open_descriptors();

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t with = 0; with <= PROTOCOL_FDS_MAX; with++) {
            send_raw(bytes, sizes[i], with, 1);
            assert_int_equal(receive(&message, fds, &count), -1);
            assert_int_equal(count, 0);
            assert_int_equal(open_descriptors(), before);
        }
}

static void excess_descriptors_are_refused_and_closed(void **state)
{
    struct message message = { .kind = MESSAGE_STARTED };
    int fds[PROTOCOL_FDS_MAX];
    size_t count, before = open_descriptors();

    (void)state;
    for (size_t with = PROTOCOL_FDS_MAX + 1; with <= 253; with += 31) {
        send_raw(&message, sizeof message, with, 1);
        assert_int_equal(receive(&message, fds, &count), -1);
        assert_int_equal(open_descriptors(), before);
    }
    send_raw(&message, sizeof message, 253, 1);
    assert_int_equal(receive(&message, fds, &count), -1);
    send_raw(&message, sizeof message, PROTOCOL_FDS_MAX / 2 + 1, 2);
    assert_int_equal(receive(&message, fds, &count), -1);
    assert_int_equal(open_descriptors(), before);
}

static void an_unterminated_text_is_terminated(void **state)
{
    struct message message = { .kind = MESSAGE_FAILED };
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    (void)state;
    memset(message.error.text, 'x', sizeof message.error.text);
    send_raw(&message, sizeof message, 0, 0);
    assert_int_equal(receive(&message, fds, &count), WIRE_MESSAGE);
    assert_int_equal(strlen(message.error.text), sizeof message.error.text - 1);
}

static void the_end_is_told(void **state)
{
    struct message message = { 0 };
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    (void)state;
    fcntl(ours, F_SETFL, O_RDWR | O_NONBLOCK);
    assert_int_equal(receive(&message, fds, &count), WIRE_NOTHING);
    close(theirs);
    assert_int_equal(receive(&message, fds, &count), WIRE_CLOSED);
    assert_int_equal(wire_send(ours, &message, NULL, 0), -1);
    assert_int_equal(errno, EPIPE);
    theirs = -1;
}

static void a_full_socket_does_not_block(void **state)
{
    struct message message = { 0 };
    int sent = 0;

    (void)state;
    fcntl(ours, F_SETFL, O_RDWR | O_NONBLOCK);
    while (wire_send(ours, &message, NULL, 0) == 0)
        assert_true(++sent < 100000);
    assert_int_equal(errno, EAGAIN);
}

#define with_sockets(test) cmocka_unit_test_setup_teardown(test, open_sockets, close_sockets)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_sockets(a_message_arrives_as_it_was_sent),
        with_sockets(too_many_descriptors_are_not_sent),
        with_sockets(wrong_sizes_are_refused_and_leave_nothing),
        with_sockets(excess_descriptors_are_refused_and_closed),
        with_sockets(an_unterminated_text_is_terminated),
        with_sockets(the_end_is_told),
        with_sockets(a_full_socket_does_not_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
