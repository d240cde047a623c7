#include "keeper/rest.h"

#include "base/error.h"
#include "base/own.h"
#include "box/box.h"
#include "init/wire.h"
#include "limits/freezer.h"
#include "limits/processes.h"

#include <errno.h>
#include <poll.h>

enum {
    STOP_MS = 5,        /* that PID 1 waits for them: who has not stopped by then is looked at more closely */
    STOP_MORE_MS = 500, /* who sleeps in the kernel that long, on a disk for example, is waited for no longer */
    PATIENCE_MS = 30000 /* PID 1 is not among the stopped, and must answer */
};

static int await(const struct rest *rest, short events, struct error *err)
{
    struct pollfd polled = { .fd = rest->box->init_fd, .events = events };
    int ready;

    while ((ready = poll(&polled, 1, PATIENCE_MS)) < 0 && errno == EINTR)
        continue;
    if (ready > 0)
        return 0;
    return ready < 0 ? error_sys(err, "wait for PID 1") : error_set(err, ERROR_SYSTEM, "PID 1 says nothing");
}

static int tell(const struct rest *rest, const struct message *message, struct error *err)
{
    while (wire_send(rest->box->init_fd, message, NULL, 0) < 0)
        if (errno != EAGAIN || await(rest, POLLOUT, err) < 0)
            return error_sys(err, "tell PID 1 about a pause");
    return 0;
}

static int hand_on(const struct rest *rest, const struct message *message, int *fds, size_t count,
                   struct error *err)
{
    bool known = rest->other(rest->owner, message, fds, count);

    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
    return known ? 0 : error_set(err, ERROR_REFUSED, "the sandbox sent a message out of place");
}

/* 1: it is not PAUSED. */
static int hear(const struct rest *rest, struct message *message, struct error *err)
{
    int fds[PROTOCOL_FDS_MAX], got;
    size_t count = 0;

    if (await(rest, POLLIN, err) < 0)
        return -1;
    *message = (struct message){ 0 };
    got = wire_receive(rest->box->init_fd, message, fds, &count, err);
    if (got == WIRE_CLOSED)
        return error_set(err, ERROR_SYSTEM, "PID 1 is gone");
    if (got != WIRE_MESSAGE)
        return got < 0 ? -1 : 1;
    if (message->kind == MESSAGE_PAUSED && !count)
        return 0;
    return hand_on(rest, message, fds, count, err) < 0 ? -1 : 1;
}

static bool become_still(const struct rest *rest)
{
    for (int i = 0; processes_can_be_seen() && i < STOP_MORE_MS; i++) {
        if (processes_are_still(rest->box->pid))
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

static int stop_by_signals(const struct rest *rest, struct error *err)
{
    struct message message = { .kind = MESSAGE_PAUSE, .patience_ms = STOP_MS };
    int heard = tell(rest, &message, err);

    if (heard == 0)
        while ((heard = hear(rest, &message, err)) > 0)
            continue;
    if (heard < 0)
        return -1;
    if (message.status == 0 || become_still(rest))
        return 0;
    if (rest_end(rest, err) < 0)
        return -1;
    error_set(err, ERROR_REFUSED, "a process could not be stopped");
    return 1;
}

int rest_begin(struct rest *rest, struct error *err)
{
    rest->by_group = freezer_set(&rest->box->freezer, true);
    return rest->by_group ? 0 : stop_by_signals(rest, err);
}

int rest_end(const struct rest *rest, struct error *err)
{
    struct message message = { .kind = MESSAGE_RESUME };

    if (!rest->by_group)
        return tell(rest, &message, err);
    if (!freezer_set(&rest->box->freezer, false))
        return error_set(err, ERROR_SYSTEM, "the sandbox's group cannot be let go on");
    return 0;
}
