#include "gateway/gateway.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/brief.h"
#include "gateway/gate.h"
#include "gateway/tape.h"
#include "net/tls.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 8192,
    FDS_SPARE = 64,
    FDS_EACH = 4, /* two ends, and two questions while it is looked up */
    BEAT_MS = 20,
    NOTES_AT_A_TIME = 256,
    AUTHORITY_MAX = 8192,
    ROOTS_MAX = 8 << 20,
};

struct gate the_gate = { .recorder.fd = -1 };

/* As recv(), of at most GATEWAY_NOTES; with a descriptor, or -1. */
static ssize_t take_noted(int channel, struct gateway_noted *noted, int *fd)
{
    struct iovec bytes = { noted, GATEWAY_NOTES * sizeof *noted };
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } beside;
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside
    };
    ssize_t got = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got < 0 ? NULL : CMSG_FIRSTHDR(&message);

    *fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return got;
}

/* What the keeper has written down. */
static void channel_ready(struct event_source *source, uint32_t events)
{
    struct gateway_noted noted[GATEWAY_NOTES] = { 0 };

    (void)events;
    for (int i = 0; i < NOTES_AT_A_TIME; i++) {
        int fd;
        ssize_t got = take_noted(source->fd, noted, &fd);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0 || (size_t)got % sizeof *noted) { /* the keeper is gone, or wants no more */
            connections_end(&the_gate);
            notes_flush();
            _exit(0);
        }
        for (size_t at = 0; at < (size_t)got / sizeof *noted; at++, fd = -1)
            connections_noted(&the_gate, &noted[at], fd);
    }
}

/* This machine's own addresses are as closed as private ones. */
static void add_own_addresses(struct rules *rules)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0)
        _exit(1);
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct address address = ADDRESS_NONE;

        if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET)
            address = address_from(&((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr, 4);
        else if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET6)
            address = address_from(&((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr, 16);
        if (address.len)
            rules_add_own(rules, &address);
    }
    freeifaddrs(all);
}

static size_t connections_max(size_t descriptors)
{
    size_t most = descriptors > FDS_SPARE + FDS_EACH ? (descriptors - FDS_SPARE) / FDS_EACH : 1;

    return most < CONNECTIONS_MAX ? most : CONNECTIONS_MAX;
}

static int add_source(struct event_source *source, int fd, void (*ready)(struct event_source *, uint32_t))
{
    *source = (struct event_source){ .fd = fd, .ready = ready };
    return fd < 0 ? 0 : events_add(the_gate.loop, source, EPOLLIN);
}

/* Without an authority a gateway refuses in other words; without roots it believes no server.  Neither is a
 * reason to let anything through. */
static void take_certificates(struct gate *gate, int *authority, int *roots)
{
    struct error ignored;
    char *pem = file_rest(*authority, AUTHORITY_MAX);
    autofree char *bundle = file_rest(*roots, ROOTS_MAX);

    if (pem && tls_warm() == 0)
        gate->authority = tls_authority_load(pem, pem, &ignored);
    if (gate->authority && bundle)
        gate->trust = tls_trust_new(bundle, strlen(bundle), &ignored);
    if (pem)
        explicit_bzero(pem, strlen(pem));
    free(pem);
    own_close(authority);
    own_close(roots);
}

static int take_brief(struct gate *gate, int fds[GATEWAY_FDS])
{
    static struct rules rules;
    autofree char *bytes = file_rest(fds[GATEWAY_BRIEF], BRIEF_MAX);
    struct brief brief;
    struct error ignored;

    own_close(&fds[GATEWAY_BRIEF]);
    if (!bytes || brief_read(bytes, &brief, &rules, &ignored) < 0)
        return -1;
    add_own_addresses(&rules);
    gate->rules = &rules;
    memcpy(gate->sandbox, brief.sandbox, sizeof gate->sandbox);
    pool_init(&gate->pool, brief.generation);
    budget_init(&gate->budget, &rules, &brief.spent, brief.bytes);
    if (brief.died && !gate_leaves_out("rates"))
        budget_spend_rates(&gate->budget, clock_us());
    free(brief.bytes);
    gate->packages = rules.packages > 0;
    recorder_begin(&gate->recorder, fds[GATEWAY_RECORD], brief.record_secrets, brief.generation);
    return 0;
}

/* The bytes are mapped as long as there are rights for it.  -1: there are some, and they cannot be had. */
static int map_tape(int *fd, struct text *out)
{
    struct stat status;

    if (*fd < 0)
        return 0;
    if (fstat(*fd, &status) < 0)
        return -1;
    char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, *fd, 0);

    own_close(fd);
    *out = (struct text){ .data = bytes, .len = (size_t)status.st_size };
    return bytes == MAP_FAILED ? -1 : 0;
}

/* Read when files and rights are given up: whoever wrote it may have had anything in mind. */
static int take_tape(const struct text *bytes, struct rules *rules)
{
    static struct tape tape;
    struct error ignored;

    if (!bytes->data)
        return 0;
    rules->tape = &tape;
    if (tape_read(bytes->data, bytes->len, &tape, &ignored) < 0)
        return -1;
    return munmap(bytes->data, bytes->len);
}

static int begin(int fds[GATEWAY_FDS])
{
    struct gate *gate = &the_gate;
    size_t descriptors;
    struct text tape = TEXT_NONE;

    if (take_brief(gate, fds) < 0 || map_tape(&fds[GATEWAY_TAPE], &tape) < 0)
        return -1;
    gate->loop = events_open();
    resolver_init(&gate->resolver, gate->loop);
    take_certificates(gate, &fds[GATEWAY_AUTHORITY], &fds[GATEWAY_ROOTS]);
    secure_trust_rules();
    if (gate->loop < 0 || add_source(&gate->channel, fds[GATEWAY_CHANNEL], channel_ready) < 0)
        return -1;
    for (size_t i = 0; i < NETWORK_SOCKETS; i++)
        if (add_source(&gate->sockets[i], fds[GATEWAY_SOCKETS + i],
                       i == NETWORK_UDP || i == NETWORK_UDP6 ? questions_ready : connections_ready) < 0)
            return -1;
    if (gateway_confine(&descriptors) < 0 || take_tape(&tape, gate->rules) < 0)
        return -1;
    gate->connections_max = connections_max(descriptors);
    return 0;
}

void gateway_main(int fds[GATEWAY_FDS])
{
    struct gate *gate = &the_gate;
    uint64_t tended = 0;

#ifdef COVE_UNSAFE
    gate->without = getenv("COVE_UNSAFE_WITHOUT");
#endif
    if (begin(fds) < 0)
        _exit(1);
    for (;;) {
        if (events_turn(gate->loop, gate->connections ? BEAT_MS : -1) < 0)
            _exit(1);
        uint64_t now = clock_us();

        if (now - tended >= BEAT_MS * 1000ULL) {
            tended = now;
            connections_tend(gate, now);
        }
        notes_flush();
        connections_bury(gate);
        lookups_bury();
    }
}
