#include "cli/through.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "cli/say.h"
#include "store/copytree.h"
#include "store/store.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TOLD_MAX = 20,
    PROTECTED_MAX = 4096, /* each is a mount */
};

void through_free(struct through *through)
{
    autorun_free(&through->before);
    strings_free(&through->aside);
    strings_free(&through->stuck);
}

static int open_tree(const struct tree *tree, struct error *err)
{
    autoclose int fd = sys_openat2(AT_FDCWD, tree->source, O_RDONLY | O_DIRECTORY,
                                   RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open %.200s", tree->source);
    if (status.st_dev != tree->device || status.st_ino != tree->inode)
        return error_set(err, ERROR_REFUSED, "%.200s was replaced by something else", tree->source);
    return steal_fd(&fd);
}

int through_prepare(struct through *through, struct trees *trees, struct error *err)
{
    struct tree *tree = NULL;

    for (size_t i = 0; i < trees->len && !tree; i++)
        if (strcmp(trees->items[i].why, TREE_WHY_WORKSPACE) == 0)
            tree = &trees->items[i];
    if (!tree)
        return error_set(err, ERROR_INVALID, "there is no workspace");

    autoclose int fd = open_tree(tree, err);

    if (fd < 0 || autorun_find(fd, &through->before, err) < 0)
        return -1;
    if (through->before.len > PROTECTED_MAX)
        return error_set(err, ERROR_UNSUPPORTED,
                         "more than %d files of the workspace act by merely being there; use --workspace cow",
                         PROTECTED_MAX);
    for (size_t i = 0; i < through->before.len; i++)
        strings_add(&tree->protect, through->before.items[i].path);
    return 0;
}

void through_announce(const struct through *through, const struct plan *plan)
{
    say_warning("--workspace rw: the command writes to %.200s itself; what acts by merely being there "
                "(paths: %zu) stays as it is",
                plan->workspace, through->before.len);
}

/* --- what it made --- */

static const struct step *step_through(const struct plan *plan)
{
    for (size_t i = 0; i < plan->steps.len; i++)
        if (plan->steps.items[i].kind == STEP_TREE &&
            plan->trees.items[plan->steps.items[i].tree].mode == TREE_RW)
            return &plan->steps.items[i];
    return NULL;
}

/* The directory of the layer in which `path` is to lie, with the modes that those of the tree have: else
 * they would look changed. */
static int make_directories(int tree, int layer, const char *path)
{
    autoclose int at = openat(layer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofree char *part = text_copy(path);
    char *name = part;

    for (char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1, *slash = '/') {
        struct stat status;
        int below;

        *slash = '\0';
        if (fstatat(tree, part, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            (mkdirat(at, name, 0700) < 0 && errno != EEXIST) ||
            fchmodat(at, name, (status.st_mode & 07777) | 0700, 0) < 0 ||
            (below = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
            return -1;
        close(at);
        at = below;
    }
    return steal_fd(&at);
}

static int copy_over(int from, int to, const char *name, struct error *err)
{
    struct copytree copy = { .from = from, .to = to, .only = name };
    autostrings struct strings notes = STRINGS_NONE;

    if (copytree_run(&copy, &notes, err) < 0)
        return -1;
    if (unlinkat(from, name, 0) == 0)
        return 0;
    return errno == EISDIR || errno == EPERM ? store_remove_tree(from, name, err) : error_sys(err, "remove it");
}

/* What the command made, it may have closed; and the directory around it. */
static int move_closed(int from, int to, const char *name)
{
    autoclose int entry = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat parent, status;

    if (fstat(from, &parent) < 0 || fchmod(from, (parent.st_mode & 07777) | 0700) < 0)
        return -1;
    if (entry < 0)
        entry = openat(from, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (entry >= 0 && fstat(entry, &status) == 0 && S_ISDIR(status.st_mode))
        (void)chmod(sys_fd_path(entry).text, 0700);

    int result = renameat2(from, name, to, name, RENAME_NOREPLACE), number = errno;

    (void)fchmod(from, parent.st_mode & 07777);
    errno = number;
    return result;
}

static int move_over(int from, int to, const char *name)
{
    if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EACCES ? move_closed(from, to, name) : -1;
}

/* By a rename if both lie on one file system: then there is no moment with two, or none. */
static int set_aside(int tree, int layer, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    autofree char *above = slash ? text_format("%.*s", (int)(slash - path), path) : text_copy(".");
    autoclose int from = sys_open_beneath(tree, above, O_RDONLY | O_DIRECTORY), to = -1;

    if (from < 0)
        return error_sys(err, "open %.200s", above);
    to = make_directories(tree, layer, path);
    if (to < 0)
        return error_sys(err, "make a place for %.200s", path);
    if (move_over(from, to, name) == 0)
        return 0;
    if (errno != EXDEV)
        return error_sys(err, "set %.200s aside", path);
    return copy_over(from, to, name, err) < 0 ? error_while(err, "set %.200s aside", path) : 0;
}

static int open_layer(int dir, int number, int tree, struct error *err)
{
    autofree char *name = text_format("u%d", number);
    struct stat status;

    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make the layer %s", name);

    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && fstat(tree, &status) == 0)
        (void)fchmod(fd, status.st_mode & 07777);
    return fd < 0 ? error_sys(err, "open the layer %s", name) : fd;
}

/* The owner's own that the command moved, with a directory around it, is where it is now. */
static bool was_there(const struct through *through, const struct autorun_place *place)
{
    for (size_t i = 0; i < through->before.len; i++)
        if (through->before.items[i].device == place->device && through->before.items[i].inode == place->inode)
            return true;
    return false;
}

/* One round; how many were set aside, -1 if the tree cannot be looked through. */
static ssize_t judge(struct through *through, int tree, int layer, bool *more, struct error *err)
{
    struct autorun after = AUTORUN_NONE;
    size_t before = through->aside.len;

    if (autorun_find(tree, &after, err) < 0)
        return -1;
    for (size_t i = 0; i < after.len; i++) {
        const struct autorun_place *place = &after.items[i];
        struct error why;

        if (was_there(through, place))
            continue;
        /* Also where a protected one was: the kernel keeps that from being moved, not the directory around it.
         */
        if (set_aside(tree, layer, place->path, &why) < 0)
            strings_take(&through->stuck, text_format("%s (%s)", place->path, why.text));
        else
            strings_add(&through->aside, place->path);
    }
    *more = after.more;
    autorun_free(&after);
    return (ssize_t)(through->aside.len - before);
}

void through_finish(struct through *through, const struct plan *plan, int dir)
{
    const struct step *step = step_through(plan);
    struct error err = { 0 };
    autoclose int tree = step ? open_tree(&plan->trees.items[step->tree], &err) : -1, layer = -1;
    bool more = true;

    if (!step)
        return;
    layer = tree < 0 ? -1 : open_layer(dir, step->layer, tree, &err);
    for (ssize_t moved = 1; layer >= 0 && more && moved > 0;)
        moved = judge(through, tree, layer, &more, &err);
    if (layer < 0 || more || err.kind != ERROR_NONE)
        strings_take(&through->stuck, text_format("all that cannot be looked through (%s)", err.text));
}

static void tell(const char *what, const struct strings *paths, const char *then)
{
    autotext struct text line = TEXT_NONE;

    if (!paths->len)
        return;
    text_addf(&line, "cove: warning: %s:", what);
    for (size_t i = 0; i < paths->len && i < TOLD_MAX; i++) {
        text_add(&line, i ? ", " : " ");
        text_add_inert(&line, paths->items[i]);
    }
    if (paths->len > TOLD_MAX)
        text_addf(&line, " and %zu more", paths->len - TOLD_MAX);
    text_addf(&line, "%s\n", then);
    fputs(text_string(&line), stderr);
}

void through_tell(const struct through *through)
{
    tell("taken out of the workspace, since they act by merely being there", &through->aside,
         " (cove diff shows them, cove apply asks for them)");
    tell("act by merely being there, and could NOT be taken out of the workspace", &through->stuck, "");
}
