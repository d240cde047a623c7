#pragma once

#include <stddef.h>

struct error;

/* One descriptor and what to do when it is ready.  It belongs to its owner, who may change `fd`
 * (-1: rest) and `events` (poll(2)) at any time, also from within `ready`.  With `events` 0 only
 * hang-ups and errors are told. */
struct loop_source {
    int fd;
    short events;
    void (*ready)(void *owner, short revents);
    void *owner;
};

/* poll(2): it takes ordinary files, which epoll refuses, and costs one call per turn and none to set up.  An
 * empty one is all zero. */
struct loop {
    struct loop_source **items; /* NULL: removed */
    size_t len, cap;
    struct pollfd *polled;
    size_t *asked; /* the item of each of `polled` */
    size_t room;
};

/* Sources are told in the order in which they were added. */
void loop_add(struct loop *loop, struct loop_source *source);

/* It is not told any more, also not in the turn that is under way.  One that was never added is no error. */
void loop_remove(struct loop *loop, const struct loop_source *source);

/* One wait of at most `timeout_ms` (-1: without end) and the calls that follow from it.  Gives the
 * number of descriptors that were ready, 0 when the time was over. */
int loop_turn(struct loop *loop, int timeout_ms, struct error *err);

void loop_free(struct loop *loop);
#define autoloop __attribute__((cleanup(loop_free)))
