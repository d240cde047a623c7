#include "sys/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void *take(struct netlink *all, size_t size)
{
    size_t rounded = NLMSG_ALIGN(size);

    if (rounded > sizeof all->bytes - all->len)
        abort();

    void *place = all->bytes + all->len;

    memset(place, 0, rounded);
    all->len += rounded;
    return place;
}

/* The lengths of everything that is open grow with what is added. */
static void measure(struct netlink *all)
{
    struct nlmsghdr *message = (struct nlmsghdr *)(all->bytes + all->message);

    message->nlmsg_len = (uint32_t)(all->len - all->message);
    for (unsigned i = 0; i < all->depth; i++)
        ((struct nlattr *)(all->bytes + all->nested[i]))->nla_len = (uint16_t)(all->len - all->nested[i]);
}

void netlink_begin(struct netlink *all, uint16_t type, uint16_t flags, const void *header, size_t size)
{
    all->message = all->len;
    all->depth = 0;

    struct nlmsghdr *message = take(all, sizeof *message);

    message->nlmsg_type = type;
    message->nlmsg_flags = NLM_F_REQUEST | flags;
    message->nlmsg_seq = ++all->sequence;
    memcpy(take(all, size), header, size);
    if (flags & NLM_F_ACK)
        all->answered = all->sequence;
    measure(all);
}

void netlink_put(struct netlink *all, uint16_t type, const void *bytes, size_t size)
{
    struct nlattr *attribute = take(all, sizeof *attribute);

    attribute->nla_type = type;
    attribute->nla_len = (uint16_t)(sizeof *attribute + size);
    if (size)
        memcpy(take(all, size), bytes, size);
    measure(all);
}

void netlink_put_text(struct netlink *all, uint16_t type, const char *text)
{
    netlink_put(all, type, text, strlen(text) + 1);
}

void netlink_put_u32(struct netlink *all, uint16_t type, uint32_t value)
{
    uint32_t ordered = htonl(value);

    netlink_put(all, type, &ordered, sizeof ordered);
}

void netlink_nest(struct netlink *all, uint16_t type)
{
    struct nlattr *attribute;

    if (all->depth == NETLINK_DEPTH)
        abort();
    all->nested[all->depth++] = all->len;
    attribute = take(all, sizeof *attribute);
    attribute->nla_type = type | NLA_F_NESTED;
    measure(all);
}

void netlink_end(struct netlink *all)
{
    all->depth--;
}

static int send_all(int fd, const struct netlink *all)
{
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

    return sendto(fd, all->bytes, all->len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0 ? -1 : 0;
}

/* Told of each message; 0: it is the last, -1: it is an error. */
typedef int hear(void *owner, struct nlmsghdr *message);

static int hear_all(int fd, hear *told, void *owner)
{
    _Alignas(8) char answers[16384];

    for (;;) {
        ssize_t got = recv(fd, answers, sizeof answers, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        size_t left = (size_t)got;

        for (struct nlmsghdr *at = (struct nlmsghdr *)answers; NLMSG_OK(at, left); at = NLMSG_NEXT(at, left)) {
            int more = told(owner, at);

            if (more <= 0)
                return more;
        }
    }
}

static int error_of(struct nlmsghdr *message)
{
    const struct nlmsgerr *error = NLMSG_DATA(message);

    return message->nlmsg_len < NLMSG_LENGTH(sizeof *error) ? EPROTO : -error->error;
}

static int told_answer(void *owner, struct nlmsghdr *message)
{
    struct netlink *all = owner;

    if (message->nlmsg_type != NLMSG_ERROR)
        return 1;
    errno = error_of(message);
    if (!errno)
        return message->nlmsg_seq == all->answered ? 0 : 1;
    all->failed = message->nlmsg_seq;
    return -1;
}

int netlink_exchange(int fd, struct netlink *all)
{
    if (send_all(fd, all) < 0)
        return -1;
    return all->answered ? hear_all(fd, told_answer, all) : 0;
}

struct count {
    uint16_t type;
    int found;
};

static int told_part(void *owner, struct nlmsghdr *message)
{
    struct count *count = owner;

    if (message->nlmsg_type == NLMSG_DONE)
        return 0;
    if (message->nlmsg_type == NLMSG_ERROR) {
        errno = error_of(message);
        return errno ? -1 : 1;
    }
    count->found += message->nlmsg_type == count->type ? 1 : 0;
    return 1;
}

int netlink_count(int fd, struct netlink *question, uint16_t type)
{
    struct count count = { type, 0 };

    if (send_all(fd, question) < 0 || hear_all(fd, told_part, &count) < 0)
        return -1;
    return count.found;
}
