#include "gateway/events.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { AT_A_TIME = 256 };

static struct event_source *soon;

int events_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

static int control(int loop, int what, struct event_source *source, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };

    if (epoll_ctl(loop, what, source->fd, &event) < 0)
        return -1;
    source->armed = events;
    return 0;
}

int events_add(int loop, struct event_source *source, uint32_t events)
{
    source->events = events;
    return control(loop, EPOLL_CTL_ADD, source, events);
}

int events_change(int loop, struct event_source *source, uint32_t events)
{
    if (source->fd < 0)
        return 0;
    source->events = events;
    if ((events & ~source->armed) == 0)
        return 0;
    return control(loop, source->armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, source, events);
}

/* Whether somebody waits for one of these.  If not, the kernel does not tell of it again. */
static bool is_wanted(int loop, struct event_source *source, uint32_t told)
{
    if (source->events && told & (source->events | EPOLLERR | EPOLLHUP))
        return true;
    if (source->armed != source->events)
        (void)control(loop, source->events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, source, source->events);
    return false;
}

/* Into the list that begins at `from`. */
static void link_before(struct event_source *source, struct event_source **from)
{
    source->next = *from;
    source->from = from;
    if (*from)
        (*from)->from = &source->next;
    *from = source;
}

static void unlink_source(struct event_source *source)
{
    if (!source->from)
        return;
    *source->from = source->next;
    if (source->next)
        source->next->from = source->from;
    source->from = NULL;
}

void events_soon(struct event_source *source)
{
    if (!source->from)
        link_before(source, &soon);
}

/* Those that come to it meanwhile wait for the next turn, lest others never have theirs. */
static void call_those_of_soon(void)
{
    struct event_source *now = soon;

    if (now)
        now->from = &now;
    soon = NULL;
    while (now) {
        struct event_source *source = now;

        unlink_source(source);
        source->ready(source, 0);
    }
}

void events_close(struct event_source *source)
{
    unlink_source(source);
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    source->events = source->armed = 0;
}

int events_turn(int loop, int timeout_ms)
{
    struct epoll_event told[AT_A_TIME];
    int count = epoll_wait(loop, told, AT_A_TIME, soon ? 0 : timeout_ms);

    if (count < 0)
        return errno == EINTR ? 0 : -1;
    for (int i = 0; i < count; i++) {
        struct event_source *source = told[i].data.ptr;

        if (source->fd >= 0 && is_wanted(loop, source, told[i].events))
            source->ready(source, told[i].events);
    }
    call_those_of_soon();
    return count;
}
