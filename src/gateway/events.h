#pragma once

/* Descriptors and what to do when they are ready, for thousands of them. */

#include <stdint.h>
#include <sys/epoll.h>

struct event_source {
    int fd; /* -1: none */
    uint32_t events;
    void (*ready)(struct event_source *source, uint32_t events);
};

/* Of whoever has something to do that nothing new will come for. */
#define EVENTS_SOON (EPOLLIN | EPOLLOUT)

/* The descriptor of epoll; -1 and errno on failure. */
int events_open(void);

/* Asks for events for the first time, or for others.  Of one that asks for none nothing at all is told, also no
 * hang-up.  -1 and errno on failure. */
int events_add(int loop, struct event_source *source, uint32_t events);
int events_change(int loop, struct event_source *source, uint32_t events);

/* Closes its descriptor.  What was already heard of it in this turn is not told: whoever owns the source must
 * keep its memory until the turn is over. */
void events_close(struct event_source *source);

/* One wait of at most so long, and the calls that follow from it; -1 and errno on failure. */
int events_turn(int loop, int timeout_ms);
