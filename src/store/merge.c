/* Merging.
 *
 * Theory of operation.  Of each name the newest layer that has it decides.  A file is linked, a white-out made
 * again. A directory goes together with those of the older layers up to the first that is opaque, or is no
 * directory: what lies below that is hidden, also from the layers that are not merged here, so the merged one
 * becomes opaque.
 *
 * White-outs are left out where everything below is hidden already.  The kernel looks for them in a directory
 * only if it is merged, or has the mark that it was copied from a lower one (`origin`); in any other they would
 * be listed as files.  That mark is therefore kept. */

#include "store/merge.h"

#include "base/error.h"
#include "base/map.h"
#include "base/own.h"
#include "base/text.h"
#include "store/attributes.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

/* One more than layers: a sandbox's own directory lies on them. */
enum { SOURCES_MAX = LAYERS_DEPTH_MAX + 1, DEPTH_MAX = 256, MARK_MAX = 256 };

/* The directories that make up one, newest first. */
struct pile {
    int fds[SOURCES_MAX];
    size_t count;
    bool covered; /* nothing below it is seen */
};

#define autopile __attribute__((cleanup(pile_close)))

static void pile_close(struct pile *pile)
{
    while (pile->count)
        close(pile->fds[--pile->count]);
}

struct merger {
    enum merge_marks marks;
    unsigned depth;
    struct error *err;
};

/* --- marks --- */

static ssize_t get_mark(const struct merger *merger, int fd, const char *mark, void *value)
{
    char name[64];

    snprintf(name, sizeof name, "%s.overlay.%s", merger->marks == MERGE_USER ? "user" : "trusted", mark);
    return fgetxattr(fd, name, value, MARK_MAX);
}

static int set_mark(const struct merger *merger, int fd, const char *mark, const void *value, size_t len)
{
    char name[64];

    snprintf(name, sizeof name, "%s.overlay.%s", merger->marks == MERGE_USER ? "user" : "trusted", mark);
    return fsetxattr(fd, name, value, len, 0);
}

static bool is_opaque(const struct merger *merger, int fd)
{
    char value[MARK_MAX];

    return get_mark(merger, fd, "opaque", value) == 1 && value[0] == 'y';
}

static int keep_origin(const struct merger *merger, const struct pile *pile, int out)
{
    char value[MARK_MAX];

    for (size_t i = 0; i < pile->count; i++) {
        ssize_t len = get_mark(merger, pile->fds[i], "origin", value);

        if (len >= 0)
            return set_mark(merger, out, "origin", value, (size_t)len);
    }
    return 0;
}

/* --- one directory --- */

static int failed(const struct merger *merger, const char *name)
{
    return error_sys(merger->err, "merge %s", name);
}

