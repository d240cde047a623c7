/* How not to wait, and not to change what is the user's:
 *
 * The host's descriptors share their open file description with the shell and everything else
 * in its pipeline, so O_NONBLOCK set on them would break those (a shell that suddenly reads
 * EAGAIN logs its user out).  Instead each kind has its own way not to block:
 *   pipe    splice() with SPLICE_F_NONBLOCK, preadv2() with RWF_NOWAIT, writes of PIPE_BUF
 *   socket  send() and recv() with MSG_DONTWAIT
 *   tty     opened again through /proc, which gives a description of our own
 *   file    never blocks for long
 * and every step is taken only after poll() said that it would succeed.
 *
 * Out of the sandbox, pages are moved by splice().  Into it bytes are always copied: a page
 * that was spliced may be the page cache of a file of the host, and lending those to hostile
 * code has been the way in of more than one kernel bug. */
#include "keeper/relay.h"

#include "base/memory.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { KIND_FILE, KIND_PIPE, KIND_SOCKET, KIND_TTY, KIND_NULL, KIND_OTHER };

enum next {
    NEXT_MORE,   /* there may be more to move at once */
    NEXT_SOURCE, /* wait until something can be read */
    NEXT_SINK,   /* wait until something can be written */
    NEXT_REST,   /* wait for relay_wake() */
    NEXT_END,
};

enum {
    ROUNDS = 16, /* then other sources of the loop get their turn */
    CHANGED_READ = 16 << 10,
    SMALL_MOVE = 32 << 10, /* after less than this the pipe is most likely empty */
    TTY_WRITE = 256,       /* room that a writable terminal has (WAKEUP_CHARS of n_tty) */
};

static enum kind kind_of(int fd)
{
    struct stat info;

    if (fstat(fd, &info) < 0)
        return KIND_OTHER;
    if (S_ISREG(info.st_mode))
        return KIND_FILE;
    if (S_ISFIFO(info.st_mode))
        return KIND_PIPE;
    if (S_ISSOCK(info.st_mode))
        return KIND_SOCKET;
    if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3)) /* /dev/null, wherever it lies */
        return KIND_NULL;
    return S_ISCHR(info.st_mode) && isatty(fd) ? KIND_TTY : KIND_OTHER;
}

static int open_again(int fd, int access_mode)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, access_mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void wait_for(struct relay *relay, enum next next)
{
    bool source = next == NEXT_SOURCE || next == NEXT_MORE, sink = next == NEXT_SINK;

    relay->resting = next == NEXT_REST;
    relay->source.fd = source ? relay->from : -1;
    relay->source.events = POLLIN;
    relay->sink.fd = sink ? relay->to : -1;
    relay->sink.events = sink ? POLLOUT : 0;
    /* Whether anybody inside still reads is told as an error of the pipe without being asked. */
    if (relay->plan.way == RELAY_IN && !relay->plan.keep)
        relay->sink.fd = relay->to;
}

static void give_back(const struct relay *relay)
{
    int unread = 0;

    if (relay->plan.way != RELAY_IN || relay->from_kind != KIND_FILE || relay->from < 0)
        return;
    if (!relay->plan.keep)
        (void)ioctl(relay->to, FIONREAD, &unread);
    if (unread > 0 || relay->len > 0)
        (void)lseek(relay->from, -((off_t)unread + (off_t)relay->len), SEEK_CUR);
}

void relay_close(struct relay *relay)
{
    int *inside = relay->plan.way == RELAY_IN ? &relay->to : &relay->from;

    if (relay->from >= 0 && relay->to >= 0)
        give_back(relay);
    if (*inside >= 0 && !relay->plan.keep)
        close(*inside);
    if (relay->reopened >= 0)
        close(relay->reopened);
    free(relay->read_buffer);
    free(relay->buffer);
    relay->read_buffer = relay->buffer = NULL;
    relay->at = relay->len = 0;
    relay->from = relay->to = relay->reopened = relay->source.fd = relay->sink.fd = -1;
    relay->ended = true;
}

/* A pty has no end of file to pass on, only the character that its line discipline takes for
 * one (Ctrl-D). */
static void pass_end(const struct relay *relay)
{
    static const char end_of_transmission = 4;

    if (relay->plan.way == RELAY_IN && relay->plan.keep)
        (void)!write(relay->to, &end_of_transmission, 1);
}

static enum next fail(struct relay *relay, int number)
{
    if (relay->plan.way == RELAY_OUT)
        relay->failed = number;
    return NEXT_END;
}

