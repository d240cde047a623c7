#include "box/steps.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A file that may be written is copied into the writable layer: there is no overlay of a file. */
static int copy_file(struct executor *x, int source, const struct step *step, struct error *err)
{
    autoclose int in = open(sys_fd_path(source).text, O_RDONLY | O_CLOEXEC), out = -1, place = -1;
    ssize_t got = -1;

    place = inside_open(x, step->target, 0);
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

uint64_t step_attributes(const struct step *step)
{
    return (step->flags & MS_RDONLY ? MOUNT_ATTR_RDONLY : 0U) |
           (step->flags & MS_NOSUID ? MOUNT_ATTR_NOSUID : 0U) |
           (step->flags & MS_NODEV ? MOUNT_ATTR_NODEV : 0U) |
           (step->flags & MS_NOEXEC ? MOUNT_ATTR_NOEXEC : 0U);
}

bool step_may_be_missing(const struct step *step)
{
    return (step->mode & STEP_MODE_OPTIONAL) && (errno == ENOENT || errno == ENOTDIR);
}

/* What is at the target becomes a mount of itself, with the attributes of the step: now they hold
 * for it alone. */
int do_seal(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int source = inside_open(x, step->target, 0), sealed = -1;

    if (source < 0 && step_may_be_missing(step))
        return 0;
    if (source < 0 || mount(sys_fd_path(source).text, sys_fd_path(source).text, NULL, MS_BIND, NULL) < 0)
        return error_sys(err, "bind %s", step->target);
    sealed = inside_open(x, step->target, 0);
    if (sealed < 0 || sys_mount_attr(sealed, step_attributes(step), 0, -1) < 0 ||
        mount_remember_id(x, sys_mount_id(sealed, ""), step->flags) < 0)
        return error_sys(err, "seal %s", step->target);
    return 0;
}

/* A copy, also where it is only read: a bind of the host's own inode could be locked and leased from
 * inside, and would show its path.  What commands may have written to is theirs from the first start on. */
int do_file(struct executor *x, const struct step *step, struct error *err)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int source = tree_open_source(tree, err);

    if (source < 0)
        return -1;
    if (tree->mode != TREE_RO && x->plan->resumed)
        return 0;
    if (inside_make_file(x, step->target) < 0)
        return error_sys(err, "make %s", step->target);
    if (copy_file(x, source, step, err) < 0)
        return -1;
    return tree->mode == TREE_RO ? do_seal(x, step, err) : 0;
}

/* A path below a tree that is written through: itself, if it is a link. */
static int open_below(const struct executor *x, const struct step *step)
{
    const struct tree *tree = &x->plan->trees.items[step->tree];
    autoclose int top = inside_open(x, tree->target, O_DIRECTORY);

    if (top < 0)
        return -1;
    return sys_openat2(top, step->target + strlen(tree->target) + 1, O_PATH | O_NOFOLLOW,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* Mounts `source` over the path of the step, read-only.  A link is covered as well as a file. */
static int cover(struct executor *x, const struct step *step, int source, int target, struct error *err)
{
    autoclose int copy = sys_open_tree(source, "", AT_EMPTY_PATH);

    if (copy < 0 || sys_mount_attr(copy, step_attributes(step), 0, -1) < 0 ||
        sys_move_mount(copy, target) < 0 || mount_remember_id(x, sys_mount_id(copy, ""), step->flags) < 0)
        return error_sys(err, "mount over %s", step->target);
    return 0;
}

int do_protect(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int target = open_below(x, step);

    if (target < 0)
        return step_may_be_missing(step) ? 0 : error_sys(err, "open %s", step->target);
    return cover(x, step, target, target, err);
}

/* An empty directory, or a device that this mount lets nobody open. */
int do_cover(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int target = open_below(x, step), null = -1;
    struct stat status;

    if (target < 0)
        return step_may_be_missing(step) ? 0 : error_sys(err, "open %s", step->target);
    null = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (null < 0 || fstat(target, &status) < 0)
        return error_sys(err, "look at %s", step->target);
    return cover(x, step, S_ISDIR(status.st_mode) ? x->empty : null, target, err);
}

/* In place of what the image has under that name, which may be a link to anywhere. */
int do_text(struct executor *x, const struct step *step, struct error *err)
{
    const char *name;

    if (x->plan->resumed)
        return 0; /* since then it is the sandbox's own file */

    autoclose int parent = inside_parent(x, step->target, &name), file = -1;

    if (parent < 0 && step_may_be_missing(step))
        return 0;
    if (parent < 0 || (unlinkat(parent, name, 0) < 0 && errno != ENOENT))
        return error_sys(err, "replace %s", step->target);
    file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0 || write(file, step->source, strlen(step->source)) < 0 || inside_own(x, parent, name) < 0)
        return error_sys(err, "write %s", step->target);
    return 0;
}

int do_directory(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int made = inside_directory(x, step->target, step->mode);

    return made < 0 ? error_sys(err, "make %s", step->target) : 0;
}

/* All links are in /dev. */
int do_link(struct executor *x, const struct step *step, struct error *err)
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
    autoclose int made = inside_directory(x, path, 0755);

    if (made < 0)
        return -1;
    return sys_openat2(x->root, path + 1, O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
}

int do_mount(struct executor *x, const struct step *step, struct error *err)
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
        (made = inside_open(x, step->target, O_DIRECTORY)) < 0 ||
        mount_remember_id(x, sys_mount_id(made, ""), step->flags) < 0)
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
    autoclose int target = inside_directory(x, step->target, 0755);

    if (copy < 0 || target < 0 || sys_mount_attr(copy, step_attributes(step), 0, -1) < 0 ||
        sys_move_mount(copy, target) < 0)
        return -1;
    return mount_remember_id(x, sys_mount_id(copy, ""), step->flags);
}

