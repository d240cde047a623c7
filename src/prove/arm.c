#include "prove/arm.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "box/box.h"
#include "box/plan.h"
#include "keeper/room.h"
#include "prove/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, SAID_MAX = 64 << 10 };

/* From whoever keeps the prober: that it runs, and later, if so, that something went wrong. */
struct news {
    pid_t prober, init;
    struct error error; /* kind ERROR_NONE: it runs */
};

struct pipes {
    int in[2], out[2], news[2];
};

/* If it died before this was said, nobody tells us. */
static void die_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
}

/* --- in a sandbox: a child of ours keeps it --------------------------------------------------- */

static int tell_started(void *owner, const struct box *box, struct error *err)
{
    const int *fd = owner;
    struct news news = { .prober = view_child(box->pid), .init = box->pid };

    if (news.prober <= 0)
        return error_set(err, ERROR_SYSTEM, "the prober is not among the children of PID 1");
    return write(*fd, &news, sizeof news) < 0 ? error_sys(err, "tell that the prober runs") : 0;
}

static _Noreturn void keep(const struct arm *arm, pid_t parent, const struct host *host, struct plan *plan,
                           struct pipes *pipes)
{
    struct room room = { .in = pipes->in[0],
                         .out = pipes->out[1],
                         .err = -1,
                         .timeout_ms = PATIENCE_MS,
                         .started = tell_started,
                         .owner = &pipes->news[1] };
    struct news news = { 0 };
    struct result result;

    die_with(parent);
    close(pipes->in[1]);
    canaries_take_along(&arm->canaries);
    if (room_run(host, plan, &room, &result, &news.error) == 0)
        news.error = result.error;
    if (news.error.kind != ERROR_NONE)
        (void)!write(pipes->news[1], &news, sizeof news);
    _exit(0);
}

/* --- on the host ------------------------------------------------------------------------------ */

static _Noreturn void be_prober(const struct arm *arm, pid_t parent, int prober, const struct strings *words,
                                const struct pipes *pipes)
{
    sigset_t none;

    die_with(parent);
    canaries_take_along(&arm->canaries);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (fchdir(arm->canaries.dir) == 0 && dup2(pipes->in[0], STDIN_FILENO) >= 0 &&
        dup2(pipes->out[1], STDOUT_FILENO) >= 0)
        fexecve(prober, words->items, environ);
    _exit(127);
}

/* --- both ------------------------------------------------------------------------------------- */

static int make_pipes(struct pipes *pipes, struct error *err)
{
    *pipes = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 } };
    if (pipe2(pipes->in, O_CLOEXEC) < 0 || pipe2(pipes->out, O_CLOEXEC) < 0 ||
        pipe2(pipes->news, O_CLOEXEC) < 0)
        return error_sys(err, "make pipes for the prober");
    return 0;
}

static void take_ends(struct arm *arm, const struct pipes *pipes)
{
    close(pipes->in[0]);
    close(pipes->out[1]);
    close(pipes->news[1]);
    arm->go = pipes->in[1];
    arm->output = pipes->out[0];
    arm->news = pipes->news[0];
}

/* Reads once; 0 at the end, -1 with ETIMEDOUT if nothing comes. */
static ssize_t read_soon(int fd, void *to, size_t size, uint64_t until)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };

    for (;;) {
        uint64_t now = clock_us();
        int got = poll(&ready, 1, now < until ? (int)((until - now) / 1000) : 0);

        if (got > 0)
            return read(fd, to, size);
        if (got == 0)
            errno = ETIMEDOUT;
        if (got == 0 || errno != EINTR)
            return -1;
    }
}

/* Its last line, or its end; what it did not say it did not try. */
static int listen_to(struct arm *arm, uint64_t until, struct error *err)
{
    char part[4096];
    ssize_t len;

    while (!text_ends(text_string(&arm->said), "\ndone 0 \n") && arm->said.len < SAID_MAX) {
        len = read_soon(arm->output, part, sizeof part, until);
        if (len < 0)
            return error_sys(err, "wait for the prober");
        if (len == 0)
            return 0;
        text_add_bytes(&arm->said, part, (size_t)len);
    }
    return 0;
}

static int try_all(struct arm *arm, struct error *err)
{
    uint64_t until = clock_us() + PATIENCE_MS * 1000ULL;

    view_descriptors(arm->prober, &arm->fds);
    if (write(arm->go, "g", 1) < 0)
        return error_sys(err, "start the prober");
    return listen_to(arm, until, err);
}

static int hear(struct arm *arm, struct error *err)
{
    struct news news;
    ssize_t len = read_soon(arm->news, &news, sizeof news, clock_us() + PATIENCE_MS * 1000ULL);

    if (len < 0)
        return error_sys(err, "wait for the sandbox");
    if (len != (ssize_t)sizeof news)
        return error_set(err, ERROR_SYSTEM, "the keeper of the sandbox died");
    if (news.error.kind != ERROR_NONE) {
        *err = news.error;
        return -1;
    }
    arm->prober = news.prober;
    arm->init = news.init;
    return 0;
}

int arm_inside(struct arm *arm, const struct host *host, struct plan *plan, struct error *err)
{
    struct pipes pipes;
    pid_t self = getpid();

    if (make_pipes(&pipes, err) < 0)
        return -1;
    arm->process = fork();
    if (arm->process == 0)
        keep(arm, self, host, plan, &pipes);
    take_ends(arm, &pipes);
    if (arm->process < 0)
        return error_sys(err, "fork for a sandbox");
    return hear(arm, err) < 0 ? -1 : try_all(arm, err);
}

/* Its end of this pipe is closed by the exec; before that its descriptors are ours. */
static void await_exec(const struct arm *arm)
{
    struct news none;

    (void)read_soon(arm->news, &none, sizeof none, clock_us() + PATIENCE_MS * 1000ULL);
}

int arm_outside(struct arm *arm, int prober, const struct strings *words, struct error *err)
{
    struct pipes pipes;
    pid_t self = getpid();

    if (make_pipes(&pipes, err) < 0)
        return -1;
    arm->process = fork();
    if (arm->process == 0)
        be_prober(arm, self, prober, words, &pipes);
    take_ends(arm, &pipes);
    if (arm->process < 0)
        return error_sys(err, "fork for the prober");
    arm->prober = arm->process;
    arm->init = arm->canaries.stand_in.pid;
    await_exec(arm);
    return try_all(arm, err);
}

static void close_end(int *fd)
{
    int held = steal_fd(fd);

    if (held >= 0)
        close(held);
}

int arm_end(struct arm *arm, struct error *err)
{
    struct news news;

    close_end(&arm->go);

    ssize_t len = read_soon(arm->news, &news, sizeof news, clock_us() + PATIENCE_MS * 1000ULL);

    if (len == 0) {
        while (waitpid(arm->process, NULL, 0) < 0 && errno == EINTR)
            continue;
        arm->process = -1;
        return 0;
    }
    if (len != (ssize_t)sizeof news)
        return error_set(err, ERROR_SYSTEM, "the prober does not end");
    *err = news.error;
    return -1;
}

void arm_free(struct arm *arm)
{
    close_end(&arm->go);
    close_end(&arm->output);
    close_end(&arm->news);
    if (arm->process > 0) {
        kill(arm->process, SIGKILL);
        while (waitpid(arm->process, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    strings_free(&arm->fds);
    text_free(&arm->said);
    canaries_free(&arm->canaries);
    *arm = ARM_NONE;
}
