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
#include "box/mounts.h"
#include "init/wire.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* --- paths inside -------------------------------------------------------------------------- */

static int open_inside(const struct executor *x, const char *path, uint64_t flags)
{
    while (*path == '/')
        path++;
    return sys_openat2(x->root, *path ? path : ".", flags | O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* What is made inside by a process with the host's ids must belong to root inside. */
static int own_inside(const struct executor *x, int dir, const char *name)
{
    if (!x->plan->ids.shifted || geteuid() != 0 || x->userns < 0)
        return 0;
    return fchownat(dir, name, x->plan->ids.base, x->plan->ids.base, AT_SYMLINK_NOFOLLOW);
}

/* Opens the directory that `path` lies in and points *name at its last component. */
static int open_parent(const struct executor *x, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    autofree char *parent =
        slash && slash != path ? text_format("%.*s", (int)(slash - path), path) : text_copy("/");

    *name = slash ? slash + 1 : path;
    return open_inside(x, parent, O_DIRECTORY);
}

/* Opens a directory, after mkdir -p, one missing component after the other, where it is missing. */
static int open_directory(const struct executor *x, const char *path, mode_t mode)
{
    autofree char *part = NULL;
    int there = open_inside(x, path, O_DIRECTORY);

    if (there >= 0)
        return there;
    part = text_copy(path);
    for (char *end = part + 1;; *end++ = '/') {
        const char *name;

        end = strchrnul(end, '/');
        bool last = !*end;

        *end = '\0';
        autoclose int found = open_inside(x, part, O_DIRECTORY);
        if (found < 0) {
            autoclose int parent = open_parent(x, part, &name);

            if (parent < 0 || mkdirat(parent, name, last ? mode : 0755) < 0 || own_inside(x, parent, name) < 0)
                return -1;
        }
        if (last)
            return open_inside(x, path, O_DIRECTORY);
    }
}

/* A file to mount on. */
static int make_file(const struct executor *x, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash + 1;
    autofree char *parent_path = text_format("%.*s", (int)(slash - path), path);
    autoclose int parent = open_directory(x, *parent_path ? parent_path : "/", 0755);

    /* Never the image's own: it may be a link, or a FIFO that waits for somebody. */
    if (parent < 0 || (unlinkat(parent, name, 0) < 0 && errno != ENOENT))
        return -1;
    if (mknodat(parent, name, S_IFREG | 0600, 0) < 0)
        return -1;
    return own_inside(x, parent, name);
}

/* --- mounts -------------------------------------------------------------------------------- */

/* Remembers a mount, for the comparison at the end. */
static int remember_id(struct executor *x, uint64_t id, uint64_t flags)
{
    errno = ENOENT;
    if (!id)
        return -1;
    for (size_t i = 0; i < x->mount_count; i += 2)
        if (x->mounts[i] == id) { /* an older mount is still what one sees there: the new one is not */
            errno = ENODEV;
            return -1;
        }
    *(uint64_t *)array_grow((void **)&x->mounts, &x->mount_count, &x->mount_cap, sizeof *x->mounts) = id;
    *(uint64_t *)array_grow((void **)&x->mounts, &x->mount_count, &x->mount_cap, sizeof *x->mounts) = flags;
    return 0;
}

static int remember(struct executor *x, const char *path, uint64_t flags)
{
    autoclose int fd = open_inside(x, path, 0);

    return remember_id(x, fd < 0 ? 0 : sys_mount_id(fd, ""), flags);
}

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

static int open_source(const struct tree *tree, struct error *err)
{
    if (is_believed(tree))
        return open(tree->source, O_PATH | O_CLOEXEC);
    return check_source(
        tree, sys_openat2(AT_FDCWD, tree->source, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS), err);
}

/* Over the path of a private copy, which is in the sandbox's directory, the new root may lie by now. */
static int open_private_copy(const struct executor *x, const struct tree *tree, struct error *err)
{
    return check_source(
        tree, openat(x->layers, strrchr(tree->source, '/') + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC), err);
}

/* Maps the ids of a detached copy of a mount. */
static int map_ids(const struct executor *x, int copy, const char *shown, struct error *err)
{
    if (sys_mount_attr(copy, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, x->userns) == 0)
        return 0;
    error_sys(err, "map the ids of %s", shown);
    return error_hint(
        err, "its file system must support id-mapped mounts (ext4, xfs, btrfs do; overlayfs does not)");
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

/* System trees that are only read need no id map: everybody may read what is world-readable, and
 * what only the host's root may read stays closed to root inside. */
static bool needs_id_map(const struct executor *x, const struct step *step)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    return x->userns >= 0 && !(tree->mode == TREE_RO && strcmp(tree->why, "image") == 0);
}

/* The lower directory of a tree: the host's own, or for root the copy that executor_prepare() made
 * while it was still in the host's mount namespace. */
static int open_lower(const struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    if (needs_id_map(x, step))
        return attach(x, x->copies[step->tree], 't', step->tree, err);
    return tree->origin ? open_private_copy(x, tree, err) : open_source(tree, err);
}

/* Opens directory `letter`N below sandboxes/<id>, making it first. */
static int open_layer(const struct executor *x, char letter, int number, struct error *err)
{
    char name[16];

    snprintf(name, sizeof name, "%c%d", letter, number);
    if (mkdirat(x->layers, name, 0755) < 0 && errno != EEXIST)
        return error_sys(err, "make the layer %s", name);
    if (own_inside(x, x->layers, name) < 0)
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

    (void)x;
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
    return mknodat(layer, part, S_IFCHR, makedev(0, 0));
}

static int open_mask_layer(const struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = open_source(tree, err), layer = -1;
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

static int map_mask(const struct executor *x, int *mask, size_t number, struct error *err)
{
    autoclose int copy = sys_open_tree(*mask, "", AT_EMPTY_PATH);

    if (copy < 0)
        return error_sys(err, "copy the layer that hides paths");
    if (map_ids(x, copy, "the layer that hides paths", err) < 0)
        return -1;
    close(*mask);
    *mask = attach(x, copy, 'h', number, err);
    return *mask < 0 ? -1 : 0;
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

/* One directory of the root's layer, like the one below it if there is one. */
static int lay_directory(const struct executor *x, int upper, int lower, const char *path)
{
    autoclose int below = sys_openat2(lower, path, O_PATH | O_DIRECTORY,
                                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status = { .st_mode = 0755, .st_uid = x->plan->ids.base, .st_gid = x->plan->ids.base };

    if (below < 0 ? errno != ENOENT : fstat(below, &status) < 0)
        return -1;
    if (mkdirat(upper, path, status.st_mode & 07777) < 0)
        return errno == EEXIST ? 0 : -1;
    return x->userns < 0 ? 0 : fchownat(upper, path, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW);
}

/* Where the workspace will be mounted, made before the overlay is there: through it the kernel would
 * copy every directory above, one rename and one journal entry each.  What does not work here is made
 * later as for any other tree. */
static void lay_workspace(const struct executor *x, int upper, int lower)
{
    const struct tree *tree = NULL;

    for (size_t i = 0; i < x->plan->trees.len && !tree; i++)
        if (strcmp(x->plan->trees.items[i].why, TREE_WHY_WORKSPACE) == 0)
            tree = &x->plan->trees.items[i];
    if (!tree || !tree->target[1])
        return;

    autofree char *path = text_copy(tree->target + 1);

    if (faccessat(lower, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    for (char *end = strchrnul(path, '/');; end = strchrnul(end + 1, '/')) {
        char held = *end;

        *end = '\0';
        if (lay_directory(x, upper, lower, path) < 0 || !held)
            return;
        *end = held;
    }
}

static int mount_overlay(struct executor *x, const struct step *step, int target, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = open_lower(x, step, err), mask = -1, upper = -1, work = -1;
    autotext struct text options = TEXT_NONE;

    if (source < 0)
        return -1;
    if (tree->hide.len && !tree->origin && (mask = open_mask_layer(x, step, err)) < 0)
        return -1;
    if (mask >= 0 && needs_id_map(x, step) && map_mask(x, &mask, step->tree, err) < 0)
        return -1;

    text_addf(&options, "%slowerdir=", x->userns < 0 ? "userxattr," : "");
    if (mask >= 0)
        text_addf(&options, "%s:", sys_fd_path(mask).text);
    text_add(&options, sys_fd_path(source).text);
    if (step->layer < 0) { /* read-only: an overlay of two lower directories, never a bind */
        text_addf(&options, ":%s", sys_fd_path(x->empty).text);
    } else {
        upper = open_layer(x, 'u', step->layer, err);
        work = upper < 0 ? -1 : open_layer(x, 'w', step->layer, err);
        if (work < 0)
            return -1;
        if (step->kind == STEP_ROOT)
            lay_workspace(x, upper, source);
        overlay_options(x, tree, &options, upper, work);
    }
    if (mount("overlay", sys_fd_path(target).text, "overlay", step->flags, text_string(&options)) < 0)
        return overlay_failed(tree, err);
    return 0;
}

static int tell(const struct executor *x, const int *fds, size_t count, struct error *err)
{
    struct message message = { .kind = MESSAGE_GO };

    return wire_send(x->go, &message, fds, count) < 0 ? error_sys(err, "tell the clone") : 0;
}

/* The new root lies over the sandbox's own directory, or in the stage if there is one. */
static int do_root(struct executor *x, const struct step *step, struct error *err)
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
    if (mount_overlay(x, step, target, err) < 0)
        return -1;
    x->root = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (x->root < 0 || remember(x, "/", step->flags) < 0)
        return error_sys(err, "open the new root");
    return tell(x, &x->root, 1, err);
}

/* The host's own tree, without what is mounted below it. */
static int mount_through(struct executor *x, const struct step *step, int target, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = open_source(tree, err), copy = -1;

    if (source < 0)
        return -1;
    if (needs_id_map(x, step)) {
        copy = steal_fd(&x->copies[step->tree]);
    } else {
        copy = sys_open_tree(source, "", AT_EMPTY_PATH);
        if (copy < 0 || sys_mount_attr(copy, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, -1) < 0)
            return overlay_failed(tree, err);
    }
    return sys_move_mount(copy, target) < 0 ? error_sys(err, "show %s as it is", tree->source) : 0;
}

static int do_tree(struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int target = open_directory(x, step->target, 0755);

    if (target < 0)
        return error_sys(err, "open %s to mount on", step->target);
    if ((tree->mode == TREE_RW ? mount_through : mount_overlay)(x, step, target, err) < 0)
        return -1;
    return remember(x, step->target, step->flags) < 0 ? error_sys(err, "look at %s", step->target) : 0;
}

/* A file that may be written is copied into the writable layer: there is no overlay of a file. */
static int copy_file(struct executor *x, int source, const struct step *step, struct error *err)
{
    autoclose int in = open(sys_fd_path(source).text, O_RDONLY | O_CLOEXEC), out = -1, place = -1;
    ssize_t got = -1;

    place = open_inside(x, step->target, 0);
    out = place < 0 ? -1 : open(sys_fd_path(place).text, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (in >= 0 && out >= 0)
        while ((got = sendfile(out, in, NULL, 1 << 30)) > 0)
            continue;
    if (got < 0)
        return error_sys(err, "copy %s", step->source);

    struct stat status;
    if (fstat(in, &status) < 0 || fchmod(out, status.st_mode & 0777) < 0)
        return error_sys(err, "copy the mode of %s", step->source);
    return 0;
}

static uint64_t mount_attributes(const struct step *step)
{
    return (step->flags & MS_RDONLY ? MOUNT_ATTR_RDONLY : 0U) |
           (step->flags & MS_NOSUID ? MOUNT_ATTR_NOSUID : 0U) |
           (step->flags & MS_NODEV ? MOUNT_ATTR_NODEV : 0U) |
           (step->flags & MS_NOEXEC ? MOUNT_ATTR_NOEXEC : 0U);
}

static bool may_be_missing(const struct step *step)
{
    return (step->mode & STEP_MODE_OPTIONAL) && (errno == ENOENT || errno == ENOTDIR);
}

/* What is at the target becomes a mount of itself, with the attributes of the step: now they hold
 * for it alone. */
static int seal(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int source = open_inside(x, step->target, 0), sealed = -1;

    if (source < 0 && may_be_missing(step))
        return 0;
    if (source < 0 || mount(sys_fd_path(source).text, sys_fd_path(source).text, NULL, MS_BIND, NULL) < 0)
        return error_sys(err, "bind %s", step->target);
    sealed = open_inside(x, step->target, 0);
    if (sealed < 0 || sys_mount_attr(sealed, mount_attributes(step), 0, -1) < 0 ||
        remember_id(x, sys_mount_id(sealed, ""), step->flags) < 0)
        return error_sys(err, "seal %s", step->target);
    return 0;
}

/* A copy, also where it is only read: a bind of the host's own inode could be locked and leased from
 * inside, and would show its path. */
static int do_file(struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = open_source(tree, err);

    if (source < 0)
        return -1;
    if (make_file(x, step->target) < 0)
        return error_sys(err, "make %s", step->target);
    if (copy_file(x, source, step, err) < 0)
        return -1;
    return tree->mode == TREE_RO ? seal(x, step, err) : 0;
}

/* A path below a tree that is written through: itself, if it is a link. */
static int open_below(const struct executor *x, const struct step *step)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int top = open_inside(x, tree->target, O_DIRECTORY);

    if (top < 0)
        return -1;
    return sys_openat2(top, step->target + strlen(tree->target) + 1, O_PATH | O_NOFOLLOW,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* Mounts `source` over the path of the step, read-only.  A link is covered as well as a file. */
static int cover(struct executor *x, const struct step *step, int source, int target, struct error *err)
{
    autoclose int copy = sys_open_tree(source, "", AT_EMPTY_PATH);

    if (copy < 0 || sys_mount_attr(copy, mount_attributes(step), 0, -1) < 0 ||
        sys_move_mount(copy, target) < 0 || remember_id(x, sys_mount_id(copy, ""), step->flags) < 0)
        return error_sys(err, "mount over %s", step->target);
    return 0;
}

static int do_protect(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int target = open_below(x, step);

    if (target < 0)
        return may_be_missing(step) ? 0 : error_sys(err, "open %s", step->target);
    return cover(x, step, target, target, err);
}

/* An empty directory, or a device that this mount lets nobody open. */
static int do_cover(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int target = open_below(x, step), null = -1;
    struct stat status;

    if (target < 0)
        return may_be_missing(step) ? 0 : error_sys(err, "open %s", step->target);
    null = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (null < 0 || fstat(target, &status) < 0)
        return error_sys(err, "look at %s", step->target);
    return cover(x, step, S_ISDIR(status.st_mode) ? x->empty : null, target, err);
}

/* In place of what the image has under that name, which may be a link to anywhere. */
static int do_text(struct executor *x, const struct step *step, struct error *err)
{
    const char *name;
    autoclose int parent = open_parent(x, step->target, &name), file = -1;

    if (parent < 0 && may_be_missing(step))
        return 0;
    if (parent < 0 || (unlinkat(parent, name, 0) < 0 && errno != ENOENT))
        return error_sys(err, "replace %s", step->target);
    file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 || write(file, step->source, strlen(step->source)) < 0 || own_inside(x, parent, name) < 0)
        return error_sys(err, "write %s", step->target);
    return 0;
}

static int do_directory(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int made = open_directory(x, step->target, step->mode);

    return made < 0 ? error_sys(err, "make %s", step->target) : 0;
}

/* All links are in /dev. */
static int do_link(struct executor *x, const struct step *step, struct error *err)
{
    if (symlinkat(step->source, x->dev, step->target + strlen("/dev/")) < 0)
        return error_sys(err, "link %s", step->target);
    return 0;
}

/* /proc, /dev, /sys and /run must be where they say they are, or one could land on another. */
static int open_mount_point(const struct executor *x, const char *path)
{
    int fd = sys_openat2(x->root, path + 1, O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    autoclose int made = open_directory(x, path, 0755);

    if (made < 0)
        return -1;
    return sys_openat2(x->root, path + 1, O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
}

static int do_mount(struct executor *x, const struct step *step, struct error *err)
{
    static const char *const types[STEP_COUNT] = {
        [STEP_PROC] = "proc",
        [STEP_TMPFS] = "tmpfs",
        [STEP_DEVPTS] = "devpts",
    };

    const char *type = types[step->kind];
    autoclose int target = open_mount_point(x, step->target), made = -1;

    if (target < 0 && (errno == ELOOP || errno == ENOTDIR))
        return error_set(err, ERROR_REFUSED, "%s of the image is a link; it must be a directory", step->target);
    if (target < 0)
        return error_sys(err, "make %s to mount on", step->target);
    if (mount(type, sys_fd_path(target).text, type, step->flags, step->source) < 0 ||
        (made = open_inside(x, step->target, O_DIRECTORY)) < 0 ||
        remember_id(x, sys_mount_id(made, ""), step->flags) < 0)
        return error_sys(err, "mount %s on %s", type, step->target);
    if (strcmp(step->target, "/proc") == 0)
        x->proc = steal_fd(&made);
    if (strcmp(step->target, "/dev") == 0)
        x->dev = steal_fd(&made);
    return 0;
}

/* Shows `source` of the host at `target`, with the attributes of the step. */
static int bind_mount(struct executor *x, const struct step *step, int source)
{
    autoclose int copy = sys_open_tree(source, "", AT_EMPTY_PATH);
    autoclose int target = open_directory(x, step->target, 0755);

    if (copy < 0 || target < 0 || sys_mount_attr(copy, mount_attributes(step), 0, -1) < 0 ||
        sys_move_mount(copy, target) < 0)
        return -1;
    return remember_id(x, sys_mount_id(copy, ""), step->flags);
}

static int do_device(struct executor *x, const struct step *step, struct error *err)
{
    static const struct {
        const char *path;
        unsigned major, minor;
    } known[] = { { "/dev/null", 1, 3 },   { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
                  { "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 } };
    autoclose int source = open(step->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (source < 0 || fstat(source, &status) < 0)
        return error_sys(err, "open %s", step->source);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].path, step->source) == 0 &&
            (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(known[i].major, known[i].minor)))
            return error_set(err, ERROR_REFUSED, "%s of the host is not the device of that name", step->source);

    const char *name = step->target + strlen("/dev/");
    autofree char *target = text_format("%s/%s", sys_fd_path(x->dev).text, name);

    if (mknodat(x->dev, name, S_IFREG | 0600, 0) < 0 ||
        mount(sys_fd_path(source).text, target, NULL, MS_BIND, NULL) < 0 ||
        remember_id(x, sys_mount_id(x->dev, name), step->flags) < 0)
        return error_sys(err, "show %s", step->source);
    return 0;
}

static int do_sysfs(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int source = open(step->source, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (source < 0)
        return may_be_missing(step) ? 0 : error_sys(err, "open %s", step->source);
    if (bind_mount(x, step, source) < 0)
        return error_sys(err, "show %s", step->source);
    return 0;
}

/* Masks and device nodes are many, so they go by the descriptor of the fresh /proc or /dev: nobody
 * but us has put anything there yet, and the last component is all there is to look up. */
static int mask_directory(struct executor *x, const char *name, const char *target)
{
    if (x->nothing >= 0)
        return mount(sys_fd_path(x->nothing).text, target, NULL, MS_BIND, NULL);
    if (mount("tmpfs", target, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=755") < 0)
        return -1;
    x->nothing = openat(x->proc, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return x->nothing < 0 ? -1 : 0;
}

static int do_mask(struct executor *x, const struct step *step, struct error *err)
{
    const char *name = step->target + strlen("/proc/");
    autofree char *target = text_format("%s/%s", sys_fd_path(x->proc).text, name);
    struct stat status;
    int result;

    if (fstatat(x->proc, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return may_be_missing(step) ? 0 : error_sys(err, "look at %s", step->target);
    if (!(status.st_mode & S_IRWXO))
        return 0; /* only the host's root may open it, and nobody inside is that */
    if (S_ISDIR(status.st_mode))
        result = mask_directory(x, name, target);
    else
        result = mount(sys_fd_path(x->null).text, target, NULL, MS_BIND, NULL);
    if (result < 0 || remember_id(x, sys_mount_id(x->proc, name), S_ISDIR(status.st_mode) ? MS_RDONLY : 0) < 0)
        return error_sys(err, "hide %s", step->target);
    return 0;
}

/* A mount that was remembered without it must be read-only from here on. */
static int expect_readonly(struct executor *x, const struct step *step)
{
    autoclose int target = open_inside(x, step->target, O_DIRECTORY);
    uint64_t id = target < 0 ? 0 : sys_mount_id(target, "");

    for (size_t i = 0; id && i < x->mount_count; i += 2)
        if (x->mounts[i] == id) {
            x->mounts[i + 1] = step->flags;
            return 0;
        }
    errno = ENOENT;
    return -1;
}

static int do_readonly(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int target = open_inside(x, step->target, O_DIRECTORY);

    if (target < 0 || sys_mount_attr(target, MOUNT_ATTR_RDONLY, 0, -1) < 0 || expect_readonly(x, step) < 0)
        return error_sys(err, "make %s read-only", step->target);
    return 0;
}

/* --- the rest ------------------------------------------------------------------------------ */

/* By the descriptor of the fresh /proc: an image's links cannot lead it astray. */
static int do_knob(struct executor *x, const struct step *step, struct error *err)
{
    if (sys_write_file(x->proc, step->target + strlen("/proc/"), step->source) < 0)
        return may_be_missing(step) ? 0 : error_sys(err, "write %s to %s", step->source, step->target);
    return 0;
}

/* It was made before the plan was known. */
static int do_loopback(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    if (x->network->kind == ERROR_NONE)
        return 0;
    *err = *x->network;
    return -1;
}

#ifdef COVE_UNSAFE
static bool left_out(const struct plan *plan, const struct step *step)
{
    const char *at = plan->without ? strstr(plan->without, step->guard) : NULL;
    size_t len = strlen(step->guard);

    return at && (at == plan->without || at[-1] == ',') && (at[len] == ',' || at[len] == '\0');
}
#else
static bool left_out(const struct plan *plan, const struct step *step)
{
    (void)plan, (void)step;
    return false;
}
#endif

static int adopt_cover(struct executor *x, const struct step *step)
{
    if (step->kind != STEP_PROTECT && step->kind != STEP_COVER)
        return 0;

    autoclose int covered = open_below(x, step);

    if (covered < 0)
        return may_be_missing(step) ? 0 : -1;
    return remember_id(x, sys_mount_id(covered, ""), step->flags);
}

/* Takes the mounter's mounts into the comparison. */
static int adopt(struct executor *x, struct error *err)
{
    for (size_t i = 0; i < x->plan->steps.len; i++) {
        const struct step *step = &x->plan->steps.items[i];
        bool mounted = step->kind == STEP_ROOT || step->kind == STEP_TREE || step->kind == STEP_TMPFS ||
                       step->kind == STEP_SYSFS || (step->kind == STEP_FILE && (step->flags & MS_RDONLY));

        if (step->by != BY_MOUNTER || (step->kind == STEP_PROTECT && left_out(x->plan, step)))
            continue;
        if (step->kind == STEP_READONLY && expect_readonly(x, step) < 0)
            return error_sys(err, "look at %s", step->target);
        if (adopt_cover(x, step) < 0)
            return error_sys(err, "look at %s", step->target);
        if (mounted && remember(x, step->target, step->flags) < 0 && !may_be_missing(step))
            return error_sys(err, "look at %s", step->target);
    }
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
        return adopt(x, err);
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

/* The old root is unmounted with everything on it; what we hold of it by descriptor is closed
 * before a command runs. */
static int do_pivot(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    if (fchdir(x->root) < 0 || sys_pivot_root(".", ".") < 0)
        return error_sys(err, "change the root");
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return error_sys(err, "leave the host's root");
    return 0;
}

static int do_verify(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    return verify_mounts(x, err);
}

static int do_landlock(struct executor *x, const struct step *step, struct error *err)
{
    (void)step;
    return landlock_build(x->plan, &x->landlock, err);
}

static int (*const doers[STEP_COUNT])(struct executor *, const struct step *, struct error *) = {
    [STEP_ROOT] = do_root,       [STEP_TREE] = do_tree,           [STEP_FILE] = do_file,
    [STEP_TEXT] = do_text,       [STEP_DIRECTORY] = do_directory, [STEP_LINK] = do_link,
    [STEP_PROC] = do_mount,      [STEP_TMPFS] = do_mount,         [STEP_DEVPTS] = do_mount,
    [STEP_DEVICE] = do_device,   [STEP_SYSFS] = do_sysfs,         [STEP_MASK] = do_mask,
    [STEP_SEAL] = seal,          [STEP_READONLY] = do_readonly,   [STEP_KNOB] = do_knob,
    [STEP_AWAIT] = do_await,     [STEP_LOOPBACK] = do_loopback,   [STEP_HOSTNAME] = do_hostname,
    [STEP_PROTECT] = do_protect, [STEP_COVER] = do_cover,         [STEP_PIVOT] = do_pivot,
    [STEP_VERIFY] = do_verify,   [STEP_LANDLOCK] = do_landlock,
};

#ifdef COVE_UNSAFE
/* In place of a tree that is left out: the host's own directory, writable.  Everything else is
 * left out by doing nothing. */
static int do_left_out(struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];

    if (step->kind == STEP_ROOT)
        return do_root(x, step, err);
    if (step->kind != STEP_TREE)
        return step->kind == STEP_FILE ? do_file(x, step, err) : 0;

    autoclose int source = open_source(tree, err), copy = -1, target = -1;

    if (source < 0)
        return -1;
    copy = sys_open_tree(source, "", AT_EMPTY_PATH | AT_RECURSIVE);
    target = open_directory(x, step->target, 0755);
    if (copy < 0 || target < 0 ||
        sys_mount_attr(copy, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, needs_id_map(x, step) ? x->userns : -1) <
            0 ||
        sys_move_mount(copy, target) < 0)
        return error_sys(err, "show %s as it is", tree->source);
    return remember(x, step->target, MS_NOSUID | MS_NODEV);
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

/* Errors that say nothing about what the host can do. */
static bool is_shortage(int number)
{
    static const int shortages[] = { EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EIO };

    for (size_t i = 0; i < ARRAY_LEN(shortages); i++)
        if (shortages[i] == number)
            return true;
    return false;
}

static int run_steps(struct executor *x, enum actor actor, struct error *err)
{
    for (size_t i = 0; i < x->plan->steps.len; i++) {
        const struct step *step = &x->plan->steps.items[i];

        if (step->by != actor)
            continue;
        if (carry_out(x, step, err) < 0) {
            if (err->kind == ERROR_SYSTEM && !is_shortage(err->sys_errno))
                error_hint(err, "this needs %s", step_needs(step->kind));
            return error_while(err, "step %zu, %s", i + 1, step_name(step->kind));
        }
    }
    return 0;
}

int executor_clone(struct executor *x, struct error *err)
{
    x->root = x->landlock = x->nothing = -1;
    x->null = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (x->null < 0)
        return error_sys(err, "open /dev/null");
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

static int open_all(struct executor *x, struct error *err)
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
    if (open_all(x, err) < 0 || run_steps(x, BY_MOUNTER, err) < 0)
        return -1;
    return tell(x, NULL, 0, err);
}

int executor_prepare(struct executor *x, struct error *err)
{
    x->copies = memory_zero(x->plan->trees.len * sizeof *x->copies);
    for (size_t i = 0; i < x->plan->steps.len; i++) {
        const struct step *step = &x->plan->steps.items[i];
        const struct tree *tree = &x->plan->trees.items[step->tree];

        if ((step->kind != STEP_ROOT && step->kind != STEP_TREE) || !needs_id_map(x, step))
            continue;
        autoclose int source = open_source(tree, err);
        if (source < 0)
            return -1;
        x->copies[step->tree] = sys_open_tree(source, "", AT_EMPTY_PATH);
        if (x->copies[step->tree] < 0)
            return error_sys(err, "copy the mount of %s", tree->source);
        if (map_ids(x, x->copies[step->tree], tree->source, err) < 0)
            return -1;
    }
    return 0;
}
