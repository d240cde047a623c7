#include "keeper/front.h"

#include "base/error.h"
#include "base/own.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

void front_open(struct front *front, struct loop *loop, const struct front_plan *plan)
{
    *front = FRONT_NONE;
    front->plan = *plan;
    front->loop = loop;
}

/* --- without a pty --- */

static size_t plain_change(void *owner, const unsigned char *from, size_t len, unsigned char *to)
{
    return termfilter_run(owner, from, len, to);
}

/* Also without a pty what is written may end on the owner's terminal. */
static void open_output(struct front *front, struct relay *relay, struct termfilter *filter,
                        struct relay_plan plan)
{
    bool screen = isatty(plan.host) && !front->plan.raw_terminal;

    if (screen)
        termfilter_start(filter, terminal_is_utf8(plan.host));
    plan.way = RELAY_OUT;
    plan.budget = front->plan.budget;
    plan.change = screen ? plain_change : NULL;
    plan.change_owner = filter;
    relay_open(relay, front->loop, &plan);
}

void front_pipes(struct front *front, int in, int out, int err, bool held)
{
    const struct front_plan *plan = &front->plan;

    relay_open(&front->in, front->loop,
               &(struct relay_plan){ .way = RELAY_IN, .host = plan->in, .inside = in });
    open_output(front, &front->out, &front->filter,
                (struct relay_plan){ .host = plan->out, .inside = out, .held = held });
    open_output(front, &front->err, &front->filter_err,
                (struct relay_plan){ .host = plan->err, .inside = err, .held = held });
}

/* --- with a pty --- */

bool front_is_master(int fd)
{
    int number;

    return ioctl(fd, TIOCGPTN, &number) == 0 && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0;
}

static size_t filter_change(void *owner, const unsigned char *from, size_t len, unsigned char *to)
{
    struct front *front = owner;
    unsigned asked = front->filter.asked;
    size_t changed = termfilter_run(&front->filter, from, len, to);

    if (front->filter.asked != asked) {
        front->asked = true;
        front->asked_at = front->in.bytes;
    }
    return changed;
}

int front_draw(struct front *front, int master, int from, struct error *err)
{
    const struct front_plan *plan = &front->plan;

    front->master = master;
    if (isatty(plan->in) && terminal_raw(&front->terminal, plan->in, err) < 0) {
        own_close(&from);
        return -1;
    }
    /* The size may have changed since the command was asked for. */
    front_resized(front);
    termfilter_start(&front->filter, terminal_is_utf8(plan->out));
    relay_open(&front->in, front->loop,
               &(struct relay_plan){ .way = RELAY_IN, .host = plan->in, .inside = master, .keep = true });
    relay_open(&front->out, front->loop,
               &(struct relay_plan){ .way = RELAY_OUT,
                                     .host = plan->out,
                                     .inside = from >= 0 ? from : master,
                                     .keep = from < 0,
                                     .budget = plan->budget,
                                     .change = plan->raw_terminal ? NULL : filter_change,
                                     .change_owner = front });
    return 0;
}

void front_resized(struct front *front)
{
    if (front->master >= 0)
        terminal_copy_size(isatty(front->plan.out) ? front->plan.out : front->plan.in, front->master);
}

void front_pause(struct front *front)
{
    terminal_pause(&front->terminal);
}

void front_resume(struct front *front)
{
    relay_wake(&front->in);
    if (!front->plan.tty)
        return;
    terminal_resume(&front->terminal);
    front_resized(front);
}

/* --- the end --- */

void front_wake(struct front *front)
{
    relay_wake(&front->out);
    relay_wake(&front->err);
}

/* Nobody hears of a command that nobody guarded. */
static void drop_held(struct relay *output)
{
    if (output->resting)
        relay_close(output);
}

void front_end_input(struct front *front)
{
    relay_close(&front->in);
    drop_held(&front->out);
    drop_held(&front->err);
}

/* Pipe and terminal say when they are at their end.  When nobody is left to write, that is soon; if
 * it does not come (a descriptor may be on its way through a socket that the kernel still has to
 * collect), what gives nothing for a while is at its end too. */
static bool output_over(struct relay *relay, bool drained)
{
    if (relay->spent || (drained && !relay->ended && relay->source.fd >= 0))
        relay_close(relay);
    return relay->ended;
}

bool front_is_over(struct front *front, bool drained)
{
    bool out = output_over(&front->out, drained), err = output_over(&front->err, drained);

    return out && err;
}

/* Without the filter's last word a program could leave the terminal so that it types by itself. */
static void say_last_word(struct front *front, struct termfilter *filter, int host)
{
    unsigned char last[TERMFILTER_END_MAX];
    struct pollfd writable = { host, POLLOUT, 0 };

    if (front->plan.raw_terminal || !isatty(host))
        return;
    front->midline = front->midline || filter->midline;

    size_t len = termfilter_end(filter, last);

    if (len > 0 && poll(&writable, 1, 100) > 0)
        (void)!write(host, last, len);
}

static void leave_terminal(struct front *front)
{
    if (!front->plan.tty) {
        say_last_word(front, &front->filter, front->plan.out);
        say_last_word(front, &front->filter_err, front->plan.err);
        return;
    }
    if (front->master < 0)
        return;
    say_last_word(front, &front->filter, front->plan.out);
    if (front->asked && front->asked_at == front->in.bytes)
        terminal_discard_answers(&front->terminal);
    terminal_restore(&front->terminal);
    close(steal_fd(&front->master));
}

void front_close(struct front *front)
{
    relay_close(&front->in);
    relay_close(&front->out);
    relay_close(&front->err);
    leave_terminal(front);
}