static void grow(struct relay *relay)
{
    if (relay->grown)
        return;
    relay->grown = true;
    /* Best effort: a user may own only so many pages of pipes.  Not at the start, because most
     * commands never fill what the kernel gives anyway. */
    (void)fcntl(relay->plan.inside, F_SETPIPE_SZ, RELAY_PIPE_SIZE);
}

static size_t within_budget(const struct relay *relay, size_t most)
{
    return relay->plan.budget && *relay->plan.budget < most ? (size_t)*relay->plan.budget : most;
}

static void count(struct relay *relay, ssize_t moved)
{
    relay->bytes += (uint64_t)moved;
    if (relay->plan.budget)
        *relay->plan.budget -= (uint64_t)moved;
}

/* Whether something waits that may not pass.  A stream at its end needs no budget. */
static bool is_spent(const struct relay *relay)
{
    int waiting = 0;

    if (!relay->plan.budget || *relay->plan.budget > 0)
        return false;
    return relay->len > 0 || (ioctl(relay->from, FIONREAD, &waiting) == 0 && waiting > 0);
}

static enum next step_splice(struct relay *relay)
{
    ssize_t moved = splice(relay->from, NULL, relay->to, NULL, within_budget(relay, RELAY_PIPE_SIZE),
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    int waiting = 0;

    if (moved == 0)
        return NEXT_END;
    if (moved > 0) {
        count(relay, moved);
        if (moved >= SMALL_MOVE)
            grow(relay);
        return moved >= SMALL_MOVE ? NEXT_MORE : NEXT_SOURCE;
    }
    switch (errno) {
    case EINTR:
        return NEXT_MORE;
    case EAGAIN: /* does not tell which side: bytes that wait mean that the sink is full */
        (void)ioctl(relay->from, FIONREAD, &waiting);
        return waiting > 0 ? NEXT_SINK : NEXT_SOURCE;
    case EINVAL: /* this sink takes no splice: opened for append, a device */
        relay->splices = false;
        return NEXT_MORE;
    default:
        return fail(relay, errno);
    }
}

/* In the background of a terminal a read would stop us, and the sandbox with us, although
 * nothing inside asked for input. */
static bool may_read_terminal(int fd)
{
    pid_t foreground = tcgetpgrp(fd);

    return foreground < 0 || foreground == getpgrp();
}

static ssize_t read_now(const struct relay *relay, void *to, size_t most)
{
    struct iovec part = { to, most };
    ssize_t got = -1;

    if (relay->from_kind == KIND_SOCKET)
        return recv(relay->from, to, most, MSG_DONTWAIT);
    if (relay->from_kind == KIND_PIPE && relay->plan.way == RELAY_IN) {
        got = preadv2(relay->from, &part, 1, -1, RWF_NOWAIT);
        if (got >= 0 || errno != EOPNOTSUPP)
            return got;
    }
    return read(relay->from, to, most);
}

static enum next step_read(struct relay *relay)
{
    bool changes = relay->plan.change;

    if (relay->plan.way == RELAY_IN && relay->from_kind == KIND_TTY && !may_read_terminal(relay->from))
        return NEXT_REST;
    if (!relay->buffer)
        relay->buffer = memory_resize(NULL, RELAY_READ_MAX);
    if (changes && !relay->read_buffer)
        relay->read_buffer = memory_resize(NULL, CHANGED_READ);

    ssize_t got =
        read_now(relay, changes ? relay->read_buffer : relay->buffer, changes ? CHANGED_READ : RELAY_READ_MAX);
    if (got < 0 && errno == EINTR)
        return NEXT_MORE;
    if (got < 0 && errno == EAGAIN)
        return NEXT_SOURCE;
    if (got <= 0) { /* also EIO of a pty that nobody has open any more, EISDIR, EBADF */
        pass_end(relay);
        return NEXT_END;
    }
    relay->at = 0;
    relay->len = (size_t)got;
    if (changes)
        relay->len =
            relay->plan.change(relay->plan.change_owner, relay->read_buffer, relay->len, relay->buffer);
    return relay->len > 0 && relay->write_most < SIZE_MAX ? NEXT_SINK : NEXT_MORE;
}

static enum next step_write(struct relay *relay)
{
    size_t most = within_budget(relay, relay->len < relay->write_most ? relay->len : relay->write_most);
    const unsigned char *from = relay->buffer + relay->at;
    ssize_t put = relay->to_kind == KIND_SOCKET ? send(relay->to, from, most, MSG_DONTWAIT | MSG_NOSIGNAL)
                                                : write(relay->to, from, most);

