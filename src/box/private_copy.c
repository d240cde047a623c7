#include "box/private_copy.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

/* From here on `source` is the copy's, and the origin is what was checked. */
static void remember_origin(struct tree *tree)
{
    if (tree->origin)
        return;
    tree->origin = steal_ptr(&tree->source);
    tree->origin_device = tree->device;
    tree->origin_inode = tree->inode;
}

static int open_origin(const struct tree *tree, struct error *err)
{
    autoclose int fd = sys_openat2(AT_FDCWD, tree->origin, O_RDONLY | O_DIRECTORY,
                                   RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open %.200s", tree->origin);
    if (status.st_dev != tree->origin_device || status.st_ino != tree->origin_inode)
        return error_set(err, ERROR_REFUSED, "%.200s was replaced by something else during the start",
                         tree->origin);
    return steal_fd(&fd);
}

static int copy_tree(struct tree *tree, int parent, const char *name, const struct copytree *how,
                     struct strings *notes, struct error *err)
{
    struct copytree copy = *how;
    autoclose int from = -1, to = -1;
    struct stat status;

    from = open_origin(tree, err);
    if (from < 0)
        return -1;
    if (mkdirat(parent, name, 0700) < 0 ||
        (to = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return error_sys(err, "make a place for a copy of %.200s", tree->origin);
    copy.from = from;
    copy.to = to;
    copy.leave = &tree->hide;
    if (copytree_run(&copy, notes, err) < 0)
        return error_while(err, "copy %.200s", tree->origin);
    if (fstat(to, &status) < 0)
        return error_sys(err, "look at the copy of %.200s", tree->origin);
    tree->device = status.st_dev;
    tree->inode = status.st_ino;
    return 0;
}

/* The copy of the workspace, as far as `step` is about one. */
static struct tree *tree_of(struct plan *plan, const struct step *step)
{
    struct tree *tree = &plan->trees.items[step->tree];

    return step->layer < 0 || strcmp(tree->why, TREE_WHY_WORKSPACE) != 0 ? NULL : tree;
}

int private_copy_use(struct plan *plan, const struct private_place *place, struct error *err)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct tree *tree = tree_of(plan, &plan->steps.items[i]);
        struct stat status;

        if (!tree)
            continue;

        autofree char *name = text_format("b%d", plan->steps.items[i].layer);

        remember_origin(tree);
        free(tree->source);
        tree->source = text_format("%s/%s", place->path, name);
        if (fstatat(place->dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return error_sys(err, "look at the copy of %.200s", tree->origin);
        tree->device = status.st_dev;
        tree->inode = status.st_ino;
    }
    return 0;
}

int private_copy_take(struct plan *plan, const struct private_place *place, const struct copytree *how,
                      struct strings *notes, struct error *err)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct tree *tree = tree_of(plan, &plan->steps.items[i]);

        if (!tree)
            continue;

        autofree char *name = text_format("b%d", plan->steps.items[i].layer);

        remember_origin(tree);
        free(tree->source);
        tree->source = text_format("%s/%s", place->path, name);
        if (copy_tree(tree, place->dir, name, how, notes, err) < 0)
            return -1;
    }
    return 0;
}
