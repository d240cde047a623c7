#pragma once

/* Frames over a pair of descriptors, at either end.  What is sent waits in a buffer until that is full or
 * something is to be received. */

#include "inside/protocol.h"

#include <stdbool.h>
#include <stddef.h>

struct frames {
    int in, out;
    uint64_t patience_ms; /* so long may the other end do nothing; 0: for ever.  Only for non-blocking ones */

    /* Asked whenever bytes pass, and while we wait several times a second; false ends it with EINTR.  May be
     * NULL. */
    bool (*go_on)(void *owner);
    void *owner;

    unsigned char *got, *put; /* FRAMES_ROOM bytes each */
    size_t got_from, got_to, put_len;
};

enum { FRAMES_ROOM = 2 * (FRAME_MAX + 64) };

/* One that was received: `bytes` is valid until the next is. */
struct frame {
    uint32_t kind, id;
    size_t length;
    const unsigned char *bytes;
};

enum { FRAMES_ENDED = 0, FRAMES_GOT = 1 };

/* FRAMES_GOT; FRAMES_ENDED if the other end is gone between two frames; -1 and errno: EBADMSG for a frame that
 * is too long or cut off, ETIMEDOUT, EINTR.  Sends first what waits. */
int frames_receive(struct frames *frames, struct frame *out);

/* -1 and errno.  A frame of two parts; the second may be empty. */
int frames_send(struct frames *frames, uint32_t kind, uint32_t id, const void *head, size_t head_len,
                const void *bytes, size_t len);
int frames_flush(struct frames *frames);

/* Room for the content of a frame DATA, which frames_put_data() then sends: one copy less. */
unsigned char *frames_room(struct frames *frames);
int frames_put_data(struct frames *frames, uint32_t id, size_t len);

/* Whether something to receive is there already, or the other end is gone. */
bool frames_has_word(const struct frames *frames);
