#include "gateway/side.h"

#include "base/memory.h"
#include "gateway/gate.h"
#include "gateway/inquiry.h"
#include "gateway/session.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

char side_chunk[SIDE_CHUNK];

/* What is put to one side, until that is let go. */
static struct {
    struct side *side;
    char bytes[TLS_RECORD_MAX];
    size_t len;
} gathered;

/* What nobody takes waits in the kernel's memory, which is one for all sandboxes and this machine: 4 MB for
 * each connection, if nothing is said.  A few of them may have that, and are faster by it; many share. */
static int may_wait(void)
{
    const size_t all = 16 << 20, most = 4 << 20, least = 64 << 10;
    size_t share = all / (the_gate.connections_len + 1);

    return (int)(share > most ? most : share < least ? least : share);
}

void side_prompt(int fd)
{
    const int on = 1, waiting = may_wait();

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!gate_leaves_out("queues"))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &waiting, sizeof waiting);
}

void side_close(struct side *side)
{
    if (gathered.side == side)
        gathered.side = NULL;
    tls_free(side->tls);
    side->tls = NULL;
    if (side->lane)
        lane_close(side->lane);
    side->lane = NULL;
    if (side->inquiry)
        inquiry_close(side->inquiry);
    side->inquiry = NULL;
    events_close(&side->source);
    text_free(&side->heard);
    free(side->held);
    side->held = NULL;
    side->held_at = side->held_len = 0;
    side->ended = side->told = false;
}

void side_abort(struct side *side)
{
    const struct linger at_once = { 1, 0 };

    if (side_is_open(side))
        (void)setsockopt(side->source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    side_close(side);
}

/* --- plain, TLS, or a stream of HTTP/2 --- */

/* How much of it may pass. */
static size_t room_for(const struct side *side, size_t len)
{
    return side->counted && !gate_leaves_out("budget") ? budget_room(&the_gate.budget, side->counted, len)
                                                       : len;
}

/* Who dies takes nothing along but this: so a keeper that has other work is waited for. */
static ssize_t passed(const struct side *side, ssize_t len)
{
    if (!side->counted || len <= 0)
        return len;
    budget_passed(&the_gate.budget, side->counted, (size_t)len);
    if (the_gate.budget.quiet >= BUDGET_QUIET)
        notes_tell_spent(true);
    return len;
}

static ssize_t nothing_may_pass(void)
{
    errno = EDQUOT;
    return -1;
}

static ssize_t read_some(struct side *side, void *bytes, size_t size)
{
    size_t room = room_for(side, size);
    ssize_t got;

    if (side->lane)
        return lane_read(side->lane, bytes, size);
    if (side->inquiry)
        return inquiry_read(side->inquiry, bytes, size);
    if (room == 0 && size)
        return nothing_may_pass();
    if (!side->tls)
        return passed(side, recv(side->source.fd, bytes, room, 0));
    got = tls_read(side->tls, bytes, room);
    if (got < 0 && errno == EAGAIN)
        side->read_wants = tls_wants(side->tls);
    return passed(side, got);
}

static ssize_t write_some(struct side *side, const void *bytes, size_t len)
{
    size_t room = room_for(side, len);
    ssize_t sent;

    if (side->lane)
        return lane_write(side->lane, bytes, len);
    if (side->inquiry)
        return inquiry_write(side->inquiry, bytes, len);
    if (room == 0 && len)
        return nothing_may_pass();
    if (!side->tls)
        return passed(side, send(side->source.fd, bytes, room, MSG_NOSIGNAL));
    sent = tls_write(side->tls, bytes, room);
    if (sent < 0 && errno == EAGAIN)
        side->write_wants = tls_wants(side->tls);
    return passed(side, sent);
}

bool side_has_more(const struct side *side)
{
    return side->tls && tls_pending(side->tls) > 0;
}

static void say_end(struct side *side)
{
    if (side->lane) {
        lane_end(side->lane);
        return;
    }
    if (side->inquiry)
        return; /* it knows how long an answer is */
    if (side->tls)
        tls_end(side->tls);
    (void)shutdown(side->source.fd, SHUT_WR);
}

void side_secure(struct side *side, struct tls *tls)
{
    side->tls = tls;
    side->read_wants = EPOLLIN;
    side->write_wants = EPOLLOUT;
}

enum tls_step side_handshake(struct side *side)
{
    enum tls_step step = tls_handshake(side->tls);

    if (step == TLS_WANT_READ || step == TLS_WANT_WRITE)
        (void)events_change(the_gate.loop, &side->source, step == TLS_WANT_READ ? EPOLLIN : EPOLLOUT);
    return step;
}

/* --- reading --- */

ssize_t side_read(struct side *side, void *bytes, size_t size)
{
    ssize_t got;

    do
        got = read_some(side, bytes, size);
    while (got < 0 && errno == EINTR);
    return got;
}

bool side_is_quiet(struct side *side)
{
    char byte;

    if (!side_has_more(side) && recv(side->source.fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) < 0 &&
        errno == EAGAIN)
        return true;
    /* What came may be no word of it, but of TLS to itself. */
    return side->tls && side_read(side, &byte, sizeof byte) < 0 && errno == EAGAIN;
}

int side_hear(struct side *side, size_t most)
{
    size_t room = side->heard.len < most ? most - side->heard.len : 0;
    ssize_t got = side_read(side, side_chunk, room < sizeof side_chunk ? room : sizeof side_chunk);

    if (got <= 0)
        return (int)got;
    text_add_bytes(&side->heard, side_chunk, (size_t)got);
    return 1;
}

void side_forget(struct side *side, size_t len)
{
    text_drop(&side->heard, len);
}

/* --- writing --- */

/* How much was taken; -1: it is gone. */
static ssize_t send_some(struct side *side, const char *bytes, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t sent = write_some(side, bytes + done, len - done);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return -1;
        if (sent < 0)
            break;
        done += (size_t)sent;
    }
    return (ssize_t)done;
}