    if (put < 0 && errno == EINTR)
        return NEXT_MORE;
    if (put < 0 && errno == EAGAIN)
        return NEXT_SINK;
    if (put < 0)
        return fail(relay, errno);
    relay->at += (size_t)put;
    relay->len -= (size_t)put;
    count(relay, put);
    if (relay->len > 0)
        return NEXT_SINK;
    if (relay->plan.way == RELAY_IN && put >= SMALL_MOVE)
        grow(relay);
    return NEXT_SOURCE;
}

static enum next step(struct relay *relay)
{
    if (is_spent(relay)) {
        relay->spent = true;
        return NEXT_REST;
    }
    if (relay->splices && !(relay->plan.budget && *relay->plan.budget == 0))
        return step_splice(relay);
    return relay->len > 0 ? step_write(relay) : step_read(relay);
}

void relay_pump(struct relay *relay)
{
    enum next next = NEXT_MORE;

    if (relay->ended)
        return;
    for (int round = 0; round < ROUNDS && next == NEXT_MORE; round++)
        next = step(relay);
    if (next == NEXT_END)
        relay_close(relay);
    else
        wait_for(relay, next == NEXT_MORE && relay->len > 0 ? NEXT_SINK : next);
}

static void source_ready(void *owner, short revents)
{
    (void)revents;
    relay_pump(owner);
}

static void sink_ready(void *owner, short revents)
{
    struct relay *relay = owner;

    if (relay->plan.way == RELAY_IN && revents & POLLERR)
        relay_close(relay); /* nobody inside reads any more: leave the rest to the host's next reader */
    else
        relay_pump(relay);
}

void relay_wake(struct relay *relay)
{
    if (relay->resting)
        relay_pump(relay);
}

static void prepare_out(struct relay *relay)
{
    int flags = fcntl(relay->to, F_GETFL);

    relay->splices = !relay->plan.change && relay->to_kind != KIND_SOCKET && relay->to_kind != KIND_TTY;
    if (relay->to_kind == KIND_TTY) {
        relay->reopened = open_again(relay->to, O_WRONLY);
        relay->to = relay->reopened >= 0 ? relay->reopened : relay->to;
    }
    if (flags >= 0 && flags & O_NONBLOCK)
        return;
    if (relay->to_kind == KIND_PIPE)
        relay->write_most = PIPE_BUF;
    if (relay->to_kind == KIND_TTY && relay->reopened < 0)
        relay->write_most = TTY_WRITE;
}

void relay_turn(struct relay *relay, int host)
{
    relay->plan.host = relay->to = host;
    relay->to_kind = kind_of(host);
    relay->write_most = SIZE_MAX;
    if (relay->reopened >= 0)
        close(steal_fd(&relay->reopened));
    prepare_out(relay);
    wait_for(relay, relay->len > 0 ? NEXT_SINK : NEXT_SOURCE);
}

static void prepare_in(struct relay *relay)
{
    if (relay->from_kind != KIND_TTY)
        return;
    relay->reopened = open_again(relay->from, O_RDONLY);
    relay->from = relay->reopened >= 0 ? relay->reopened : relay->from;
}

void relay_open(struct relay *relay, struct loop *loop, const struct relay_plan *plan)
{
    bool in = plan->way == RELAY_IN;

    *relay = RELAY_NONE;
    relay->plan = *plan;
    relay->from = in ? plan->host : plan->inside;
    relay->to = in ? plan->inside : plan->host;
    relay->write_most = SIZE_MAX;
    relay->source = (struct loop_source){ -1, 0, source_ready, relay };
    relay->sink = (struct loop_source){ -1, 0, sink_ready, relay };
    loop_add(loop, &relay->source);
    loop_add(loop, &relay->sink);
    if (plan->host < 0) {
        relay_close(relay);
        return;
    }
    relay->ended = false;
    relay->from_kind = kind_of(relay->from);
    relay->to_kind = kind_of(relay->to);
    if (in && relay->from_kind == KIND_NULL) {
        pass_end(relay);
        relay_close(relay); /* no need to be told by a read */
        return;
    }
    if (in)
        prepare_in(relay);
    else
        prepare_out(relay);
    wait_for(relay, plan->held ? NEXT_REST : NEXT_SOURCE);
}
