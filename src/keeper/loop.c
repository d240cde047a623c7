#include "keeper/loop.h"

#include "base/array.h"
#include "base/error.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

void loop_add(struct loop *loop, struct loop_source *source)
{
    *array_add(loop) = source; /* NOLINT(bugprone-sizeof-expression): it is a list of pointers */
}

void loop_remove(struct loop *loop, const struct loop_source *source)
{
    for (size_t i = 0; i < loop->len; i++)
        if (loop->items[i] == source)
            loop->items[i] = NULL;
}

void loop_free(struct loop *loop)
{
    free(loop->items);
    free(loop->polled);
    free(loop->asked);
    *loop = (struct loop){ 0 };
}

static void drop_removed(struct loop *loop)
{
    size_t kept = 0;

    for (size_t i = 0; i < loop->len; i++)
        if (loop->items[i])
            loop->items[kept++] = loop->items[i];
    loop->len = kept;
}

/* What is added while we tell is polled in the next turn.  Who rests is not polled: the kernel takes no more
 * entries than a process may have descriptors. */
static size_t prepare(struct loop *loop)
{
    size_t count = 0;

    drop_removed(loop);
    if (loop->room < loop->len) {
        loop->room = loop->cap;
        loop->polled = memory_resize(loop->polled, loop->room * sizeof *loop->polled);
        loop->asked = memory_resize(loop->asked, loop->room * sizeof *loop->asked);
    }
    for (size_t i = 0; i < loop->len; i++)
        if (loop->items[i]->fd >= 0) {
            loop->polled[count] = (struct pollfd){ loop->items[i]->fd, loop->items[i]->events, 0 };
            loop->asked[count++] = i;
        }
    return count;
}

int loop_turn(struct loop *loop, int timeout_ms, struct error *err)
{
    size_t count = prepare(loop);
    int ready;

    do
        ready = poll(loop->polled, count, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return error_sys(err, "wait for the sandbox");

    for (size_t i = 0, told = 0; i < count && told < (size_t)ready; i++) {
        const struct pollfd *polled = &loop->polled[i];
        struct loop_source *source = loop->items[loop->asked[i]];

        if (polled->revents == 0)
            continue;
        told++;
        /* An earlier callback of this turn may have closed or replaced the descriptor. */
        if (source && source->fd == polled->fd)
            source->ready(source->owner, polled->revents);
    }
    return ready;
}