static bool put(struct side *side, const char *bytes, size_t len)
{
    ssize_t sent = side->held_len ? 0 : send_some(side, bytes, len);
    size_t rest = len - (size_t)sent;

    if (sent < 0)
        return false;
    if (rest == 0)
        return true;
    side->held = memory_resize(side->held, side->held_at + side->held_len + rest);
    memcpy(side->held + side->held_at + side->held_len, bytes + sent, rest);
    side->held_len += rest;
    return true;
}

void side_gather(struct side *side)
{
    gathered.side = side;
    gathered.len = 0;
}

bool side_let_go(struct side *side)
{
    bool waits = gathered.side == side && gathered.len;

    gathered.side = NULL;
    return !waits || put(side, gathered.bytes, gathered.len);
}

bool side_put(struct side *side, const char *bytes, size_t len)
{
    if (gathered.side != side)
        return put(side, bytes, len);
    if (len <= sizeof gathered.bytes - gathered.len) {
        memcpy(gathered.bytes + gathered.len, bytes, len);
        gathered.len += len;
        return true;
    }
    return side_let_go(side) && put(side, bytes, len);
}

bool side_flush(struct side *side)
{
    if (side->held_len == 0)
        return true;

    ssize_t sent = send_some(side, side->held + side->held_at, side->held_len);

    if (sent < 0)
        return false;
    side->held_at += (size_t)sent;
    side->held_len -= (size_t)sent;
    if (side->held_len == 0) {
        free(side->held);
        side->held = NULL;
        side->held_at = 0;
    }
    return true;
}

void side_finish(struct side *side)
{
    if (side->held_len || side->told)
        return;
    side->told = true;
    say_end(side);
}

void side_watch(struct side *side, bool reading)
{
    uint32_t events = 0;

    if (reading)
        events |= side->tls ? side->read_wants : EPOLLIN;
    if (side->held_len)
        events |= side->tls ? side->write_wants : EPOLLOUT;
    if (side->lane)
        lane_watch(side->lane, events);
    else if (!side->inquiry) /* which comes by itself */
        (void)events_change(the_gate.loop, &side->source, events);
}
