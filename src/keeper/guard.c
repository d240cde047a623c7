#include "keeper/guard.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/laid.h"
#include "box/plan.h"
#include "keeper/apart.h"
#include "keeper/guard_fds.h"
#include "keeper/guard_sleep.h"
#include "keeper/keep.h"
#include "keeper/trust.h"
#include "store/layers.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of who has woken up it is on the disk; what cannot be read there is left as it is. */
static bool finish_woken(const struct guarded *guarded)
{
    autorecord struct record record = RECORD_NONE;
    struct error ignored;

    if (faccessat(guarded->dir.fd, STORE_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return false; /* the keeper has taken it away, and died before it said so */
    if (record_read(guarded->dir.fd, guarded->dir.id, &record, &ignored) < 0 || record.state != RECORD_RUNNING)
        return true;
    record.wall_ahead = guarded->wall_ahead;
    return keep_end(guarded->dir.fd, &record, NULL, &ignored) != 0;
}

/* Without a word the keeper is dead, and what it would have done is done here. */
static bool is_kept(const struct guarded *guarded)
{
    struct error ignored;
    char what;
    ssize_t got;

    while ((got = read(guarded->verdict, &what, 1)) < 0 && errno == EINTR)
        continue;
    if (got == 1)
        return what == GUARD_KEEP;
    return guarded->woken ? finish_woken(guarded)
                          : keep_end(guarded->dir.fd, guarded->record, NULL, &ignored) != 0;
}

/* Who is frozen in a group of v1 does not die with its keeper: when that has spoken, or is gone, they may.  A
 * guard of what stays waits for days, with a copy of the keeper's memory if it cannot sleep. */
static void wait_for_death(const struct guarded *guarded)
{
    enum { SHORT_MS = 300 };
    const struct freezer *freezer = &guarded->box.freezer;
    int patience = guarded->woken ? -1 : SHORT_MS;
    struct pollfd dead[] = { { .fd = freezer->v1 ? guarded->verdict : -1, .events = POLLIN },
                             { .fd = guarded->box.pidfd, .events = POLLIN } };

    while (!dead[1].revents) {
        int ready = poll(dead, 2, patience);

        if (ready == 0) {
            if (guarded->verdict >= 0)
                store_flush_record(guarded->dir.fd);
            if (guarded->record && guarded->record->stays)
                guard_sleep(guarded);
            memory_give_back();
            patience = -1;
        }
        if (ready <= 0)
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

static _Noreturn void guard_main(const struct guarded *guarded)
{
    const struct cgroup *cgroup = &guarded->box.cgroup;
    const struct freezer *freezer = &guarded->box.freezer;
    enum { GROUP_PATIENCE_MS = 5000 };
    struct sandbox_dir dir = guarded->dir;
    struct error ignored;

    wait_for_death(guarded);
    if (guarded->users < 0)
        store_make_spare(dir.parent, laid_furnish, guarded->plan); /* first: the next start may be under way */
    trust_stock(dir.fd);
    (void)cgroup_remove(cgroup, GROUP_PATIENCE_MS);
    freezer_remove(freezer, GROUP_PATIENCE_MS);
    cgroup_sweep(cgroup);
    freezer_sweep(freezer);
    bool kept = guarded->verdict >= 0 && is_kept(guarded);

    struct sweeping sweeping = { 0 };

    sweep(&dir, &sweeping);
    if (guarded->users >= 0)
        (void)setns(guarded->users, CLONE_NEWUSER);
    if (kept) {
        int again = openat(dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        store_tidy(dir.fd);
        close(dir.fd); /* whoever wants it need not wait for the rest */
        store_flush_record(again);
        sweep_layers(dir.parent, &sweeping);
        _exit(0);
    }

    int parent = fcntl(dir.parent, F_DUPFD_CLOEXEC, 0);

    (void)store_remove(&dir, &ignored); /* what fails is left to the next start's sweep */
    release_layers(parent, dir.id);
    sweep_layers(parent, &sweeping);
    _exit(0);
}

static _Noreturn void begin(struct guarded *guarded)
{
    int *fds[GUARD_FDS] = { [GUARD_PIDFD] = &guarded->box.pidfd,
                            [GUARD_PARENT] = &guarded->dir.parent,
                            [GUARD_DIR] = &guarded->dir.fd,
                            [GUARD_VERDICT] = &guarded->verdict,
                            [GUARD_USERS] = &guarded->users };

    apart(GUARD_NAME, fds, GUARD_FDS);
    box_drop_orders(&guarded->box); /* the keeper's own are not the last ones as long as these are there */
    guard_main(guarded);
}

bool guard_is(const char *name)
{
    return strcmp(name, GUARD_NAME) == 0;
}

void guard_awake(void)
{
    struct guarded guarded;
    struct plan plan = { 0 };

    prctl(PR_SET_NAME, GUARD_NAME);
    if (!guard_recall(&guarded, &plan))
        _exit(1);
    guard_main(&guarded);
}

int guard_start(const struct box *box, const struct plan *plan, const struct sandbox_dir *dir,
                struct record *record, int *verdict, struct error *err)
{
    bool foreign_ids = plan->ids.helpers;
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
        begin(&(struct guarded){
            .box = *box, .plan = plan, .dir = *dir, .verdict = hear, .users = users, .record = record });
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
