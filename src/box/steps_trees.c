#include "box/steps.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/laid.h"
#include "box/mounts.h"
#include "init/wire.h"
#include "store/authorities.h"
#include "store/stack.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Checks that what was opened for a tree is still what was looked at. */
static int check_source(const struct tree *tree, int opened, struct error *err)
{
    autoclose int fd = opened;
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open %s", tree->source);
    if (status.st_dev != tree->device || status.st_ino != tree->inode)
        return error_set(err, ERROR_REFUSED, "%s was replaced by something else during the start",
                         tree->source);
    return steal_fd(&fd);
}

#ifdef COVE_UNSAFE
static bool is_believed(const struct tree *tree)
{
    return tree->inode == 0; /* no file has this number */
}
#else
static bool is_believed(const struct tree *tree)
{
    (void)tree;
    return false;
}
#endif

int tree_open_source(const struct tree *tree, struct error *err)
{
    if (is_believed(tree))
        return open(tree->source, O_PATH | O_CLOEXEC);
    return check_source(
        tree, sys_openat2(AT_FDCWD, tree->source, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS), err);
}

/* Over the path of a private copy in the sandbox's own directory the new root may lie by now; one that is a
 * layer lies beside it. */
static int open_private_copy(const struct executor *x, const struct tree *tree, struct error *err)
{
    autofree char *all = text_format("%s/layers", x->orders->state);
    autoclose int layers = -1;

    if (!path_within(tree->source, all))
        return check_source(
            tree, openat(x->layers, strrchr(tree->source, '/') + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC), err);
    layers = open(all, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return check_source(tree, sys_open_beneath(layers, tree->source + strlen(all) + 1, O_PATH | O_DIRECTORY),
                        err);
}

/* Maps the ids of a detached copy of a mount. */
static int map_ids(const struct executor *x, int copy, uint64_t attributes, const char *shown,
                   struct error *err)
{
    if (sys_mount_attr(copy, attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, x->userns) == 0)
        return 0;
    error_sys(err, "map the ids of %s", shown);
    return error_hint(err, "its file system must support id-mapped mounts (ext4, xfs, btrfs do, tmpfs since "
                           "Linux 6.3; overlayfs does not)");
}

/* Attaches a detached copy in the stage, because an overlay only takes lower directories of its
 * own mount namespace, and gives a handle on it. */
static int attach(const struct executor *x, int copy, char letter, size_t number, struct error *err)
{
    autoclose int place = -1;
    char name[24];

    snprintf(name, sizeof name, "%c%zu", letter, number);
    if (mkdirat(x->stage, name, 0700) < 0)
        return error_sys(err, "make a place for a tree");
    place = openat(x->stage, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place < 0 || sys_move_mount(copy, place) < 0)
        return error_sys(err, "attach a tree");

    int fd = openat(x->stage, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? error_sys(err, "open a tree again") : fd;
}

bool step_is_writable(const struct plan *plan, const struct step *step)
{
    return (step->kind == STEP_ROOT || step->kind == STEP_TREE) && step->layer >= 0 &&
           plan->trees.items[step->tree].mode == TREE_COW;
}

bool step_is_of(const struct step *step, uint64_t trees)
{
    return !trees || (step->layer >= 0 && step->layer < STACK_TREES_MAX && trees >> step->layer & 1);
}

/* System trees that are only read need no id map: everybody may read what is world-readable, and
 * what only the host's root may read stays closed to root inside. */
bool tree_needs_id_map(const struct executor *x, const struct step *step)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    return x->userns >= 0 && !(tree->mode == TREE_RO && strcmp(tree->why, "image") == 0);
}

/* The lower directory of a tree: the host's own, or for root the copy that executor_prepare() made
 * while it was still in the host's mount namespace. */
static int open_lower(const struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    if (tree_needs_id_map(x, step))
        return attach(x, x->copies[step->tree], 't', step->tree, err);
    return tree->origin ? open_private_copy(x, tree, err) : tree_open_source(tree, err);
}

/* Opens directory `letter`N below sandboxes/<id>, making it first.  One of an earlier start may by now belong
 * to somebody else inside. */
static int open_layer(const struct executor *x, char letter, int number, struct error *err)
{
    char name[16];

    snprintf(name, sizeof name, "%c%d", letter, number);
    bool made = mkdirat(x->layers, name, 0755) == 0;
    struct stat status;

    if (!made && errno != EEXIST)
        return error_sys(err, "make the layer %s", name);
    /* One that lay ready and was not needed so far (box/laid.h) is still the host's root's, who is nobody
     * inside. */
    bool unused = !made && fstatat(x->layers, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_uid == 0;

    if ((made || unused || !x->plan->resumed) && inside_own(x, x->layers, name) < 0)
        return error_sys(err, "own the layer %s", name);

    int fd = openat(x->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? error_sys(err, "open the layer %s", name) : fd;
}

/* White-outs for one hidden path.  A directory of this layer merges with the real one below it
 * and lends it its attributes, so it gets the real one's. */
static int add_whiteout(const struct executor *x, int layer, int source, const char *path)
{
    autofree char *part = text_copy(path);
    struct stat status;

    for (char *slash = strchr(part, '/'); slash; *slash = '/', slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (fstatat(source, part, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        if (mkdirat(layer, part, status.st_mode & 07777) < 0 && errno != EEXIST)
            return -1;
        if (fchownat(layer, part, status.st_uid, status.st_gid, 0) < 0 && errno != EPERM && errno != EINVAL)
            return -1;
        if (utimensat(layer, part, (struct timespec[]){ status.st_atim, status.st_mtim }, 0) < 0)
            return -1;
    }
    if (mknodat(layer, part, S_IFCHR, makedev(0, 0)) == 0)
        return 0;
    return errno == EEXIST && x->plan->resumed ? 0 : -1; /* it is from before */
}

static int open_mask_layer(const struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = tree_open_source(tree, err), layer = -1;
    struct stat status;

    if (source < 0 || (layer = open_layer(x, 'm', (int)step->tree, err)) < 0)
        return -1;
    if (fstat(source, &status) < 0 || fchmod(layer, status.st_mode & 07777) < 0)
        return error_sys(err, "prepare the layer that hides paths of %s", tree->source);
    if (x->userns >= 0 && fchown(layer, status.st_uid, status.st_gid) < 0)
        return error_sys(err, "prepare the layer that hides paths of %s", tree->source);
    for (size_t i = 0; i < tree->hide.len; i++)
        if (add_whiteout(x, layer, source, tree->hide.items[i]) < 0)
            return error_sys(err, "hide %s in %s", tree->hide.items[i], tree->source);
    return steal_fd(&layer);
}

/* Of a layer of ours, in place of itself. */
static int map_layer(const struct executor *x, int *layer, char letter, size_t number, struct error *err)
{
    autoclose int copy = sys_open_tree(*layer, "", AT_EMPTY_PATH);

    if (copy < 0)
        return error_sys(err, "copy a layer of the sandbox's");
    if (map_ids(x, copy, MOUNT_ATTR_RDONLY, "a layer of the sandbox's", err) < 0)
        return -1;
    close(*layer);
    *layer = attach(x, copy, letter, number, err);
    return *layer < 0 ? -1 : 0;
}

/* Overlays are mounted volatile: otherwise every unmount would sync the whole disk.  What the kernel
 * refuses in a user namespace, root does without: a directory that is renamed by a mark alone takes
 * files along that nobody looked at (decision 9).  Where changes go home at once the kernel must know that
 * what is below changes, which it takes from xino=on: then a new directory never shows the one that it became
 * on the host (decision 18). */
static void overlay_options(const struct executor *x, const struct tree *tree, struct text *options, int upper,
                            int work)
{
    bool live = x->plan->workspace_mode == WORKSPACE_LIVE && strcmp(tree->why, TREE_WHY_WORKSPACE) == 0;

    text_addf(options, ",upperdir=%s,workdir=%s,volatile", sys_fd_path(upper).text, sys_fd_path(work).text);
    if (live)
        text_add(options, ",xino=on");
    if (x->userns >= 0)
        text_add(options, ",redirect_dir=nofollow,index=off,metacopy=off");
}

/* The kernel says EINVAL for all; the usual reason has a name. */
static int overlay_failed(const struct tree *tree, struct error *err)
{
    autostrings struct strings below = STRINGS_NONE;

    error_sys(err, "mount an overlay over %s", tree->source);
    if (err->sys_errno == EINVAL)
        mounts_below(tree->source, &below);
    if (below.len)
        error_set(err, ERROR_UNSUPPORTED,
                  "%s has a mount below it, %s, and only root can show such a tree; use another directory, or "
                  "unmount it",
                  tree->source, below.items[0]);
    return -1;
}

/* Handles on the frozen layers of one tree, newest first.  They are closed when the overlay is there. */
struct frozen {
    int fds[LAYERS_DEPTH_MAX];
    size_t count;
};

#define autofrozen __attribute__((cleanup(frozen_close)))

static void frozen_close(struct frozen *frozen)
{
    while (frozen->count)
        close(frozen->fds[--frozen->count]);
}

/* Of another range its files would be nobody's inside. */
static int check_ids(const struct executor *x, int fd, const char *lid, struct error *err)
{
    struct stat status;

    if (x->userns < 0)
        return 0;
    if (fstat(fd, &status) < 0)
        return error_sys(err, "look at the layer %s", lid);
    if (status.st_uid - x->plan->ids.base >= ID_RANGE)
        return error_set(err, ERROR_REFUSED, "the layer %s is of a sandbox with other ids", lid);
    return 0;
}

/* They were written by commands, or by us for the user inside: their ids are those of the machine already, and
 * need no map.  A layer of a time when the sandbox had no such tree is passed over. */
static int open_frozen(const struct executor *x, const struct step *step, struct frozen *out, struct error *err)
{
    const struct strings *stack = &x->plan->stack;
    autofree char *path = text_format("%s/layers", x->orders->state);
    autoclose int layers = stack->len && step->layer >= 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (!stack->len || step->layer < 0)
        return 0;
    if (layers < 0 || stack->len > LAYERS_DEPTH_MAX)
        return error_sys(err, "open the %zu layers of the sandbox", stack->len);
    for (size_t i = 0; i < stack->len; i++) {
        autofree char *name = text_format("%s/u%d", stack->items[i], step->layer);
        int fd = sys_open_beneath(layers, name, O_PATH | O_DIRECTORY);

        if (fd >= 0) {
            out->fds[out->count++] = fd;
            if (check_ids(x, fd, stack->items[i], err) < 0)
                return -1;
        } else if (errno != ENOENT || faccessat(layers, stack->items[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
            return error_sys(err, "open the layer %s", stack->items[i]);
        }
    }
    return 0;
}

static int open_mask(struct executor *x, const struct step *step, int *mask, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    if (!tree->hide.len || tree->origin)
        return 0;
    *mask = open_mask_layer(x, step, err);
    if (*mask < 0)
        return -1;
    return tree_needs_id_map(x, step) ? map_layer(x, mask, 'h', step->tree, err) : 0;
}

/* The layer with certificates, over the image alone (keeper/trust.h). */
static int open_trust(struct executor *x, const struct step *step, int *trust, struct error *err)
{
    if (step->kind != STEP_ROOT || !x->plan->trust || x->look_only)
        return 0;
    *trust = openat(x->layers, STORE_TRUST_LAYER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*trust < 0)
        return error_sys(err, "open the layer with certificates");
    return tree_needs_id_map(x, step) ? map_layer(x, trust, 'c', step->tree, err) : 0;
}

/* Lower directories that are ours, open until the overlay is there. */
struct own_layers {
    int mask, trust;
};

#define autoown __attribute__((cleanup(own_layers_close)))

static void own_layers_close(struct own_layers *own)
{
    own_close(&own->mask);
    own_close(&own->trust);
}

/* What is hidden is hidden of the host's tree: a file that a command has made under such a name is its own, and
 * stays seen when its layer is frozen. */
static int add_lowers(struct executor *x, const struct step *step, int source, struct text *options,
                      struct frozen *frozen, struct own_layers *own, struct error *err)
{
    if (open_frozen(x, step, frozen, err) < 0 || open_mask(x, step, &own->mask, err) < 0 ||
        open_trust(x, step, &own->trust, err) < 0)
        return -1;
    text_addf(options, "%slowerdir=", x->userns < 0 ? "userxattr," : "");
    for (size_t i = 0; i < frozen->count; i++)
        text_addf(options, "%s:", sys_fd_path(frozen->fds[i]).text);
    if (own->trust >= 0)
        text_addf(options, "%s:", sys_fd_path(own->trust).text);
    if (own->mask >= 0)
        text_addf(options, "%s:", sys_fd_path(own->mask).text);
    text_add(options, sys_fd_path(source).text);
    return 0;
}

int overlay_mount(struct executor *x, const struct step *step, int target, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = open_lower(x, step, err), upper = -1, work = -1;
    autoown struct own_layers own = { -1, -1 };
    autofrozen struct frozen frozen = { .count = 0 };
    autotext struct text options = TEXT_NONE;

    if (source < 0 || add_lowers(x, step, source, &options, &frozen, &own, err) < 0)
        return -1;
    if (step->layer < 0 || x->look_only) { /* read-only: an overlay of lower directories, never a bind */
        text_addf(&options, ":%s", sys_fd_path(x->empty).text);
    } else {
        bool fresh_root = step->kind == STEP_ROOT && !x->plan->resumed;

        if (fresh_root)
            laid_take(x->plan, x->layers, "u0");
        upper = open_layer(x, 'u', step->layer, err);
        work = upper < 0 ? -1 : open_layer(x, 'w', step->layer, err);
        if (work < 0)
            return -1;
        if (fresh_root)
            laid_put(x->plan, upper, source, x->userns >= 0);
        overlay_options(x, tree, &options, upper, work);
    }
    if (mount("overlay", sys_fd_path(target).text, "overlay", step->flags, text_string(&options)) < 0)
        return overlay_failed(tree, err);
    return 0;
}

int executor_tell(const struct executor *x, const int *fds, size_t count, struct error *err)
{
    struct message message = { .kind = MESSAGE_GO, .status = x->pivoted };

    return wire_send(x->go, &message, fds, count) < 0 ? error_sys(err, "tell who else sets it up") : 0;
}

/* The new root lies over the sandbox's own directory, or in the stage if there is one. */
int do_root(struct executor *x, const struct step *step, struct error *err)
{
    autofree char *sandboxes = text_format("%s/sandboxes", x->orders->state);
    autoclose int parent = open(sandboxes, O_PATH | O_DIRECTORY | O_CLOEXEC), target = -1;
    int above = parent;
    const char *name = x->orders->id;

    if (parent < 0)
        return error_sys(err, "open %s", sandboxes);
    if (x->stage >= 0) {
        above = x->stage;
        name = "root";
        if (mkdirat(above, name, 0755) < 0)
            return error_sys(err, "make a place for the root");
    }
    target = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (target < 0)
        return error_sys(err, "open the place for the root");
    if (overlay_mount(x, step, target, err) < 0)
        return -1;
    x->root = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (x->root < 0 || mount_remember(x, "/", step->flags) < 0)
        return error_sys(err, "open the new root");
    return 0;
}

/* The host's own tree, without what is mounted below it. */
static int mount_through(struct executor *x, const struct step *step, int target, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = tree_open_source(tree, err), copy = -1;

    if (source < 0)
        return -1;
    if (tree_needs_id_map(x, step)) {
        copy = steal_fd(&x->copies[step->tree]);
    } else {
        copy = sys_open_tree(source, "", AT_EMPTY_PATH);
        if (copy < 0 || sys_mount_attr(copy, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, -1) < 0)
            return overlay_failed(tree, err);
    }
    return sys_move_mount(copy, target) < 0 ? error_sys(err, "show %s as it is", tree->source) : 0;
}

int do_tree(struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int target = inside_directory(x, step->target, 0755);

    if (target < 0)
        return error_sys(err, "open %s to mount on", step->target);
    if ((tree->mode == TREE_RW ? mount_through : overlay_mount)(x, step, target, err) < 0)
        return -1;
    return mount_remember(x, step->target, step->flags) < 0 ? error_sys(err, "look at %s", step->target) : 0;
}

int executor_prepare(struct executor *x, struct error *err)
{
    x->copies = memory_zero(x->plan->trees.len * sizeof *x->copies);
    for (size_t i = 0; i < x->plan->steps.len; i++) {
        const struct step *step = &x->plan->steps.items[i];
        const struct tree *tree = &x->plan->trees.items[step->tree];

        if ((step->kind != STEP_ROOT && step->kind != STEP_TREE) || !tree_needs_id_map(x, step) ||
            (x->overlays_only && !(step_is_writable(x->plan, step) && step_is_of(step, x->trees))))
            continue;
        autoclose int source = tree_open_source(tree, err);
        if (source < 0)
            return -1;
        x->copies[step->tree] = sys_open_tree(source, "", AT_EMPTY_PATH);
        if (x->copies[step->tree] < 0)
            return error_sys(err, "copy the mount of %s", tree->source);
        /* What only lies below an overlay is never written to. */
        if (map_ids(x, x->copies[step->tree], tree->mode == TREE_RW ? 0 : MOUNT_ATTR_RDONLY, tree->source,
                    err) < 0)
            return -1;
    }
    return 0;
}
