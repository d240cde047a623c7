#include "keeper/start.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "init/wire.h"
#include "keeper/keeper.h"
#include "keeper/terminal.h"
#include "keeper/words.h"
#include "limits/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { WORDS, STDIN, STDOUT, STDERR, SENT_MAX };

void start_drop(struct start_order *order)
{
    for (size_t i = 0; i < ARRAY_LEN(order->fds); i++)
        own_close(&order->fds[i]);
    *order = START_ORDER_NONE;
}

/* Our end does not block; theirs does, as programs expect.  The two ends of a pipe are two open
 * file descriptions, so this is not seen inside. */
static int make_pipe(int *ours, int *theirs, bool we_write, const struct keeper_run *run, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    *ours = ends[we_write];
    *theirs = ends[!we_write];
    if (fcntl(*ours, F_SETFL, O_NONBLOCK) < 0)
        return error_sys(err, "set up a pipe");
    if (run->pipe_owner != geteuid() && fchown(*ours, run->pipe_owner, (gid_t)-1) < 0)
        return error_sys(err, "give a pipe to the user inside");
    return 0;
}

static int make_pipes(struct start_pipes *ours, int *theirs, const struct keeper_run *run, struct error *err)
{
    if (make_pipe(&ours->in, &theirs[STDIN], true, run, err) < 0 ||
        make_pipe(&ours->out, &theirs[STDOUT], false, run, err) < 0 ||
        make_pipe(&ours->err, &theirs[STDERR], false, run, err) < 0)
        return -1;
    return 0;
}

static void say_size(const struct keeper_run *run, struct message *message)
{
    struct winsize size = terminal_size(run->out);

    if (size.ws_row == 0)
        size = terminal_size(run->in);
    message->rows = size.ws_row;
    message->columns = size.ws_col;
    message->width = size.ws_xpixel;
    message->height = size.ws_ypixel;
}

static void fill(struct message *message, const struct keeper_run *run, const uint32_t counts[2])
{
    memset(message, 0, sizeof *message);
    message->kind = MESSAGE_START;
    message->flags = run->flags | (run->tty ? START_TTY : 0);
    message->uid = run->uid;
    message->gid = run->gid;
    message->processes = run->processes;
    if (run->limits) {
        message->open_files = run->limits->items[LIMIT_OPEN_FILES].max;
        message->file_size = run->limits->items[LIMIT_FILE_SIZE].max;
    }
    message->arguments = counts[0];
    message->variables = counts[1];
    if (run->tty)
        say_size(run, message);
}

/* Another descriptor of the same memfd: ours is closed with the order, the caller's remains. */
static int add_program(const struct keeper_run *run, struct start_order *out, struct error *err)
{
    if (run->program <=
        STDERR_FILENO) /* nobody's program is a standard descriptor; 0 is one that was not set */
        return 0;
    out->fds[out->count] = fcntl(run->program, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (out->fds[out->count] < 0)
        return error_sys(err, "hand a program in");
    out->count++;
    out->message.flags |= START_PROGRAM;
    return 0;
}

int start_prepare(const struct keeper_run *run, struct start_order *out, struct start_pipes *out_pipes,
                  struct error *err)
{
    uint32_t counts[2];

    *out = START_ORDER_NONE;
    *out_pipes = (struct start_pipes){ -1, -1, -1 };
    out->fds[WORDS] = words_write(run->cwd, run->argv, run->envp, counts, err);
    if (out->fds[WORDS] < 0)
        return -1;
    fill(&out->message, run, counts);
    out->count = run->tty ? 1 : STDERR + 1;
    if (!run->tty && make_pipes(out_pipes, out->fds, run, err) < 0)
        return -1;
    return add_program(run, out, err);
}

int start_send(int init_fd, struct start_order *order, struct error *err)
{
    int sent = wire_send(init_fd, &order->message, order->fds, order->count);

    if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
        return error_sys(err, "ask the sandbox to start the command");
    start_drop(order);
    return 0;
}
