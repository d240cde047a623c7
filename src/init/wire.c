#include "init/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * PROTOCOL_FDS_MAX)];
};

static void add_rights(struct msghdr *header, union control *control, const int *fds, size_t count)
{
    memset(control, 0, sizeof *control);
    header->msg_control = control;
    header->msg_controllen = (__typeof__(header->msg_controllen))CMSG_SPACE(sizeof(int) * count);

    struct cmsghdr *rights = CMSG_FIRSTHDR(header);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = (__typeof__(rights->cmsg_len))CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(rights), fds, sizeof(int) * count);
}

/* A message that is lost would leave the other side waiting for ever. */
enum { TRIES = 1000 };

static bool is_passing(int number)
{
    return number == EINTR || number == ENOBUFS || number == ENOMEM || number == ETOOMANYREFS;
}

int wire_put(int fd, const void *bytes, size_t size, const int *fds, size_t count)
{
    struct iovec part = { (void *)(uintptr_t)bytes, size };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    union control control;
    ssize_t sent;

    if (count > PROTOCOL_FDS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (count > 0)
        add_rights(&header, &control, fds, count);
    for (int tries = 0; tries < TRIES; tries++) {
        sent = sendmsg(fd, &header, MSG_NOSIGNAL);
        if (sent >= 0)
            return 0;
        if (!is_passing(errno))
            return -1;
        if (errno != EINTR)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return -1;
}

int wire_send(int fd, const struct message *message, const int *fds, size_t count)
{
    return wire_put(fd, message, sizeof *message, fds, count);
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* The kernel has already given us the descriptors: each must be handed on or closed here.  More
 * than `control` holds the kernel closes itself and says so. */
static int take_rights(struct msghdr *header, int *fds, size_t *count)
{
    *count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        int received[PROTOCOL_FDS_MAX];
        size_t len = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || len > PROTOCOL_FDS_MAX)
            continue;
        memcpy(received, CMSG_DATA(part), len * sizeof(int));
        if (len > PROTOCOL_FDS_MAX - *count) {
            close_all(received, len);
            return -1;
        }
        memcpy(fds + *count, received, len * sizeof(int));
        *count += len;
    }
    return header->msg_flags & MSG_CTRUNC ? -1 : 0;
}

static int refuse(int *fds, size_t *count, struct error *err, const char *why)
{
    close_all(fds, *count);
    *count = 0;
    return error_set(err, ERROR_INVALID, "a message %s", why);
}

static int take(int fd, int flags, struct wire_room *room, int *fds, size_t *count, struct error *err)
{
    union control control;
    struct iovec part = { room->structs, room->size * room->most };
    /* Not its whole size: that is rounded up, and would let in one more than we look at. */
    struct msghdr header = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(int) * PROTOCOL_FDS_MAX) };
    ssize_t got;

    *count = 0;
    /* ECONNRESET: the other end died with something of ours unread.  The kernel says that once, before
     * it gives what the other end had said. */
    do
        got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | flags);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && errno == EAGAIN)
        return WIRE_NOTHING;
    if (got < 0)
        return error_sys(err, "receive a message");

    if (take_rights(&header, fds, count) < 0)
        return refuse(fds, count, err, "has too many descriptors");
    if (got == 0 && *count == 0)
        return WIRE_CLOSED;
    if (got == 0 || (size_t)got % room->size || header.msg_flags & MSG_TRUNC)
        return refuse(fds, count, err, "has a wrong size");
    room->len = (size_t)got / room->size;
    return WIRE_MESSAGE;
}

int wire_take(int fd, void *bytes, size_t size, int *fds, size_t *count, struct error *err)
{
    return take(fd, 0, &(struct wire_room){ bytes, size, 1, 0 }, fds, count, err);
}

int wire_take_several(int fd, struct wire_room *room, int *fds, size_t *count, struct error *err)
{
    return take(fd, 0, room, fds, count, err);
}

static int receive(int fd, int flags, struct message *message, int *fds, size_t *count, struct error *err)
{
    int got = take(fd, flags, &(struct wire_room){ message, sizeof *message, 1, 0 }, fds, count, err);

    if (got == WIRE_MESSAGE)
        message->error.text[sizeof message->error.text - 1] = '\0';
    return got;
}

int wire_receive(int fd, struct message *message, int *fds, size_t *count, struct error *err)
{
    return receive(fd, 0, message, fds, count, err);
}

int wire_peek(int fd, struct message *message, int *fds, size_t *count, struct error *err)
{
    return receive(fd, MSG_PEEK, message, fds, count, err);
}
