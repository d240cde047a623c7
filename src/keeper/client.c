#include "keeper/client.h"

#include "base/error.h"
#include "base/own.h"
#include "init/wire.h"
#include "keeper/control.h"
#include "keeper/front.h"
#include "keeper/stop.h"
#include "keeper/words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct guest {
    const struct client *client;
    struct loop loop;
    struct loop_source keeper;
    struct front front;
    struct stop stop;
    struct result *result;
    uint64_t step;
    bool tty, started, ended;
};

static void end_failed(struct guest *guest, const struct error *error)
{
    if (guest->ended)
        return;
    guest->result->reason = RESULT_FAILED;
    guest->result->exit_code = EXIT_OUR_ERROR;
    guest->result->error = *error;
    guest->ended = true;
    guest->keeper.fd = -1;
    front_end_input(&guest->front);
}

/* --- what the keeper says --- */

static void set_nonblocking(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
}

static int take_started(struct guest *guest, const struct control *message, int *fds, size_t count,
                        struct error *err)
{
    const struct client *client = guest->client;
    bool tty = message->flags & CONTROL_TTY;

    guest->started = true;
    guest->step = message->step;
    /* Who works there has not noticed otherwise. */
    if (message->undone && client->err >= 0)
        dprintf(client->err, "cove: the files went back to before step %u\n", message->undone);
    if (client->detach) {
        guest->ended = true;
        return 0;
    }
    if (count != (tty ? 2U : 3U))
        return error_set(err, ERROR_SYSTEM, "the keeper sent %zu descriptors", count);
    set_nonblocking(fds, count);
    guest->tty = tty;
    front_open(&guest->front, &guest->loop,
               &(struct front_plan){ .in = client->in, .out = client->out, .err = client->err, .tty = tty });
    stop_started(&guest->stop);
    if (tty)
        return front_draw(&guest->front, steal_fd(&fds[0]), steal_fd(&fds[1]), err);
    front_pipes(&guest->front, steal_fd(&fds[0]), steal_fd(&fds[1]), steal_fd(&fds[2]), false);
    return 0;
}

static void take_ended(struct guest *guest, const struct control *message)
{
    struct result *result = guest->result;

    result->reason = message->reason <= RESULT_FAILED ? (enum result_reason)message->reason : RESULT_FAILED;
    result->exit_code = message->exit_code & 0xff;
    result->signal = message->signal;
    result->wall_us = message->wall_us;
    result->usage = (struct usage){ .user_us = message->user_us,
                                    .system_us = message->system_us,
                                    .peak_kib = message->peak_kib };
    result->error = message->error;
    guest->ended = true;
    guest->keeper.fd = -1;
    front_end_input(&guest->front);
}

/* Also the answer to a signal that came too late. */
static void take_failed(struct guest *guest, const struct control *message)
{
    if (guest->started)
        return;
    end_failed(guest, &message->error);
    if (message->exit_code == EXIT_NOT_EXECUTABLE || message->exit_code == EXIT_NOT_FOUND) {
        guest->result->reason = RESULT_NOT_STARTED;
        guest->result->exit_code = message->exit_code;
    }
}

static void keeper_ready(void *owner, short revents)
{
    struct guest *guest = owner;
    int fds[PROTOCOL_FDS_MAX];
    struct control message;
    struct error err;
    size_t count = 0;
    int got = control_receive(guest->keeper.fd, &message, fds, &count, &err);

    (void)revents;
    if (got == WIRE_CLOSED)
        got = error_set(&err, ERROR_SYSTEM,
                        "the keeper of the sandbox is gone, and with it everything in the sandbox");
    if (got == WIRE_MESSAGE && message.kind == CONTROL_STARTED && !guest->started)
        got = take_started(guest, &message, fds, count, &err);
    else if (got == WIRE_MESSAGE && message.kind == CONTROL_ENDED && guest->started)
        take_ended(guest, &message);
    else if (got == WIRE_MESSAGE && message.kind == CONTROL_FAILED)
        take_failed(guest, &message);
    for (size_t i = 0; i < count; i++)
        own_close(&fds[i]);
    if (got < 0)
        end_failed(guest, &err);
}

/* --- what the user says --- */

