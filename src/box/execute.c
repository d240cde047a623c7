/* Carries a plan out.
 *
 * Every path inside is resolved beneath the new root (openat2, RESOLVE_IN_ROOT): a symbolic link
 * of an image can lead anywhere in the image and nowhere else.  Every host directory is opened
 * once, compared with the inode that was checked, and from then on named by its descriptor, also
 * towards mount(2): no path is resolved twice, no character in it needs an escape, and
 * /proc/self/mountinfo shows no host path inside. */

#include "box/execute.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/network.h"
#include "box/processors.h"
#include "box/steps.h"
#include "init/domain.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* By the descriptor of the fresh /proc: an image's links cannot lead it astray. */
static int do_knob(struct executor *x, const struct step *step, struct error *err)
{
    if (sys_write_file(x->proc, step->target + strlen("/proc/"), step->source) < 0)
        return step_may_be_missing(step) ? 0 : error_sys(err, "write %s to %s", step->source, step->target);
    return 0;
}

/* It was made before the plan was known. */
static int do_loopback(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    if (x->network->error.kind == ERROR_NONE)
        return network_grant(x->network, &x->plan->granted, err);
    *err = x->network->error;
    return -1;
}

#ifdef COVE_UNSAFE
static bool left_out(const struct plan *plan, const struct step *step)
{
    const char *at = plan->without ? strstr(plan->without, step->guard) : NULL;
    size_t len = strlen(step->guard);

    return at && (at == plan->without || at[-1] == ',') && (at[len] == ',' || at[len] == '\0');
}
#endif

static int do_hand(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    return executor_tell(x, &x->root, 1, err);
}

static int do_part(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    return executor_tell(x, NULL, 0, err);
}

/* It was the mounter who changed it, for us too. */
static int read_back_root(const struct executor *x, struct error *err)
{
    struct stat wanted, ours;

    if (chdir("/") < 0 || fstat(x->root, &wanted) < 0 || stat("/", &ours) < 0)
        return error_sys(err, "look which root this is");
    if (wanted.st_dev != ours.st_dev || wanted.st_ino != ours.st_ino ||
        sys_mount_id(x->root, "") != sys_mount_id(AT_FDCWD, "."))
        return error_set(err, ERROR_REFUSED, "read back: the root is not the new one");
    return 0;
}

/* The root comes as a descriptor: for root, the state directory is closed to the ids inside. */
static int do_await(struct executor *x, const struct step *step, struct error *err)
{
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    (void)step;
    if (wire_receive(x->go, &message, fds, &count, err) != WIRE_MESSAGE)
        return error_set(err, ERROR_SYSTEM, "the process that assembles the root died");
    if (x->root >= 0)
        return message.status ? read_back_root(x, err) : 0;
    if (count != 1)
        return error_set(err, ERROR_SYSTEM, "the process that assembles the root sent none");
    x->root = fds[0];
    return 0;
}

static int do_hostname(struct executor *x, const struct step *step, struct error *err)
{
    (void)x;
    return sethostname(step->target, strlen(step->target)) < 0 ? error_sys(err, "set the host name") : 0;
}

/* For everybody in this mount namespace, the clone above all.  It says when it needs nothing of the host any
 * more, while it still has to furnish /proc.  What is left of the host's root lies over the new one then. */
static int do_pivot(struct executor *x, const struct step *step, struct error *err)
{
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    (void)step;
    if (wire_receive(x->go, &message, fds, &count, err) != WIRE_MESSAGE)
        return error_set(err, ERROR_SYSTEM, "the clone died");
    if (fchdir(x->root) < 0 || sys_pivot_root(".", ".") < 0 || chdir("/") < 0)
        return error_sys(err, "change the root");
    x->pivoted = true;
    return 0;
}

/* The old root is unmounted with everything on it; what we hold of it by descriptor is closed before a command
 * runs.  The kernel has whoever unmounts wait until every processor has noticed, a tenth of a millisecond or
 * two: meanwhile the clone goes on. */
static int leave_root(const struct executor *x, struct error *err)
{
    if (x->pivoted && umount2(".", MNT_DETACH) < 0)
        return error_sys(err, "leave the host's root");
    return executor_tell(x, NULL, 0, err);
}

/* As many as the limit says, if nothing better keeps it; 0: all. */
static unsigned processors_wanted(const struct plan *plan)
{
    const struct limit_choice *cpus = &plan->limits.items[LIMIT_CPUS];

    return cpus->way == WAY_AFFINITY ? (unsigned)((cpus->max + 999) / 1000) : 0;
}

/* The keeper compares our mounts (box_verify), and lets no command begin before.  Whether it could open our
 * list itself depends on how the host's /proc is mounted. */
static int do_verify(struct executor *x, const struct step *step, struct error *err)
{
    struct message message = { .kind = MESSAGE_MOUNTED, .error = x->network->lacking };
    int fds[PROTOCOL_FDS_MAX];

    (void)step;
    if (x->network->sockets[0] >= 0 && network_open_refused(x->network, err) < 0)
        return -1;
    if (processors_take(x->processors, processors_wanted(x->plan), err) < 0)
        return -1;
    autoclose int list = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    if (list < 0)
        return error_sys(err, "open /proc/self/mountinfo");
    fds[0] = list;

    size_t count = 1 + network_pack(x->network, fds + 1);

    return wire_send(x->init_fd, &message, fds, count) < 0 ? error_sys(err, "tell the keeper") : 0;
}

