#include "keeper/guard.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "keeper/apart.h"
#include "keeper/keep.h"
#include "keeper/trust.h"
#include "store/layers.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* Without a word the keeper is dead, and what it would have done is done here. */
static bool is_kept(int verdict, const struct sandbox_dir *dir, struct record *record)
{
    struct error ignored;
    char what;
    ssize_t got;

    while ((got = read(verdict, &what, 1)) < 0 && errno == EINTR)
        continue;
    if (got == 1)
        return what == GUARD_KEEP;
    return keep_end(dir->fd, record, NULL, &ignored) != 0;
}

/* Who is frozen in a group of v1 does not die with its keeper: when that has spoken, or is gone, they may. */
static void wait_for_death(int pidfd, const struct freezer *freezer, int verdict)
{
    struct pollfd dead[] = { { .fd = freezer->v1 ? verdict : -1, .events = POLLIN },
                             { .fd = pidfd, .events = POLLIN } };

    while (!dead[1].revents) {
        if (poll(dead, 2, -1) < 0)
            continue;
        if (dead[0].revents)
            (void)freezer_set(freezer, false);
        dead[0].fd = dead[0].revents ? -1 : dead[0].fd;
    }
}

struct sweeping {
    bool due;
    uint64_t took; /* in microseconds */
};

static void sweep(const struct sandbox_dir *dir, struct sweeping *sweeping)
{
    autostrings struct strings unfinished = STRINGS_NONE;
    uint64_t began = clock_spent_us();

    sweeping->due = store_may_sweep(dir->parent);
    if (!sweeping->due)
        return;
    store_sweep(dir, &unfinished);
    for (size_t i = 0; i < unfinished.len; i++)
        keep_finish(dir->parent, unfinished.items[i]);
    sweeping->took = clock_spent_us() - began;
}

/* Last of all: what was held by a sandbox that is gone goes with it. */
static void sweep_layers(int sandboxes, const struct sweeping *sweeping)
{
    autofree char *state = text_format("%s/..", sys_fd_path(sandboxes).text);
    uint64_t began = clock_spent_us();

    if (!sweeping->due)
        return;
    layers_sweep(state);
    store_swept(sandboxes, sweeping->took + clock_spent_us() - began);
}

static void release_layers(int sandboxes, const char *id)
{
    struct error ignored;
    autoclose int layers = layers_beside(sandboxes, &ignored);

    if (layers >= 0)
        (void)layers_release_all(layers, id, &ignored);
}

static _Noreturn void guard_main(const struct cgroup *cgroup, const struct freezer *freezer, int pidfd,
                                 int users, int verdict, struct sandbox_dir dir, struct record *record)
{
    enum { GROUP_PATIENCE_MS = 5000 };
    struct error ignored;
    int *fds[5] = { &pidfd, &dir.parent, &dir.fd }, count = 3;

    if (users >= 0)
        fds[count++] = &users;
    if (verdict >= 0)
        fds[count++] = &verdict;
    apart("cove-guard", fds, count);

    wait_for_death(pidfd, freezer, verdict);
    (void)cgroup_remove(cgroup, GROUP_PATIENCE_MS);
    freezer_remove(freezer, GROUP_PATIENCE_MS);
    cgroup_sweep(cgroup);
    freezer_sweep(freezer);
    bool kept = verdict >= 0 && is_kept(verdict, &dir, record);

    struct sweeping sweeping = { 0 };

    sweep(&dir, &sweeping);
    if (kept && users < 0)
        store_make_spare(dir.parent, trust_furnish);
    if (users >= 0) {
        trust_stock(dir.parent); /* there it could not */
        (void)setns(users, CLONE_NEWUSER);
    }
    if (kept) {
        store_tidy(dir.fd);
        close(dir.fd); /* whoever wants it need not wait for the rest */
        sweep_layers(dir.parent, &sweeping);
        if (users < 0)
            trust_stock(dir.parent);
        _exit(0);
    }

    int parent = fcntl(dir.parent, F_DUPFD_CLOEXEC, 0);

    /* What fails is left to the next start's sweep. */
    if (store_remove(&dir, &ignored) == 0 && users < 0)
        store_make_spare(parent, trust_furnish);
    release_layers(parent, dir.id);
    sweep_layers(parent, &sweeping);
    if (users < 0)
        trust_stock(parent);
    _exit(0);
}

int guard_start(const struct box *box, const struct sandbox_dir *dir, bool foreign_ids, struct record *record,
                int *verdict, struct error *err)
{
    autofree char *path = text_format("/proc/%d/ns/user", box->pid);
    autoclose int users = foreign_ids ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int ends[2] = { -1, -1 };

    if (foreign_ids && users < 0)
        return error_sys(err, "open the sandbox's user namespace");
    if (record && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_sys(err, "make a socket pair for the guard");
    autoclose int hear = ends[0], tell = ends[1];

    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork the guard");
    if (pid == 0)
        guard_main(&box->cgroup, &box->freezer, box->pidfd, users, hear, *dir, record);
    if (record)
        *verdict = steal_fd(&tell);
    return 0;
}

void guard_tell(int *verdict, enum guard_verdict what)
{
    char byte = (char)what;

    if (*verdict < 0)
        return;
    /* A guard that was killed hears nothing: the directory has its record, or is swept. */
    (void)send(*verdict, &byte, 1, MSG_NOSIGNAL);
    close(steal_fd(verdict));
}
