/* Who sees all layers at once: sweeping, and measuring what one of them alone holds. */

#include "store/layers.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- sweeping --- */

struct sweep {
    int state, layers;
};

static bool exists(int dir, const char *path)
{
    return faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* What cannot be looked at is there. */
static bool is_alive(const struct sweep *sweep, const char *holder)
{
    autofree char *sandbox = text_format("sandboxes/%s", holder), *fresh = text_format(LAYERS_NEW "%s", holder);

    if (text_starts(holder, LAYERS_SNAPSHOT)) {
        autofree char *snapshot =
            text_format("snapshots/%s/" LAYERS_SNAPSHOT_LINK, holder + strlen(LAYERS_SNAPSHOT));

        return exists(sweep->state, snapshot);
    }
    return exists(sweep->state, sandbox) || exists(sweep->layers, holder) || exists(sweep->layers, fresh);
}

static int list(int dir, const char *path, struct strings *out)
{
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclosedir DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries && fd >= 0)
        close(fd);
    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        strings_add(out, entry->d_name);
    return entries ? 0 : -1;
}

/* Without `refs` it is one that somebody died over while removing it; to release it from nobody goes on there.
 */
static void sweep_layer(const struct sweep *sweep, const char *lid)
{
    autofree char *refs = text_format("%s/refs", lid);
    autostrings struct strings holders = STRINGS_NONE;
    struct error ignored;

    if (list(sweep->layers, refs, &holders) < 0) {
        if (errno == ENOENT && exists(sweep->layers, lid) && mkdirat(sweep->layers, refs, 0700) == 0)
            (void)layers_release(sweep->layers, lid, "nobody", &ignored);
        return;
    }
    if (!holders.len)
        (void)layers_release(sweep->layers, lid, "nobody", &ignored);
    for (size_t i = 0; i < holders.len; i++)
        if (!is_alive(sweep, holders.items[i]))
            (void)layers_release(sweep->layers, lid, holders.items[i], &ignored);
}

/* A sandbox that was interrupted while freezing has its files there. */
static bool is_awaited(const struct sweep *sweep, const char *lid)
{
    autostrings struct strings sandboxes = STRINGS_NONE;
    char text[ID_LENGTH + 1];

    if (list(sweep->state, "sandboxes", &sandboxes) < 0)
        return errno != ENOENT;
    for (size_t i = 0; i < sandboxes.len; i++) {
        autofree char *path = text_format("sandboxes/%s/" STORE_FREEZING, sandboxes.items[i]);
        ssize_t len = readlinkat(sweep->state, path, text, sizeof text);

        if ((len < 0 && errno != ENOENT && errno != ENOTDIR) ||
            (len == ID_LENGTH && memcmp(text, lid, ID_LENGTH) == 0))
            return true;
    }
    return false;
}

static void sweep_name(const struct sweep *sweep, const char *name)
{
    struct error ignored;

    if (text_starts(name, LAYERS_GONE) ||
        (text_starts(name, LAYERS_NEW) && !is_awaited(sweep, name + strlen(LAYERS_NEW))))
        (void)store_remove_tree(sweep->layers, name, &ignored);
}

/* One without its link was left by somebody who died over making or removing it: who does that keeps us out. */
static void sweep_snapshots(const struct sweep *sweep)
{
    autoclose int all = openat(sweep->state, "snapshots", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autostrings struct strings names = STRINGS_NONE;
    struct error ignored;

    if (all < 0 || list(all, ".", &names) < 0)
        return;
    for (size_t i = 0; i < names.len; i++) {
        autofree char *link = text_format("%s/" LAYERS_SNAPSHOT_LINK, names.items[i]);

        if (!exists(all, link))
            (void)store_remove_tree(all, names.items[i], &ignored);
    }
}

void layers_sweep(const char *state)
{
    autoclose int base = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int layers = base < 0 ? -1 : openat(base, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct sweep sweep = { base, layers };
    autostrings struct strings names = STRINGS_NONE;

    if (layers < 0 || flock(layers, LOCK_EX | LOCK_NB) < 0 || list(layers, ".", &names) < 0)
        return;
    /* Temporary names first: then what they held is free in the same sweep. */
    for (size_t i = 0; i < names.len; i++)
        sweep_name(&sweep, names.items[i]);
    for (size_t i = 0; i < names.len; i++)
        if (store_is_id(names.items[i]))
            sweep_layer(&sweep, names.items[i]);
    sweep_snapshots(&sweep);
}

/* --- measuring --- */

enum { DEPTH_MAX = 64 };

/* A file with several links: it counts when all of them are in this layer. */
struct shared {
    ino_t inode;
    nlink_t links;
    uint64_t bytes;
};

struct sum {
    uint64_t bytes, files;
    struct {
        struct shared *items;
        size_t len, cap;
    } links;
};

static void add_file(struct sum *sum, const struct stat *status)
{
    uint64_t bytes = (uint64_t)status->st_blocks * 512;

    sum->files++;
    if (S_ISDIR(status->st_mode) || status->st_nlink == 1)
        sum->bytes += bytes;
    else
        *array_add(&sum->links) = (struct shared){ status->st_ino, status->st_nlink, bytes };
}

static void add_below(struct sum *sum, int dir, unsigned depth)
{
    int again = depth < DEPTH_MAX ? sys_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK) : -1;
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));) {
        struct stat status;

        if (fstatat(dir, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        add_file(sum, &status);
        if (!S_ISDIR(status.st_mode))
            continue;

        autoclose int below = sys_open_beneath(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

        if (below >= 0)
            add_below(sum, below, depth + 1);
    }
}

static int by_inode(const void *a, const void *b)
{
    ino_t left = ((const struct shared *)a)->inode, right = ((const struct shared *)b)->inode;

    return left < right ? -1 : left > right;
}

static void add_links(struct sum *sum)
{
    struct shared *items = sum->links.items;
    size_t count = sum->links.len;

    if (count)
        qsort(items, count, sizeof *items, by_inode);
    for (size_t i = 0, run; i < count; i += run) {
        for (run = 1; i + run < count && items[i + run].inode == items[i].inode; run++)
            continue;
        if (run == items[i].links)
            sum->bytes += items[i].bytes;
    }
    free(items);
}

int layers_size(int layers, const char *lid, uint64_t *bytes, uint64_t *files, struct error *err)
{
    autoclose int dir = openat(layers, lid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct sum sum = { 0 };

    if (dir < 0)
        return error_sys(err, "open the layer %s", lid);

    autostrings struct strings names = STRINGS_NONE;

    if (list(dir, ".", &names) < 0)
        return error_sys(err, "list the layer %s", lid);
    for (size_t i = 0; i < names.len; i++) {
        autoclose int upper = strchr("ub", names.items[i][0])
                                  ? sys_open_beneath(dir, names.items[i], O_RDONLY | O_DIRECTORY)
                                  : -1;

        if (upper >= 0)
            add_below(&sum, upper, 0);
    }
    add_links(&sum);
    *bytes = sum.bytes;
    *files = sum.files;
    return 0;
}

int layers_measure(int layers, const char *lid, struct error *err)
{
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

    if (layers_read(layers, lid, &layer, err) < 0 ||
        layers_size(layers, lid, &layer.bytes, &layer.files, err) < 0)
        return -1;
    layer.measured = true;
    return layers_write(layers, &layer, err);
}
