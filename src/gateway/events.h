#pragma once

/* Descriptors and what to do when they are ready, for thousands of them. */

#include <stdint.h>
#include <sys/epoll.h>

struct event_source {
    int fd;          /* -1: none */
    uint32_t events; /* that are asked for */
    void (*ready)(struct event_source *source, uint32_t events);
    struct event_source *next, **from; /* of those that are ready soon; from is NULL: it is not */
    uint32_t armed;                    /* what the kernel was told to look for: these, and perhaps more */
};

/* The descriptor of epoll; -1 and errno on failure. */
int events_open(void);

/* Asks for events for the first time, or for others.  Of one that asks for none nothing at all is told, also no
 * hang-up.  -1 and errno on failure.
 *
 * The kernel hears at once of what is wanted besides, and of what is not wanted any more only if that happens:
 * most sources want it again before. */
int events_add(int loop, struct event_source *source, uint32_t events);
int events_change(int loop, struct event_source *source, uint32_t events);

/* For whoever has something to do that no descriptor tells of: in the next turn, or at the end of this one. */
void events_soon(struct event_source *source);

/* Closes its descriptor.  What was already heard of it in this turn is not told: whoever owns the source must
 * keep its memory until the turn is over. */
void events_close(struct event_source *source);

/* One wait of at most so long, and the calls that follow from it; -1 and errno on failure. */
int events_turn(int loop, int timeout_ms);
