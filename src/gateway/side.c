#include "gateway/side.h"

#include "base/memory.h"
#include "gateway/gate.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

char side_chunk[SIDE_CHUNK];

void side_prompt(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void side_close(struct side *side)
{
    tls_free(side->tls);
    side->tls = NULL;
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

/* --- plain, or not --- */

static ssize_t read_some(struct side *side, void *bytes, size_t size)
{
    ssize_t got;

    if (!side->tls)
        return recv(side->source.fd, bytes, size, 0);
    got = tls_read(side->tls, bytes, size);
    if (got < 0 && errno == EAGAIN)
        side->read_wants = tls_wants(side->tls);
    return got;
}

static ssize_t write_some(struct side *side, const void *bytes, size_t len)
{
    ssize_t sent;

    if (!side->tls)
        return send(side->source.fd, bytes, len, MSG_NOSIGNAL);
    sent = tls_write(side->tls, bytes, len);
    if (sent < 0 && errno == EAGAIN)
        side->write_wants = tls_wants(side->tls);
    return sent;
}

bool side_has_more(const struct side *side)
{
    return side->tls && tls_pending(side->tls) > 0;
}

static void say_end(struct side *side)
{
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
    struct text *heard = &side->heard;

    if (len == heard->len) {
        text_free(heard);
        return;
    }
    heard->len -= len;
    memmove(heard->data, heard->data + len, heard->len);
    heard->data[heard->len] = '\0';
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

bool side_put(struct side *side, const char *bytes, size_t len)
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
    (void)events_change(the_gate.loop, &side->source, events);
}
