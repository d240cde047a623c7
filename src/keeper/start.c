#include "keeper/start.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "init/wire.h"
#include "keeper/keeper.h"
#include "keeper/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

enum { WORDS, STDIN, STDOUT, STDERR, SENT_MAX };

static void close_all(int (*fds)[SENT_MAX])
{
    for (size_t i = 0; i < ARRAY_LEN(*fds); i++)
        own_close(&(*fds)[i]);
}

static uint32_t add_words(struct text *text, const char *const *words)
{
    uint32_t count = 0;

    for (; words && words[count]; count++)
        text_add_bytes(text, words[count], strlen(words[count]) + 1);
    return count;
}

/* The offset stays 0, so that PID 1 may read or map it. */
static int write_words(const struct text *text, struct error *err)
{
    autoclose int fd = memfd_create("words", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
        fd = memfd_create("words", MFD_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "make a memfd for the arguments");
    for (size_t done = 0; done < text->len;) {
        ssize_t put = pwrite(fd, text->data + done, text->len - done, (off_t)done);

        if (put < 0 && errno != EINTR)
            return error_sys(err, "write the arguments");
        done += put > 0 ? (size_t)put : 0;
    }
    return steal_fd(&fd);
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

static void fill(struct message *message, const struct keeper_run *run, struct text *words)
{
    memset(message, 0, sizeof *message);
    message->kind = MESSAGE_START;
    message->flags = run->flags | START_LAST | (run->tty ? START_TTY : 0);
    message->uid = run->uid;
    message->gid = run->gid;
    text_add_bytes(words, run->cwd, strlen(run->cwd) + 1);
    message->arguments = add_words(words, run->argv);
    message->variables = add_words(words, run->envp);
    if (run->tty)
        say_size(run, message);
}

int start_send(int init_fd, const struct keeper_run *run, struct start_pipes *out_pipes, struct error *err)
{
    __attribute__((cleanup(close_all))) int sent[SENT_MAX] = { -1, -1, -1, -1 };
    autotext struct text words = TEXT_NONE;
    struct message message;

    *out_pipes = (struct start_pipes){ -1, -1, -1 };
    fill(&message, run, &words);
    sent[WORDS] = write_words(&words, err);
    if (sent[WORDS] < 0)
        return -1;
    if (!run->tty && make_pipes(out_pipes, sent, run, err) < 0)
        return -1;
    if (wire_send(init_fd, &message, sent, run->tty ? 1 : SENT_MAX) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        return error_sys(err, "ask the sandbox to start the command");
    return 0;
}
