/* Any bytes with any number of descriptors: a whole message or an error, and none left open. */
#include "init/wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

static void send_hostile(int fd, const uint8_t *data, size_t size, size_t fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 16)];
    } control;
    struct iovec part = { (void *)(uintptr_t)data, size };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };

    memset(&control, 0, sizeof control);
    if (fds > 0) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * fds);
        for (size_t i = 0; i < fds; i++)
            memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof fd);
    }
    (void)!sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2], fds[PROTOCOL_FDS_MAX];
    struct message message;
    struct error err;
    size_t count;

    if (size < 1 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) < 0)
        return 0;
    int before = lowest_free();

    send_hostile(ends[1], data + 1, size - 1, data[0] % 17);
    int got = wire_receive(ends[0], &message, fds, &count, &err);
    if (got == WIRE_MESSAGE) {
        if (size - 1 != sizeof message || strlen(message.error.text) >= sizeof message.error.text)
            abort();
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    } else if (count != 0) {
        abort();
    }
    if (lowest_free() != before)
        abort();
    close(ends[0]);
    close(ends[1]);
    return 0;
}