/* What is called `name` in the directories from number `from` on, as far as it counts. */
static int gather(const struct merger *merger, const struct pile *above, size_t from, const char *name,
                  struct pile *out)
{
    for (size_t i = from; i < above->count && !out->covered; i++) {
        int fd = sys_open_beneath(above->fds[i], name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

        if (fd >= 0) {
            out->fds[out->count++] = fd;
            out->covered = is_opaque(merger, fd);
        } else if (errno == ENOTDIR || errno == ELOOP) {
            out->covered = true;
        } else if (errno != ENOENT) {
            return failed(merger, name);
        }
    }
    return 0;
}

static int merge_pile(struct merger *merger, const struct pile *pile, int out);

static int merge_directory(struct merger *merger, const struct pile *above, size_t from, const char *name,
                           int out)
{
    autopile struct pile pile = { .covered = false };
    autoclose int made = -1;

    if (gather(merger, above, from, name, &pile) < 0)
        return -1;
    if (mkdirat(out, name, 0700) < 0 || (made = sys_open_beneath(out, name, O_RDONLY | O_DIRECTORY)) < 0)
        return failed(merger, name);
    if (pile.covered && !above->covered && set_mark(merger, made, "opaque", "y", 1) < 0)
        return failed(merger, name);
    pile.covered |= above->covered;
    if (keep_origin(merger, &pile, made) < 0)
        return failed(merger, name);
    if (merge_pile(merger, &pile, made) < 0)
        return -1;
    /* Last: the mode may close it, and whatever is made in it changes its time. */
    return attributes_copy(above->fds[from], name, out, name) < 0 ? failed(merger, name) : 0;
}

static int merge_entry(struct merger *merger, const struct pile *pile, size_t from, const char *name, int out)
{
    struct stat status;

    if (fstatat(pile->fds[from], name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(merger, name);
    if (S_ISDIR(status.st_mode))
        return merge_directory(merger, pile, from, name, out);
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0)) {
        if (!pile->covered && mknodat(out, name, S_IFCHR, makedev(0, 0)) < 0)
            return failed(merger, name);
        return 0;
    }
    return linkat(pile->fds[from], name, out, name, 0) < 0 ? failed(merger, name) : 0;
}

static int merge_source(struct merger *merger, const struct pile *pile, size_t from, struct map *seen, int out)
{
    int again = sys_open_beneath(pile->fds[from], ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries)
        return failed(merger, "a directory");
    for (const struct dirent *entry; (entry = sys_next_entry(entries));)
        if (map_add(seen, entry->d_name, 1) == 1 && merge_entry(merger, pile, from, entry->d_name, out) < 0)
            return -1;
    return errno ? failed(merger, "a directory") : 0;
}

static int merge_pile(struct merger *merger, const struct pile *pile, int out)
{
    automap struct map seen = MAP_NONE;
    int result = 0;

    if (merger->depth == DEPTH_MAX)
        return error_set(merger->err, ERROR_UNSUPPORTED, "directories deeper than %d cannot be merged",
                         DEPTH_MAX);
    merger->depth++;
    for (size_t i = 0; result == 0 && i < pile->count; i++)
        result = merge_source(merger, pile, i, &seen, out);
    merger->depth--;
    return result;
}

int merge_uppers(const int *sources, size_t count, int out, enum merge_marks marks, struct error *err)
{
    struct merger merger = { .marks = marks, .err = err };
    struct pile pile = { .count = count };

    if (count > SOURCES_MAX)
        return error_set(err, ERROR_INVALID, "too many layers are to be merged");
    memcpy(pile.fds, sources, count * sizeof *sources);
    if (keep_origin(&merger, &pile, out) < 0)
        return failed(&merger, "a layer");
    return merge_pile(&merger, &pile, out);
}

/* --- layers --- */

int merge_wanted(int layers, const char *top, size_t *count, struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;
    uint64_t sum = 0;
    size_t taken = 0;

    *count = 0;
    if (layers_chain(layers, top, &chain, err) < 0)
        return -1;
    if (chain.len < LAYERS_DEPTH_SOFT)
        return 0;
    for (; taken < chain.len; taken++) {
        autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

        if (layers_read(layers, chain.items[taken], &layer, err) < 0)
            return -1;
        if (layer.copy)
            break;
        if (chain.len - taken + 1 <= LAYERS_DEPTH_SOFT / 2 && layer.weight > 2 * sum)
            break;
        sum += layer.weight;
    }
    *count = taken;
    return 0;
}

static int open_upper(int layers, const char *lid, const char *name)
{
    autofree char *path = text_format("%s/%s", lid, name);

    return sys_open_beneath(layers, path, O_RDONLY | O_DIRECTORY);
}

/* One tree of them; which of them have it is found here. */
static int merge_tree(int layers, const struct strings *parts, const char *name, int out,
                      enum merge_marks marks, struct error *err)
{
    autopile struct pile pile = { .covered = false };
    autoclose int made = -1;
    const char *newest = NULL;

    for (size_t i = 0; i < parts->len; i++) {
        int fd = open_upper(layers, parts->items[i], name);

        if (fd < 0 && errno != ENOENT)
            return error_sys(err, "open %s of the layer %s", name, parts->items[i]);
        if (fd < 0)
            continue;
        newest = newest ? newest : parts->items[i];
        pile.fds[pile.count++] = fd;
    }
    if (!newest)
        return 0;

    autofree char *like = text_format("%s/%s", newest, name);