static void stop_forward(void *owner, int number)
{
    struct guest *guest = owner;
    struct control message = CONTROL(CONTROL_SIGNAL);

    message.step = guest->step;
    message.signal = number;
    if (guest->keeper.fd >= 0)
        (void)control_send(guest->keeper.fd, &message, NULL, 0);
}

static void stop_kill(void *owner, int number)
{
    struct guest *guest = owner;
    struct error error;

    stop_forward(guest, SIGKILL);
    error_set(&error, ERROR_SYSTEM, "signal %d came, and the command was killed", number);
    end_failed(guest, &error);
    guest->result->reason = RESULT_INTERRUPTED;
    guest->result->exit_code = EXIT_SIGNALED + number;
    guest->result->signal = number;
}

static void stop_nothing(void *owner)
{
    (void)owner; /* the keeper has the time */
}

static void stop_resized(void *owner)
{
    front_resized(&((struct guest *)owner)->front);
}

static void stop_pause(void *owner)
{
    front_pause(&((struct guest *)owner)->front);
}

static void stop_resume(void *owner)
{
    struct guest *guest = owner;

    front_resume(&guest->front);
    if (guest->tty)
        stop_forward(guest, SIGWINCH); /* so that it draws its screen again */
}

static const struct stop_calls stop_calls = {
    .forward = stop_forward,
    .kill = stop_kill,
    .timed_out = stop_nothing,
    .resized = stop_resized,
    .pause = stop_pause,
    .resume = stop_resume,
};

/* --- the run --- */

static int ask_exec(const struct client *client, struct error *err)
{
    struct control request = CONTROL(CONTROL_EXEC);
    struct winsize size = terminal_size(client->out);
    uint32_t counts[2];
    autoclose int words = words_write(client->cwd ? client->cwd : "", client->argv, client->envp, counts, err);

    if (words < 0)
        return -1;
    if (client->user && strlen(client->user) >= sizeof request.user)
        return error_set(err, ERROR_INVALID, "user %.80s: there is no such user", client->user);
    snprintf(request.user, sizeof request.user, "%s", client->user ? client->user : "");
    request.flags = (client->tty ? CONTROL_TTY : 0U) | (client->detach ? CONTROL_DETACH : 0U) |
                    (client->input ? CONTROL_INPUT : 0U);
    request.arguments = counts[0];
    request.variables = counts[1];
    request.timeout_ms = client->timeout_ms;
    request.rows = size.ws_row;
    request.columns = size.ws_col;
    request.width = size.ws_xpixel;
    request.height = size.ws_ypixel;
    return control_send(client->keeper, &request, &words, 1) < 0 ? error_sys(err, "ask for a command") : 0;
}

static int ask(const struct client *client, struct error *err)
{
    struct control request = CONTROL(CONTROL_ATTACH);

    if (client->argv)
        return ask_exec(client, err);
    request.step = client->step;
    return control_send(client->keeper, &request, NULL, 0) < 0 ? error_sys(err, "ask for a command") : 0;
}

static int watch(struct guest *guest, struct error *err)
{
    while (!guest->ended || !front_is_over(&guest->front, false))
        if (loop_turn(&guest->loop, -1, err) < 0)
            return -1;
    return 0;
}

int client_run(const struct client *client, uint64_t *step, struct result *result, struct error *err)
{
    struct guest guest = { .client = client, .front = FRONT_NONE, .stop = STOP_NONE, .result = result };
    struct stop_plan plan = { .tty = client->tty };

    *result = (struct result){ 0 };
    guest.keeper = (struct loop_source){ client->keeper, POLLIN, keeper_ready, &guest };
    loop_add(&guest.loop, &guest.keeper);

    int done = stop_begin(&guest.stop, &guest.loop, &stop_calls, &guest, &plan, err);

    if (done == 0)
        done = ask(client, err);
    if (done == 0)
        done = watch(&guest, err);
    if (done < 0)
        end_failed(&guest, err);
    front_close(&guest.front);
    stop_end(&guest.stop);
    loop_free(&guest.loop);
    *step = guest.step;
    if (result->reason != RESULT_FAILED)
        return 0;
    *err = result->error;
    return -1;
}
