#include "inside/frames.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_MS = 100 };

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int ask_owner(const struct frames *frames)
{
    if (!frames->go_on || frames->go_on(frames->owner))
        return 0;
    errno = EINTR;
    return -1;
}

/* Until the descriptor is ready. */
static int await(const struct frames *frames, int fd, short events)
{
    struct pollfd ready = { .fd = fd, .events = events };
    uint64_t began = now_ms();

    for (;;) {
        if (ask_owner(frames) < 0)
            return -1;
        int got = poll(&ready, 1, frames->go_on || frames->patience_ms ? SLICE_MS : -1);

        if (got > 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return -1;
        if (frames->patience_ms && now_ms() - began > frames->patience_ms) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

static bool must_wait(int number)
{
    return number == EAGAIN || number == EINTR;
}

int frames_flush(struct frames *frames)
{
    size_t done = 0;

    if (frames->put_len && ask_owner(frames) < 0)
        return -1;
    while (done < frames->put_len) {
        ssize_t sent = write(frames->out, frames->put + done, frames->put_len - done);

        if (sent < 0 && !must_wait(errno))
            return -1;
        if (sent < 0 && await(frames, frames->out, POLLOUT) < 0)
            return -1;
        done += sent > 0 ? (size_t)sent : 0;
    }
    frames->put_len = 0;
    return 0;
}

static void put(struct frames *frames, const void *bytes, size_t len)
{
    if (len)
        memcpy(frames->put + frames->put_len, bytes, len);
    frames->put_len += len;
}

static int make_room(struct frames *frames, size_t len)
{
    if (frames->put_len + len <= FRAMES_ROOM)
        return 0;
    return frames_flush(frames);
}

int frames_send(struct frames *frames, uint32_t kind, uint32_t id, const void *head, size_t head_len,
                const void *bytes, size_t len)
{
    struct frame_head start = { kind, id, head_len + len };

    if (len > FRAME_MAX || head_len > FRAME_MAX - len) {
        errno = EMSGSIZE;
        return -1;
    }
    if (make_room(frames, sizeof start + head_len + len) < 0)
        return -1;
    put(frames, &start, sizeof start);
    put(frames, head, head_len);
    put(frames, bytes, len);
    return 0;
}

unsigned char *frames_room(struct frames *frames)
{
    if (make_room(frames, sizeof(struct frame_head) + FRAME_MAX) < 0)
        return NULL;
    return frames->put + frames->put_len + sizeof(struct frame_head);
}

int frames_put_data(struct frames *frames, uint32_t id, size_t len)
{
    struct frame_head start = { TREE_DATA, id, len };

    put(frames, &start, sizeof start);
    frames->put_len += len;
    return 0;
}

/* 0 at the end of what comes in. */
static ssize_t read_more(struct frames *frames)
{
    ssize_t got;

    if (ask_owner(frames) < 0)
        return -1;
    if (frames->got_from) {
        frames->got_to -= frames->got_from;
        memmove(frames->got, frames->got + frames->got_from, frames->got_to);
        frames->got_from = 0;
    }
    while ((got = read(frames->in, frames->got + frames->got_to, FRAMES_ROOM - frames->got_to)) < 0) {
        if (!must_wait(errno))
            return -1;
        if (await(frames, frames->in, POLLIN) < 0)
            return -1;
    }
    frames->got_to += (size_t)got;
    return got;
}

/* 1: so many bytes are there; 0: it ended before the first of them. */
static int have(struct frames *frames, size_t len)
{
    while (frames->got_to - frames->got_from < len) {
        ssize_t got = read_more(frames);

        if (got < 0)
            return -1;
        if (got == 0 && frames->got_to == frames->got_from)
            return 0;
        if (got == 0) {
            errno = EBADMSG;
            return -1;
        }
    }
    return 1;
}

int frames_receive(struct frames *frames, struct frame *out)
{
    struct frame_head head;

    if (frames_flush(frames) < 0)
        return -1;
    int got = have(frames, sizeof head);

    if (got <= 0)
        return got;
    memcpy(&head, frames->got + frames->got_from, sizeof head);
    if (head.length > FRAME_MAX) {
        errno = EBADMSG;
        return -1;
    }
    got = have(frames, sizeof head + (size_t)head.length);
    if (got < 0)
        return -1;
    *out =
        (struct frame){ head.kind, head.id, (size_t)head.length, frames->got + frames->got_from + sizeof head };
    frames->got_from += sizeof head + out->length;
    return FRAMES_GOT;
}

bool frames_has_word(const struct frames *frames)
{
    struct pollfd ready = { .fd = frames->in, .events = POLLIN };

    return frames->got_to > frames->got_from || poll(&ready, 1, 0) > 0;
}