    if (mkdirat(out, name, 0700) < 0 || (made = sys_open_beneath(out, name, O_RDONLY | O_DIRECTORY)) < 0)
        return error_sys(err, "make a merged %s", name);
    if (merge_uppers(pile.fds, pile.count, made, marks, err) < 0)
        return -1;
    return attributes_copy(layers, like, out, name) < 0 ? error_sys(err, "make a merged %s", name) : 0;
}

/* The names of the trees that any of them has. */
static int list_trees(int layers, const struct strings *parts, struct strings *out, struct error *err)
{
    for (size_t i = 0; i < parts->len; i++) {
        int fd = openat(layers, parts->items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        autoclosedir DIR *entries = fd < 0 ? NULL : fdopendir(fd);

        if (!entries)
            return error_sys(err, "list the layer %s", parts->items[i]);
        for (const struct dirent *entry; (entry = sys_next_entry(entries));)
            if (entry->d_name[0] == 'u')
                strings_add(out, entry->d_name);
    }
    strings_sort(out);
    return 0;
}

/* The newest lends its step; what the last one lies on is below. */
static int describe(int layers, const struct strings *chain, size_t count, struct layer_info *out,
                    struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        autolayerinfo struct layer_info part = LAYER_INFO_NONE;

        if (layers_read(layers, chain->items[i], &part, err) < 0)
            return -1;
        out->weight += part.weight;
        strings_add(&out->merged, part.id);
        if (i == 0) {
            out->step = part.step;
            out->ids = part.ids;
            memcpy(out->sandbox, part.sandbox, sizeof out->sandbox);
        }
        if (part.copy)
            return error_set(err, ERROR_INVALID, "%s is no layer that a sandbox wrote", part.id);
        if (part.ids != out->ids)
            return error_set(err, ERROR_INVALID, "the layer %s has other ids than the one above it", part.id);
        memcpy(out->parent, part.parent, sizeof out->parent);
    }
    return 0;
}

int merge_layers(int layers, const char *top, size_t count, enum merge_marks marks, const char *holder,
                 char lid[ID_LENGTH + 1], struct error *err)
{
    autoclose int alone = layers_keep_out_sweeps(layers, err), dir = -1;
    autostrings struct strings chain = STRINGS_NONE, trees = STRINGS_NONE;
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE;

    if (alone < 0 || layers_chain(layers, top, &chain, err) < 0)
        return -1;
    if (!count || count > chain.len)
        return error_set(err, ERROR_INVALID, "there are no %zu layers to merge", count);
    if (describe(layers, &chain, count, &layer, err) < 0 || list_trees(layers, &layer.merged, &trees, err) < 0)
        return -1;
    dir = layers_begin(layers, &layer, holder, err);
    for (size_t i = 0; dir >= 0 && i < trees.len; i++)
        if (merge_tree(layers, &layer.merged, trees.items[i], dir, marks, err) < 0)
            return error_while(err, "merge %zu layers", count);
    if (dir < 0 || layers_finish(layers, layer.id, err) < 0)
        return -1;
    memcpy(lid, layer.id, sizeof layer.id);
    return 0;
}

/* --- sandboxes --- */

/* The layer that lies on `below`, from `top` down; 1 if there is none. */
static int find_above(int layers, const char *top, const char *below, struct layer_info *out, struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;

    if (layers_chain(layers, top, &chain, err) < 0)
        return -1;
    for (size_t i = 0; i + 1 < chain.len; i++)
        if (strcmp(chain.items[i + 1], below) == 0)
            return layers_read(layers, chain.items[i], out, err);
    return 1;
}

int merge_adopt(const struct stack_place *place, const char *lid, struct error *err)
{
    autolayerinfo struct layer_info merged = LAYER_INFO_NONE, above = LAYER_INFO_NONE;
    char top[ID_LENGTH + 1];
    int found;

    if (layers_read(place->layers, lid, &merged, err) < 0 || stack_top(place->sandbox, top, err) < 0)
        return -1;
    if (!merged.merged.len)
        return error_set(err, ERROR_INVALID, "%s is no merged layer", lid);

    const char *part = merged.merged.items[0];

    if (strcmp(top, part) == 0)
        return stack_set_top(place->sandbox, lid, err);
    found = find_above(place->layers, top, part, &above, err);
    if (found != 0)
        return found;
    memcpy(above.parent, lid, sizeof above.parent);
    if (layers_hold(place->layers, lid, above.id, err) < 0 || layers_write(place->layers, &above, err) < 0)
        return -1;
    return layers_release(place->layers, part, above.id, err);
}

/* The pile of one tree, the sandbox's own directory on top. */
static int open_all(const struct stack_place *place, const char *name, struct pile *out, struct error *err)
{
    autostrings struct strings chain = STRINGS_NONE;
    char top[ID_LENGTH + 1];

    if (stack_top(place->sandbox, top, err) < 0 || layers_chain(place->layers, top, &chain, err) < 0)
        return -1;
    out->fds[0] = sys_open_beneath(place->sandbox, name, O_RDONLY | O_DIRECTORY);
    if (out->fds[0] < 0)
        return error_sys(err, "open %s of the sandbox", name);
    out->count = 1;
    for (size_t i = 0; i < chain.len; i++) {
        int fd = open_upper(place->layers, chain.items[i], name);

        if (fd >= 0)
            out->fds[out->count++] = fd;
        else if (errno != ENOENT)
            return error_sys(err, "open %s of the layer %s", name, chain.items[i]);
    }
    return 0;
}

int merge_upper(const struct stack_place *place, int number, enum merge_marks marks, struct error *err)
{
    autopile struct pile pile = { .covered = false };
    autofree char *name = text_format("u%d", number), *spot = NULL;
    char mark[ID_LENGTH + 1];

    if (open_all(place, name, &pile, err) < 0)
        return -1;
    if (pile.count == 1)
        return steal_fd(&pile.fds[--pile.count]);
    if (store_new_id(mark, err) < 0)
        return -1;
    spot = text_format(STACK_SEEN "%s.%s", mark, name);
    if (mkdirat(place->sandbox, spot, 0700) < 0)
        return error_sys(err, "make a merged %s", name);

    autoclose int out = sys_open_beneath(place->sandbox, spot, O_RDONLY | O_DIRECTORY);

    if (out < 0)
        return error_sys(err, "make a merged %s", name);
    if (merge_uppers(pile.fds, pile.count, out, marks, err) < 0)
        return -1;
    if (attributes_copy(place->sandbox, name, place->sandbox, spot) < 0)
        return error_sys(err, "make a merged %s", name);
    return steal_fd(&out);
}
