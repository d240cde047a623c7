#include "changes/patchtree.h"

#include "base/own.h"
#include "changes/scan.h"

#include <fcntl.h>
#include <string.h>

struct tree_walk {
    int base;
    const struct changes *changes;
    const struct change *change;
    patchtree_visit *visit;
    void *owner;
    struct {
        const char **items; /* paths of the base that are changes of their own; sorted */
        size_t len, cap;
    } taken;
    struct strings left; /* directories of the base that are still to be read */
    size_t seen;
};

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void find_taken(struct tree_walk *walk)
{
    for (size_t i = 0; i < walk->changes->len; i++) {
        const struct change *other = &walk->changes->items[i];

        if (other != walk->change && other->old.type != SIDE_NONE &&
            !(other->old.type == SIDE_DIRECTORY && other->kind == CHANGE_MODE))
            *array_add(&walk->taken) = other->from ? other->from : other->path;
    }
    if (walk->taken.len)
        qsort(walk->taken.items, walk->taken.len, sizeof *walk->taken.items, by_string);
}

static bool is_taken(const struct tree_walk *walk, const char *path)
{
    return walk->taken.len &&
           bsearch(&path, walk->taken.items, walk->taken.len, sizeof *walk->taken.items, by_string);
}

static void take(struct tree_walk *walk, const char *path, int dir, const char *name, const struct stat *status)
{
    struct change implied = { .kind = CHANGE_REMOVED, .path = (char *)(uintptr_t)path };

    scan_fill(&implied.old, status, dir, name, 0);
    walk->visit(walk->owner, &implied);
    free(implied.old.target);
}

static void look_into(struct tree_walk *walk, const char *directory)
{
    autoclose int dir = scan_open(walk->base, directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoentries struct entries entries = { 0 };

    if (dir < 0 || scan_list(dir, LISTED_MAX, NULL, &entries) < 0)
        return;
    walk->seen += entries.len;
    for (size_t i = 0; i < entries.len; i++) {
        const char *name = entries.items[i].name;
        autofree char *path = scan_join(directory, name);
        struct stat status;

        if (is_taken(walk, path) || fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
            continue;
        if (S_ISDIR(status.st_mode))
            strings_add(&walk->left, path);
        else if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))
            take(walk, path, dir, name, &status);
    }
}

static bool is_of_interest(const struct change *change)
{
    return change->kind == CHANGE_REMOVED && change->old.type == SIDE_DIRECTORY && change->count > 0;
}

bool patchtree_walk(int base, const struct changes *changes, const struct change *change,
                    patchtree_visit *visit, void *owner)
{
    struct tree_walk walk = {
        .base = base, .changes = changes, .change = change, .visit = visit, .owner = owner
    };

    if (!is_of_interest(change))
        return true;
    find_taken(&walk);
    strings_add(&walk.left, change->path);
    while (walk.left.len && walk.seen < LISTED_MAX) {
        autofree char *directory = walk.left.items[--walk.left.len];

        walk.left.items[walk.left.len] = NULL;
        look_into(&walk, directory);
    }

    bool whole = walk.left.len == 0;

    strings_free(&walk.left);
    free((void *)walk.taken.items);
    return whole;
}
