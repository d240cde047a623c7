#include "keeper/loop.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>

void loop_add(struct loop *loop, struct loop_source *source)
{
    assert(loop->len < LOOP_MAX);
    loop->sources[loop->len++] = source;
}

int loop_turn(struct loop *loop, int timeout_ms, struct error *err)
{
    struct pollfd polled[LOOP_MAX];
    int ready;

    for (size_t i = 0; i < loop->len; i++)
        polled[i] = (struct pollfd){ loop->sources[i]->fd, loop->sources[i]->events, 0 };
    do
        ready = poll(polled, loop->len, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return error_sys(err, "wait for the sandbox");

    int happened = ready;

    for (size_t i = 0, told = 0; i < loop->len && told < (size_t)ready; i++) {
        struct loop_source *source = loop->sources[i];

        if (polled[i].revents == 0)
            continue;
        told++;
        /* An earlier callback of this turn may have closed or replaced the descriptor. */
        if (source->fd == polled[i].fd)
            source->ready(source->owner, polled[i].revents);
    }
    return happened;
}
