/* Who is connected to the keeper of a sandbox that stays: the door, and one connection after the other. Should:
 * let in the owner only; must not: let one keep another waiting, or take the last descriptor. */

#include "keeper/stay_inner.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "init/wire.h"
#include "keeper/stay.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DOOR_MS = 100 }; /* nobody is let in that long when there is no descriptor for them */

static void visitor_free(struct visitor *visitor)
{
    struct keeper *keeper = visitor->keeper;

    jobs_leave(&keeper->jobs, visitor->source.fd);
    keeper->visitors_len--;
    loop_remove(&keeper->loop, &visitor->source);
    close(visitor->source.fd);
    own_close(&visitor->held_fd);
    free(visitor->held);
    free(visitor);
}

static void visitor_close(struct visitor *visitor)
{
    struct visitor **at = &visitor->keeper->visitors;

    while (*at != visitor)
        at = &(*at)->next;
    *at = visitor->next;
    visitor_free(visitor);
}

void visitor_answer(const struct visitor *visitor, const struct control *message)
{
    /* Who cannot be answered must not wait: it sees the end of its connection, and we see it then. */
    if (control_send(visitor->source.fd, message, NULL, 0) < 0)
        (void)shutdown(visitor->source.fd, SHUT_RDWR);
}

static void visitor_refuse(const struct visitor *visitor, const struct error *error)
{
    struct control failed = CONTROL(CONTROL_FAILED);

    failed.exit_code = EXIT_OUR_ERROR;
    failed.error = *error;
    visitor_answer(visitor, &failed);
}

/* Until then nothing more is heard of it. */
static void hold(struct visitor *visitor, const struct control *request, int *fds, size_t count)
{
    visitor->held = memory_zero(sizeof *request);
    *visitor->held = *request;
    visitor->held_fd = count ? steal_fd(&fds[0]) : -1;
    visitor->held_turn = ++visitor->keeper->turns;
    visitor->source.events = 0;
}

static void visitor_serve(struct visitor *visitor, const struct control *request, int *fds, size_t count)
{
    struct error err;
    int served = request_serve(visitor, request, fds, count, &err);

    if (served > 0)
        hold(visitor, request, fds, count);
    if (served < 0)
        visitor_refuse(visitor, &err);
    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
}

/* Who was held first, but not after `last`. */
static struct visitor *next_held(const struct keeper *keeper, uint64_t last)
{
    struct visitor *first = NULL;

    for (struct visitor *visitor = keeper->visitors; visitor; visitor = visitor->next)
        if (visitor->held && visitor->held_turn <= last && (!first || visitor->held_turn < first->held_turn))
            first = visitor;
    return first;
}

/* Some may have to wait again. */
void visitors_release(struct keeper *keeper)
{
    uint64_t last = keeper->turns;

    for (struct visitor *visitor; (visitor = next_held(keeper, last));) {
        autofree struct control *request = steal_ptr(&visitor->held);
        int fd = steal_fd(&visitor->held_fd);

        visitor->source.events = POLLIN;
        visitor_serve(visitor, request, &fd, fd >= 0);
    }
}

static void visitor_ready(void *owner, short revents)
{
    struct visitor *visitor = owner;
    int fds[PROTOCOL_FDS_MAX];
    struct control request;
    struct error err;
    size_t count = 0;
    int got = visitor->held ? WIRE_CLOSED : control_receive(visitor->source.fd, &request, fds, &count, &err);

    (void)revents;
    if (got == WIRE_MESSAGE)
        visitor_serve(visitor, &request, fds, count);
    if (got == WIRE_NOTHING || got == WIRE_MESSAGE)
        return;
    if (got < 0)
        visitor_refuse(visitor, &err);
    visitor_close(visitor);
}

static void admit(struct keeper *keeper, int fd)
{
    struct visitor *visitor = memory_zero(sizeof *visitor);

    *visitor = (struct visitor){ .next = keeper->visitors,
                                 .keeper = keeper,
                                 .source = { fd, POLLIN, visitor_ready, visitor },
                                 .held_fd = -1 };
    keeper->visitors = visitor;
    keeper->visitors_len++;
    loop_add(&keeper->loop, &visitor->source);
}

static void door_ready(void *owner, short revents)
{
    struct keeper *keeper = owner;
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    autoclose int fd = accept4(keeper->door.fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct visitor stranger = { .source.fd = fd };
    struct error err;

    (void)revents;
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        keeper->door.events = 0; /* they would be announced again without pause */
        keeper->door_at = clock_us() + DOOR_MS * 1000ULL;
    }
    if (fd < 0)
        return;
    if (control_check_peer(fd, &err) < 0)
        visitor_refuse(&stranger, &err);
    else if (keeper->visitors_len >= keeper->visitors_max) {
        error_set(&err, ERROR_REFUSED, "%zu connections to this sandbox are open already",
                  keeper->visitors_len);
        visitor_refuse(&stranger, &err);
    } else {
        admit(keeper, steal_fd(&fd));
    }
}

int visitors_open(struct keeper *keeper, struct error *err)
{
    int fd = control_listen(keeper->stay->dir->fd, err);

    if (fd < 0)
        return -1;
    keeper->door = (struct loop_source){ fd, POLLIN, door_ready, keeper };
    loop_add(&keeper->loop, &keeper->door);
    return 0;
}

void visitors_reopen(struct keeper *keeper)
{
    if (!keeper->door_at || clock_us() < keeper->door_at)
        return;
    keeper->door_at = 0;
    keeper->door.events = POLLIN;
}

void visitors_shut(struct keeper *keeper)
{
    if (keeper->door.fd < 0)
        return;
    (void)unlinkat(keeper->stay->dir->fd, CONTROL_SOCKET, 0);
    close(steal_fd(&keeper->door.fd));
}

static void tell(const struct visitor *visitor, const struct error *failed)
{
    struct control done = CONTROL(CONTROL_DONE);

    if (failed)
        visitor_refuse(visitor, failed);
    else
        visitor_answer(visitor, &done);
}

void visitors_turned(struct keeper *keeper, const struct error *failed)
{
    for (struct visitor *visitor = keeper->visitors; visitor; visitor = visitor->next) {
        if (visitor->turns)
            tell(visitor, failed);
        visitor->turns = false;
    }
}

void visitors_copied(struct keeper *keeper, const struct error *failed)
{
    struct control done = CONTROL(CONTROL_DONE);

    if (!failed)
        snprintf(done.layer, sizeof done.layer, "%s", checkpoints_shown(&keeper->checkpoints));
    for (struct visitor *visitor = keeper->visitors; visitor; visitor = visitor->next) {
        if (visitor->copies && failed)
            visitor_refuse(visitor, failed);
        else if (visitor->copies)
            visitor_answer(visitor, &done);
        visitor->copies = false;
    }
}

void visitors_paused(struct keeper *keeper, const struct error *failed)
{
    for (struct visitor *visitor = keeper->visitors; visitor; visitor = visitor->next) {
        if (visitor->pauses)
            tell(visitor, failed);
        visitor->pauses = false;
    }
}

void visitors_dismiss(struct keeper *keeper)
{
    struct control done = CONTROL(CONTROL_DONE);

    for (struct visitor *visitor = keeper->visitors; visitor; visitor = visitor->next)
        if (visitor->stops)
            visitor_answer(visitor, &done);
    for (struct visitor *visitor = keeper->visitors, *next; visitor; visitor = next) {
        next = visitor->next;
        visitor_free(visitor);
    }
    keeper->visitors = NULL;
}
