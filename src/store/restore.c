/* Theory of operation.  The two views are walked side by side.  Most names need not be looked at: what differs
 * lies in one of the layers by which the two states differ.  But where one of these hides what lies below it
 * (an opaque directory, a white-out, a file in a directory's place), names may differ that none of them has:
 * from there on down all names of both views are compared. */

#include "store/restore.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/attributes.h"
#include "store/contents.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { DEPTH_MAX = 256, BUFFER = 64 << 10 };

/* What is being made has this name until it is whole; with a number, where that is a name that is wanted. */
#define ASIDE ".cove-undo"

struct restorer {
    const struct restore *restore;
    struct error *err;
    uint64_t *changed;
    uint64_t mount; /* the tree's */
    struct text path;
    struct map seen; /* inode of a file that came back, to its place in `names` + 1 */
    struct strings names;
    struct contents contents;
    unsigned depth;
    uint64_t aside; /* the number, which only grows: who plants many names is asked about each of them once */
    char left[BUFFER], right[BUFFER];
};

/* A directory in all views.  `whole`: every name counts, and no layer is asked. */
struct level {
    int wanted, live;
    int layers[RESTORE_LAYERS_MAX];
    size_t count;
    bool whole;
};

/* One name in them. */
struct place {
    const struct level *level;
    const char *name;
    struct stat wanted, live;
    bool is_wanted, is_live;
};

static int failed(const struct restorer *restorer, const char *what)
{
    return error_sys(restorer->err, "%s %.300s", what, text_string(&restorer->path));
}

