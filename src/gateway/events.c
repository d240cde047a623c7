#include "gateway/events.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { AT_A_TIME = 256 };

int events_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

static int control(int loop, int what, struct event_source *source, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };

    source->events = events;
    return epoll_ctl(loop, what, source->fd, &event);
}

int events_add(int loop, struct event_source *source, uint32_t events)
{
    return control(loop, EPOLL_CTL_ADD, source, events);
}

int events_change(int loop, struct event_source *source, uint32_t events)
{
    if (source->fd < 0 || source->events == events)
        return 0;
    return control(loop,
                   events == 0           ? EPOLL_CTL_DEL
                   : source->events == 0 ? EPOLL_CTL_ADD
                                         : EPOLL_CTL_MOD,
                   source, events);
}

void events_close(struct event_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

int events_turn(int loop, int timeout_ms)
{
    struct epoll_event told[AT_A_TIME];
    int count = epoll_wait(loop, told, AT_A_TIME, timeout_ms);

    if (count < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < count; i++) {
        struct event_source *source = told[i].data.ptr;

        if (source->fd >= 0)
            source->ready(source, told[i].events);
    }
    return count;
}