static int do_landlock(struct executor *x, const struct step *step, struct error *err)
{
    const struct plan *plan = x->plan;

    (void)step;
    x->landlock = domain_build(plan->landlock_abi, plan->writable.items, plan->writable.len, err);
    return x->landlock < 0 ? -1 : 0;
}

static int (*const doers[STEP_COUNT])(struct executor *, const struct step *, struct error *) = {
    [STEP_ROOT] = do_root,         [STEP_TREE] = do_tree,           [STEP_FILE] = do_file,
    [STEP_TEXT] = do_text,         [STEP_DIRECTORY] = do_directory, [STEP_LINK] = do_link,
    [STEP_PROC] = do_mount,        [STEP_TMPFS] = do_mount,         [STEP_DEVPTS] = do_mount,
    [STEP_DEVICE] = do_device,     [STEP_SYSFS] = do_sysfs,         [STEP_MASK] = do_mask,
    [STEP_SEAL] = do_seal,         [STEP_READONLY] = do_readonly,   [STEP_KNOB] = do_knob,
    [STEP_HAND] = do_hand,         [STEP_AWAIT] = do_await,         [STEP_PART] = do_part,
    [STEP_LOOPBACK] = do_loopback, [STEP_HOSTNAME] = do_hostname,   [STEP_PROTECT] = do_protect,
    [STEP_COVER] = do_cover,       [STEP_PIVOT] = do_pivot,         [STEP_VERIFY] = do_verify,
    [STEP_LANDLOCK] = do_landlock,
};

#ifdef COVE_UNSAFE
/* In place of a tree that is left out: the host's own directory, writable.  Everything else is
 * left out by doing nothing. */
static int do_left_out(struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    if (step->kind == STEP_ROOT)
        return do_root(x, step, err);
    if (step->kind == STEP_VERIFY)
        return do_verify(x, step, err);
    if (step->kind != STEP_TREE)
        return step->kind == STEP_FILE ? do_file(x, step, err) : 0;

    autoclose int source = tree_open_source(tree, err), copy = -1, target = -1;

    if (source < 0)
        return -1;
    copy = sys_open_tree(source, "", AT_EMPTY_PATH | AT_RECURSIVE);
    target = inside_directory(x, step->target, 0755);
    if (copy < 0 || target < 0 ||
        sys_mount_attr(copy, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0,
                       tree_needs_id_map(x, step) ? x->userns : -1) < 0 ||
        sys_move_mount(copy, target) < 0)
        return error_sys(err, "show %s as it is", tree->source);
    return mount_remember(x, step->target, MS_NOSUID | MS_NODEV);
}
#endif

static int carry_out(struct executor *x, const struct step *step, struct error *err)
{
#ifdef COVE_UNSAFE
    if (left_out(x->plan, step))
        return do_left_out(x, step, err);
#endif
    return doers[step->kind](x, step, err);
}

/* Errors that say nothing about what the step needs of the host: a call that is missing may be any. */
static bool is_shortage(int number)
{
    static const int shortages[] = { EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EIO, ENOSYS };

    for (size_t i = 0; i < ARRAY_LEN(shortages); i++)
        if (shortages[i] == number)
            return true;
    return false;
}

/* An overlay whose work directory cannot be made is read-only, and nobody says so until something is written.
 */
static void add_hint(const struct step *step, struct error *err)
{
    if (err->kind != ERROR_SYSTEM || is_shortage(err->sys_errno))
        return;
    if (err->sys_errno == EROFS)
        error_hint(err, "an overlay on a full disk is read-only: is there no space left on that of the state "
                        "directory, or no inode?");
    else
        error_hint(err, "this needs %s (`cove doctor` tells more)", step_needs(step->kind));
}

static int run_steps(struct executor *x, enum actor actor, struct error *err)
{
    for (size_t i = 0; i < x->plan->steps.len; i++) {
        const struct step *step = &x->plan->steps.items[i];

        if (step->by != actor)
            continue;
        x->step = i;
        if (carry_out(x, step, err) < 0) {
            add_hint(step, err);
            return error_while(err, "step %zu, %s", i + 1, step_name(step->kind));
        }
    }
    return 0;
}

int executor_clone(struct executor *x, struct error *err)
{
    x->made = x->orders->by_clone;
    x->root = x->landlock = x->nothing = x->null = -1;
    return run_steps(x, BY_CLONE, err);
}

/* An own tmpfs over the sandbox's directory, in this mount namespace only. */
static int open_stage(struct executor *x, const char *path, struct error *err)
{
    if (mount("tmpfs", sys_fd_path(x->layers).text, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755") < 0)
        return error_sys(err, "mount a stage");
    x->stage = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return x->stage < 0 ? error_sys(err, "open the stage") : 0;
}

int executor_open(struct executor *x, struct error *err)
{
    autofree char *layers = text_format("%s/sandboxes/%s", x->orders->state, x->orders->id);
    autofree char *empty = text_format("%s/images/empty", x->orders->state);

    x->root = x->stage = -1;
    x->layers = open(layers, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    x->empty = open(empty, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (x->layers < 0 || x->empty < 0)
        return error_sys(err, "open the sandbox's directory");
    return x->userns >= 0 ? open_stage(x, layers, err) : 0;
}

int executor_mount(struct executor *x, struct error *err)
{
    x->made = x->orders->by_mounter;
    if (executor_open(x, err) < 0 || run_steps(x, BY_MOUNTER, err) < 0 || executor_tell(x, NULL, 0, err) < 0)
        return -1;
    return leave_root(x, err);
}
