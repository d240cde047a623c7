/* Theory of operation.  A process of its own has both views as handles: the state that is wanted is mounted for
 * it alone, as overlays that cannot be written to; what is there is the sandbox's own mounts, reached over its
 * PID 1. Both are what they are whatever is renamed, and each of them is left by no name (store/restore.h).
 *
 * Should: write as root of the sandbox's user namespace, which may do anything to files of whoever is inside,
 * and nothing to the host's.  Must not: run anything from inside; outlive the keeper. */

#include "box/inplace.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/box.h"
#include "box/fresh.h"
#include "box/steps.h"
#include "box/switch_list.h"
#include "store/restore.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct work {
    const struct inplace *what;
    struct fresh fresh;
    struct switch_list list;
    int views[ASIDE_MOUNTS_MAX]; /* of the state that is wanted, by entry; -1: it is no overlay */
    struct layers {
        int fds[RESTORE_LAYERS_MAX];
        size_t count;
        struct map opaque;
    } layers[ASIDE_MOUNTS_MAX]; /* by which the two states differ, by entry */
    int root;                   /* the sandbox's */
};

struct answer {
    struct error error; /* ERROR_NONE: it is done */
    uint64_t changed;
};

/* Root's own process has mounted as root of the machine, and gives that up.  Its groups are nobody's inside. */
static int become_inside(const struct work *work, int users, struct error *err)
{
    if (!work->what->plan->ids.shifted)
        return 0;
    if (setgroups(0, NULL) < 0 || setns(users, CLONE_NEWUSER) < 0)
        return error_sys(err, "enter the sandbox's user namespace");
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return error_sys(err, "become root of the sandbox");
    return 0;
}

/* While the machine's root may still look into the state directory. */
static int open_layers(const struct work *work, int tree, struct layers *out, struct error *err)
{
    const struct strings *differ = work->what->differ;

    if (differ->len > RESTORE_LAYERS_MAX)
        return error_set(err, ERROR_UNSUPPORTED, "there are too many layers to compare");
    for (size_t i = 0; i < differ->len; i++) {
        autofree char *path = text_format("%s/u%d", differ->items[i], tree);
        int fd = sys_open_beneath(work->what->layers, path, O_RDONLY | O_DIRECTORY);

        if (fd >= 0)
            out->fds[out->count++] = fd;
        else if (errno != ENOENT)
            return error_sys(err, "open the layer %s", differ->items[i]);
    }
    return restore_find_opaque(out->fds, out->count, work->what->plan->ids.shifted ? MERGE_TRUSTED : MERGE_USER,
                               &out->opaque, err);
}

static int mount_views(struct work *work, struct error *err)
{
    if (fresh_enter(&work->fresh, err) < 0)
        return -1;
    for (size_t i = 0; i < work->list.len; i++) {
        const struct switch_entry *entry = &work->list.items[i];

        work->views[i] = entry->overlay ? fresh_overlay(&work->fresh, entry->step, err) : -1;
        if (entry->overlay &&
            (work->views[i] < 0 || open_layers(work, entry->step->layer, &work->layers[i], err) < 0))
            return -1;
    }
    return 0;
}

/* By its id: a command may have renamed a directory above it. */
static int open_live(const struct work *work, const struct switch_entry *entry, struct error *err)
{
    const char *path = entry->step->target[1] ? entry->step->target + 1 : ".";
    autoclose int fd = sys_openat2(work->root, path, O_RDONLY | O_DIRECTORY,
                                   RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

    if (fd < 0)
        return error_sys(err, "open %s of the sandbox", entry->step->target);
    if (sys_mount_id(fd, "") != entry->made->id)
        return error_set(err, ERROR_REFUSED, "%s is not where it was mounted", entry->step->target);
    return steal_fd(&fd);
}

static int restore_tree(const struct work *work, size_t index, uint64_t *changed, struct error *err)
{
    const struct switch_entry *entry = &work->list.items[index];
    autoclose int live = open_live(work, entry, err),
                  wanted = live < 0 ? -1 : sys_open_beneath(work->views[index], "", O_RDONLY | O_DIRECTORY);

    if (live < 0)
        return -1;
    if (wanted < 0)
        return error_sys(err, "open the state that is wanted");
    return restore_run(&(struct restore){ .wanted = wanted,
                                          .live = live,
                                          .layers = work->layers[index].fds,
                                          .count = work->layers[index].count,
                                          .pair = work->what->pair,
                                          .opaque = &work->layers[index].opaque },
                       changed, err);
}

static int restore_all(struct work *work, uint64_t *changed, struct error *err)
{
    autofree char *users = text_format("/proc/%d/ns/user", work->what->box->pid),
                  *root = text_format("/proc/%d/root", work->what->box->pid);
    autoclose int namespace = open(users, O_RDONLY | O_CLOEXEC);

    if (namespace < 0)
        return error_sys(err, "open the sandbox's namespaces");
    if (mount_views(work, err) < 0 || become_inside(work, namespace, err) < 0)
        return -1;
    work->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (work->root < 0)
        return error_sys(err, "open the sandbox's root");
    for (size_t i = 0; i < work->list.len; i++)
        if (work->views[i] >= 0 && restore_tree(work, i, changed, err) < 0)
            return error_while(err, "bring files back");
    return 0;
}

static _Noreturn void be_child(struct work *work, int tell)
{
    struct answer answer = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (restore_all(work, &answer.changed, &answer.error) == 0)
        answer.error.kind = ERROR_NONE;
    _exit(write(tell, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
}

int inplace_restore(const struct inplace *what, uint64_t *changed, struct error *err)
{
    autofree struct work *work = memory_zero(sizeof *work);
    struct answer answer;
    int ends[2];

    work->what = what;
    if (switch_list_fill(what->plan, what->box->mounted, 0, &work->list, err) < 0)
        return -1;
    fresh_prepare(&work->fresh, what->box, what->plan, what->host, what->dir, what->stack);
    work->fresh.x.look_only = true;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");

    autoclose int hear = ends[0], tell = ends[1];
    pid_t child = fork();

    if (child == 0)
        be_child(work, tell);
    close(steal_fd(&tell));
    if (child < 0)
        return error_sys(err, "fork who brings files back");

    bool heard = read(hear, &answer, sizeof answer) == (ssize_t)sizeof answer;

    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (!heard)
        return error_set(err, ERROR_SYSTEM, "who brought files back died");
    *changed = answer.changed;
    if (answer.error.kind == ERROR_NONE)
        return 0;
    *err = answer.error;
    return -1;
}