int do_device(struct executor *x, const struct step *step, struct error *err)
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

    if (fchdir(x->dev) < 0 || mknodat(x->dev, name, S_IFREG | 0600, 0) < 0 ||
        mount(sys_fd_path(source).text, name, NULL, MS_BIND, NULL) < 0 ||
        mount_remember_id(x, sys_mount_id(x->dev, name), step->flags) < 0)
        return error_sys(err, "show %s", step->source);
    return 0;
}

int do_sysfs(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int source = open(step->source, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (source < 0)
        return step_may_be_missing(step) ? 0 : error_sys(err, "open %s", step->source);
    if (bind_mount(x, step, source) < 0)
        return error_sys(err, "show %s", step->source);
    return 0;
}

/* Masks and device nodes are many, so we go into the fresh /proc or /dev for each: nobody but us has put
 * anything there yet, and the last component is all there is to look up. */
static int mask_directory(struct executor *x, const char *name)
{
    if (x->nothing >= 0)
        return mount(sys_fd_path(x->nothing).text, name, NULL, MS_BIND, NULL);
    if (mount("tmpfs", name, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=755") < 0)
        return -1;
    x->nothing = openat(x->proc, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return x->nothing < 0 ? -1 : 0;
}

/* From the new /dev: the host's may be gone from this mount namespace at any moment. */
static int mask_file(struct executor *x, const char *name)
{
    if (x->null < 0)
        x->null = inside_open(x, "/dev/null", O_NOFOLLOW);
    return x->null < 0 ? -1 : mount(sys_fd_path(x->null).text, name, NULL, MS_BIND, NULL);
}

int do_mask(struct executor *x, const struct step *step, struct error *err)
{
    const char *name = step->target + strlen("/proc/");
    struct stat status;
    int result;

    if (fchdir(x->proc) < 0)
        return error_sys(err, "enter /proc");
    if (fstatat(x->proc, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return step_may_be_missing(step) ? 0 : error_sys(err, "look at %s", step->target);
    if (!(status.st_mode & S_IRWXO))
        return 0; /* only the host's root may open it, and nobody inside is that */
    if (S_ISDIR(status.st_mode))
        result = mask_directory(x, name);
    else
        result = mask_file(x, name);
    if (result < 0 ||
        mount_remember_id(x, sys_mount_id(x->proc, name), S_ISDIR(status.st_mode) ? MS_RDONLY : 0) < 0)
        return error_sys(err, "hide %s", step->target);
    return 0;
}

/* A mount that was remembered without it must be read-only from here on. */
static int expect_readonly(struct executor *x, const struct step *step)
{
    autoclose int target = inside_open(x, step->target, O_DIRECTORY);
    uint64_t id = target < 0 ? 0 : sys_mount_id(target, "");

    for (size_t i = 0; id && i < x->made->count; i++)
        if (x->made->items[i].id == id) {
            x->made->items[i].flags = step->flags;
            return 0;
        }
    errno = ENOENT;
    return -1;
}

int do_readonly(struct executor *x, const struct step *step, struct error *err)
{
    autoclose int target = inside_open(x, step->target, O_DIRECTORY);

    if (target < 0 || sys_mount_attr(target, MOUNT_ATTR_RDONLY, 0, -1) < 0 || expect_readonly(x, step) < 0)
        return error_sys(err, "make %s read-only", step->target);
    return 0;
}