static int open_directory(int dir, const char *name)
{
    return sys_open_on_mount(dir, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

/* --- whether it differs --- */

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool looks_the_same(const struct stat *a, const struct stat *b)
{
    return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
           is_same_time(&a->st_mtim, &b->st_mtim) && (S_ISDIR(a->st_mode) || a->st_size == b->st_size);
}

/* One copy that both states have. */
static bool is_shared(const struct restorer *restorer, const struct place *place)
{
    const struct level *level = place->level;
    struct stat one, other;

    return restorer->restore->pair && !level->whole && level->count == 2 &&
           fstatat(level->layers[0], place->name, &one, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(level->layers[1], place->name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
           one.st_ino == other.st_ino && !S_ISDIR(one.st_mode);
}

/* Where the next byte lies that is written down in one of them; `size`: nowhere.  Reading what was never
 * written could take hours. */
static off_t next_data(int fd, off_t at, off_t size)
{
    off_t found = lseek(fd, at, SEEK_DATA);

    if (found < 0)
        return errno == ENXIO ? size : at; /* a file system that knows no holes */
    return found < size ? found : size;
}

/* 1: they are the same; times can be set, so they alone do not tell.  Extended attributes change none that can
 * be compared. */
static int has_same_bytes(struct restorer *restorer, const struct place *place)
{
    autoclose int wanted = sys_open_on_mount(place->level->wanted, place->name, O_RDONLY | O_NONBLOCK),
                  live = sys_open_on_mount(place->level->live, place->name, O_RDONLY | O_NONBLOCK);
    off_t size = place->wanted.st_size, at = 0;

    if (wanted >= 0 && live < 0 && errno == EWOULDBLOCK)
        return 0; /* somebody inside holds a lease on it; another file can take its place even so */
    if (wanted < 0 || live < 0)
        return failed(restorer, "open");
    if (!attributes_same_extended(wanted, live))
        return 0;
    while (at < size) {
        off_t left = next_data(wanted, at, size), right = next_data(live, at, size);
        ssize_t got, other;

        at = left < right ? left : right;
        got = pread(wanted, restorer->left, BUFFER, at);
        other = pread(live, restorer->right, BUFFER, at);
        if (got < 0 || other < 0)
            return failed(restorer, "read");
        if (got != other || memcmp(restorer->left, restorer->right, (size_t)got) != 0)
            return 0;
        if (!got)
            break;
        at += got;
    }
    return 1;
}

static int has_same_target(struct restorer *restorer, const struct place *place)
{
    ssize_t got = readlinkat(place->level->wanted, place->name, restorer->left, BUFFER),
            other = readlinkat(place->level->live, place->name, restorer->right, BUFFER);

    if (got < 0 || other < 0)
        return failed(restorer, "read the link");
    return got == other && memcmp(restorer->left, restorer->right, (size_t)got) == 0;
}

/* Of what is no directory. */
static int is_same(struct restorer *restorer, const struct place *place)
{
    if (!looks_the_same(&place->wanted, &place->live))
        return 0;
    if (is_shared(restorer, place))
        return 1;
    if (S_ISREG(place->wanted.st_mode))
        return has_same_bytes(restorer, place);
    return S_ISLNK(place->wanted.st_mode) ? has_same_target(restorer, place) : 1;
}

/* --- removing --- */

static int remove_below(struct restorer *restorer, int dir);

/* Whatever is mounted there stays, and so does what it lies in. */
static int remove_entry(struct restorer *restorer, int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EBUSY)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return failed(restorer, "remove");

    autoclose int below = open_directory(dir, name);

    if (below < 0 && errno == EXDEV)
        return 0;
    if (below < 0 || restorer->depth == DEPTH_MAX)
        return failed(restorer, "remove");
    restorer->depth++;

    int result = remove_below(restorer, below);

    restorer->depth--;
    if (result == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != EBUSY && errno != ENOTEMPTY)
        return failed(restorer, "remove");
    return result;
}

static int list(struct restorer *restorer, int dir, struct map *out)
{
    int again = open_directory(dir, ".");
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries)
        return failed(restorer, "read");
    for (const struct dirent *entry; (entry = sys_next_entry(entries));)
        map_add(out, entry->d_name, 1);
    return errno ? failed(restorer, "read") : 0;
}

static int remove_below(struct restorer *restorer, int dir)
{
    automap struct map names = MAP_NONE;
    size_t at = 0;

    if (list(restorer, dir, &names) < 0)
        return -1;
    for (const struct map_entry *entry; (entry = map_next(&names, &at));)
        if (remove_entry(restorer, dir, entry->key) < 0)
            return -1;
    return 0;
}

/* --- bringing back --- */

static int bring(struct restorer *restorer, int from, int to, const char *name, const char *as);

static int bring_file(struct restorer *restorer, int from, int to, const char *as)
{
    autofree char *key = NULL;
    struct stat status;

    if (fstat(from, &status) < 0)
        return failed(restorer, "look at");
    key = text_format("%" PRIuMAX, (uintmax_t)status.st_ino);

    uint64_t place = status.st_nlink > 1 ? map_get(&restorer->seen, key) : 0;

    if (place && linkat(restorer->restore->live, restorer->names.items[place - 1], to, as, 0) == 0)
        return 0;

    autoclose int made = openat(to, as, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (made < 0 || contents_copy(&restorer->contents, from, made, &status) < 0 ||
        attributes_copy_all(from, made, &status) < 0)
        return failed(restorer, "bring back");
    if (status.st_nlink > 1 && !place) {
        strings_add(&restorer->names, text_string(&restorer->path));
        map_add(&restorer->seen, key, restorer->names.len);
    }
    return 0;
}

static int bring_below(struct restorer *restorer, int from, int to)
{
    automap struct map names = MAP_NONE;
    size_t at = 0, len = restorer->path.len;
    int result = list(restorer, from, &names);

    if (restorer->depth == DEPTH_MAX)
        return error_set(restorer->err, ERROR_UNSUPPORTED, "directories deeper than %d are not brought back",
                         DEPTH_MAX);
    restorer->depth++;
    for (const struct map_entry *entry; result == 0 && (entry = map_next(&names, &at));) {
        text_addf(&restorer->path, "%s%s", len ? "/" : "", entry->key);
        result = bring(restorer, from, to, entry->key, entry->key);
        text_cut(&restorer->path, len);
    }
    restorer->depth--;
    return result;
}

static int bring_directory(struct restorer *restorer, int from, int to, const char *as,
                           const struct stat *status)
{
    autoclose int made = mkdirat(to, as, 0700) < 0 ? -1 : open_directory(to, as);

    if (made < 0)
        return failed(restorer, "bring back");
    if (bring_below(restorer, from, made) < 0)
        return -1;
    return attributes_copy_all(from, made, status) < 0 ? failed(restorer, "bring back") : 0;
}

static int make_other(int from, int to, const char *name, const char *as, const struct stat *status)
{
    char target[PATH_MAX + 1] = "";

    if (S_ISLNK(status->st_mode))
        return readlinkat(from, name, target, sizeof target - 1) < 0 ? -1 : symlinkat(target, to, as);
    if (S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode))
        return mknodat(to, as, (status->st_mode & S_IFMT) | 0600, 0);
    errno = ENODEV;
    return -1;
}

static int bring_other(struct restorer *restorer, int from, int to, const char *name, const char *as,
                       const struct stat *status)
{
    autoclose int source = sys_openat2(from, name, O_PATH | O_NOFOLLOW, 0), made = -1;

    if (source < 0 || make_other(from, to, name, as, status) < 0)
        return failed(restorer, "bring back");
    made = sys_openat2(to, as, O_PATH | O_NOFOLLOW, 0);
    if (made < 0 || attributes_copy_all(source, made, status) < 0)
        return failed(restorer, "bring back");
    return 0;
}

/* What `from` shows as `name` comes to `to` as `as`. */
static int bring(struct restorer *restorer, int from, int to, const char *name, const char *as)
{
    struct stat status;

    if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(restorer, "look at");
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return bring_other(restorer, from, to, name, as, &status);

    autoclose int source =
        sys_open_on_mount(from, name, O_RDONLY | O_NONBLOCK | (S_ISDIR(status.st_mode) ? O_DIRECTORY : 0));

    if (source < 0)
        return failed(restorer, "open");
    return S_ISDIR(status.st_mode) ? bring_directory(restorer, source, to, as, &status)
                                   : bring_file(restorer, source, to, as);
}

/* What has this name and is not wanted is in nobody's way: it is to go. */
static char *name_aside(struct restorer *restorer, int wanted)
{
    char *name = text_copy(ASIDE);
    struct stat status;

    while (fstatat(wanted, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        free(name);
        name = text_format(ASIDE "-%" PRIu64, ++restorer->aside);
    }
    return name;
}

/* Beside it first; then in its place. */
static int replace(struct restorer *restorer, const struct place *place)
{
    int live = place->level->live;
    bool in_the_way = place->is_live && (S_ISDIR(place->live.st_mode) || S_ISDIR(place->wanted.st_mode));
    autofree char *aside = name_aside(restorer, place->level->wanted);

    if (remove_entry(restorer, live, aside) < 0)
        return -1;
    if (bring(restorer, place->level->wanted, live, place->name, aside) < 0) {
        struct error why = *restorer->err;

        (void)remove_entry(restorer, live, aside);
        *restorer->err = why;
        return -1;
    }
    if (in_the_way && remove_entry(restorer, live, place->name) < 0)
        return -1;
    return renameat(live, aside, live, place->name) < 0 ? failed(restorer, "bring back") : 0;
}

/* --- walking --- */

static void level_close(struct level *level)
{
    own_close(&level->wanted);
    own_close(&level->live);
    while (level->count)
        close(level->layers[--level->count]);
}

#define autolevel __attribute__((cleanup(level_close)))

struct inode_key {
    char text[24];
};

static struct inode_key key_of(int fd)
{
    struct inode_key key = { "" };
    struct stat status;

    if (fstat(fd, &status) == 0)
        snprintf(key.text, sizeof key.text, "%" PRIuMAX, (uintmax_t)status.st_ino);
    return key;
}

static bool is_opaque(const struct restorer *restorer, int fd)
{
    return map_get(restorer->restore->opaque, key_of(fd).text) > 0;
}

/* The layers that have it as a directory. */
static int gather(const struct restorer *restorer, const struct place *place, struct level *out)
{
    const struct level *above = place->level;

    out->whole = above->whole;
    for (size_t i = 0; i < above->count && !out->whole; i++) {
        int fd = sys_open_beneath(above->layers[i], place->name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

        if (fd >= 0) {
            out->layers[out->count++] = fd;
            out->whole = is_opaque(restorer, fd);
        } else if (errno == ENOTDIR || errno == ELOOP) {
            out->whole = true;
        } else if (errno != ENOENT) {
            return failed(restorer, "open");
        }
    }
    return 0;
}

static int walk(struct restorer *restorer, const struct level *level);

/* What was done in it has changed its time. */
static int fix_directory(struct restorer *restorer, const struct level *level)
{
    struct stat wanted, live;

    if (fstat(level->wanted, &wanted) < 0 || fstat(level->live, &live) < 0)
        return failed(restorer, "look at");
    if (looks_the_same(&wanted, &live) && attributes_same_extended(level->wanted, level->live))
        return 0;
    ++*restorer->changed;
    if (attributes_drop_extended(level->wanted, level->live) < 0)
        return failed(restorer, "bring back");
    return attributes_copy_all(level->wanted, level->live, &wanted) < 0 ? failed(restorer, "bring back") : 0;
}

static int descend(struct restorer *restorer, const struct place *place)
{
    autolevel struct level below = { .wanted = open_directory(place->level->wanted, place->name),
                                     .live = open_directory(place->level->live, place->name) };
    int result;

    if (below.wanted < 0 || below.live < 0)
        return failed(restorer, "open");
    if (restorer->depth == DEPTH_MAX)
        return error_set(restorer->err, ERROR_UNSUPPORTED, "directories deeper than %d are not brought back",
                         DEPTH_MAX);
    if (gather(restorer, place, &below) < 0)
        return -1;
    restorer->depth++;
    result = walk(restorer, &below);
    restorer->depth--;
    return result < 0 ? -1 : fix_directory(restorer, &below);
}

static int look(const struct restorer *restorer, int dir, const char *name, struct stat *out, bool *is_there)
{
    *is_there = fstatat(dir, name, out, AT_SYMLINK_NOFOLLOW) == 0;
    return *is_there || errno == ENOENT ? 0 : failed(restorer, "look at");
}

static int visit(struct restorer *restorer, const struct level *level, const char *name)
{
    struct place place = { .level = level, .name = name };

    if (look(restorer, level->wanted, name, &place.wanted, &place.is_wanted) < 0 ||
        look(restorer, level->live, name, &place.live, &place.is_live) < 0)
        return -1;
    if (place.is_live && sys_mount_id(level->live, name) != restorer->mount)
        return 0; /* it is mounted there */
    if (place.is_wanted && place.is_live && S_ISDIR(place.wanted.st_mode) && S_ISDIR(place.live.st_mode))
        return descend(restorer, &place);
    if (!place.is_wanted && !place.is_live)
        return 0;

    int same =
        place.is_wanted && place.is_live && (place.wanted.st_mode & S_IFMT) == (place.live.st_mode & S_IFMT)
            ? is_same(restorer, &place)
            : 0;

    if (same != 0)
        return same < 0 ? -1 : 0;
    ++*restorer->changed;
    return place.is_wanted ? replace(restorer, &place) : remove_entry(restorer, level->live, name);
}

static int walk(struct restorer *restorer, const struct level *level)
{
    automap struct map names = MAP_NONE;
    size_t at = 0, len = restorer->path.len;
    int result = 0;

    for (size_t i = 0; result == 0 && !level->whole && i < level->count; i++)
        result = list(restorer, level->layers[i], &names);
    if (level->whole && (list(restorer, level->wanted, &names) < 0 || list(restorer, level->live, &names) < 0))
        return -1;
    for (const struct map_entry *entry; result == 0 && (entry = map_next(&names, &at));) {
        text_addf(&restorer->path, "%s%s", len ? "/" : "", entry->key);
        result = visit(restorer, level, entry->key);
        text_cut(&restorer->path, len);
    }
    return result;
}

/* --- before --- */

static int find_opaque(int dir, const char *mark, unsigned depth, struct map *out)
{
    int again = sys_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);
    char value[8];

    if (!entries || depth == DEPTH_MAX)
        return -1;
    if (fgetxattr(dir, mark, value, sizeof value) == 1 && *value == 'y')
        map_add(out, key_of(dir).text, 1);
    for (const struct dirent *entry; (entry = sys_next_entry(entries));) {
        if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
            continue;

        autoclose int below = sys_open_beneath(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);

        if (below < 0 ? errno != ENOTDIR && errno != ELOOP : find_opaque(below, mark, depth + 1, out) < 0)
            return -1;
    }
    return errno ? -1 : 0;
}

int restore_find_opaque(const int *layers, size_t count, enum merge_marks marks, struct map *out,
                        struct error *err)
{
    const char *mark = marks == MERGE_USER ? "user.overlay.opaque" : "trusted.overlay.opaque";

    for (size_t i = 0; i < count; i++)
        if (find_opaque(layers[i], mark, 0, out) < 0)
            return error_sys(err, "look at the layers to compare");
    return 0;
}

/* --- the whole --- */

static int run(struct restorer *restorer)
{
    const struct restore *restore = restorer->restore;
    struct level top = { .wanted = restore->wanted, .live = restore->live, .count = restore->count };

    if (restore->count > RESTORE_LAYERS_MAX)
        return error_set(restorer->err, ERROR_INVALID, "there are too many layers to compare");
    memcpy(top.layers, restore->layers, restore->count * sizeof *restore->layers);
    restorer->mount = sys_mount_id(restore->live, "");
    if (!restorer->mount)
        return failed(restorer, "look at the mount of");
    return walk(restorer, &top) < 0 ? -1 : fix_directory(restorer, &top);
}

int restore_run(const struct restore *restore, uint64_t *changed, struct error *err)
{
    autofree struct restorer *restorer = memory_zero(sizeof *restorer);

    restorer->restore = restore;
    restorer->err = err;
    restorer->changed = changed;

    int result = run(restorer);

    map_free(&restorer->seen);
    strings_free(&restorer->names);
    text_free(&restorer->path);
    contents_free(&restorer->contents);
    return result;
}
