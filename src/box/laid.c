#include "box/laid.h"

#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_SIZE = 24 };

const char *laid_workspace(const struct plan *plan)
{
    for (size_t i = 0; i < plan->trees.len; i++)
        if (strcmp(plan->trees.items[i].why, TREE_WHY_WORKSPACE) == 0)
            return plan->trees.items[i].target[1] ? plan->trees.items[i].target : NULL;
    return NULL;
}

/* One directory of the root's layer. */
static int put_directory(const struct plan *plan, int upper, int lower, const char *path, bool own)
{
    autoclose int below = sys_openat2(lower, path, O_PATH | O_DIRECTORY,
                                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status = { .st_mode = 0755, .st_uid = plan->ids.base, .st_gid = plan->ids.base };

    if (below < 0 ? errno != ENOENT : fstat(below, &status) < 0)
        return -1;
    if (mkdirat(upper, path, status.st_mode & 07777) < 0 && errno != EEXIST)
        return -1;
    return own ? fchownat(upper, path, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) : 0;
}

static bool is_there(int dir, const char *path)
{
    return faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void laid_put(const struct plan *plan, int upper, int lower, bool own)
{
    const char *workspace = laid_workspace(plan);
    autofree char *path = workspace ? text_copy(workspace + 1) : NULL;

    if (!path || is_there(lower, path) || (!own && is_there(upper, path)))
        return;
    for (char *end = strchrnul(path, '/');; end = strchrnul(end + 1, '/')) {
        char held = *end;

        *end = '\0';
        if (put_directory(plan, upper, lower, path, own) < 0 || !held)
            return;
        *end = held;
    }
}

/* FNV-1a, with the end of each text: two paths of the owner's would have to be alike in it by chance, and then
 * one sandbox would show empty directories too many. */
static uint64_t hash(uint64_t sum, const char *text)
{
    for (size_t i = 0; i <= strlen(text); i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3ULL;
    return sum;
}

/* Only of the host image nothing changes but its name. */
static bool name_it(const struct plan *plan, char name[NAME_SIZE])
{
    const char *workspace = plan->host_image ? laid_workspace(plan) : NULL;

    if (!workspace)
        return false;
    snprintf(name, NAME_SIZE, "l%016" PRIx64,
             hash(hash(0xcbf29ce484222325ULL, plan->trees.items[0].source), workspace));
    return true;
}

/* False: there is none, or it is not whole. */
static bool make_first(const struct plan *plan, int dir)
{
    char name[NAME_SIZE];

    if (!name_it(plan, name) || mkdirat(dir, name, 0755) < 0)
        return false;

    autoclose int upper = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int lower = open(plan->trees.items[0].source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (upper < 0 || lower < 0)
        return false;
    laid_put(plan, upper, lower, false);
    return true;
}

static bool make_layer(int dir, char letter, int number)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof name, "%c%d", letter, number);
    return mkdirat(dir, name, 0755) == 0;
}

bool laid_furnish(const void *owner, int dir)
{
    const struct plan *plan = owner;
    bool first = make_first(plan, dir);

    for (int i = 0; i < plan->layers; i++)
        if ((!(first && i == 0) && !make_layer(dir, 'u', i)) || !make_layer(dir, 'w', i))
            return false;
    return true;
}

void laid_take(const struct plan *plan, int dir, const char *layer)
{
    char name[NAME_SIZE];

    if (name_it(plan, name))
        (void)renameat(dir, name, dir, layer);
}
