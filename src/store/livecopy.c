/* Copying what is in use.
 *
 * Theory of operation.  Two walks.  The first one only looks: what is not known, how much that is.  The second
 * makes.  The upper directory, the last copy of it and the new one are walked side by side, so each name is
 * looked up in one directory of each.
 *
 * What is known.  A copy has another inode than what it was made of, so a file beside the trees
 * (LIVECOPY_KNOWN) says for each inode of the copy of which inode it was made, and the time of that one's last
 * change (ctime), which nobody inside can set.  Times are coarse: what is written in the same tick in which it
 * was copied looks as if it had not been.  So before we are done we wait until the tick of the latest change is
 * over.  Nobody writes before that, and whoever does later is later.  By the time that everything is copied it
 * mostly is. */

#include "store/livecopy.h"

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

enum {
    DEPTH_MAX = 256, /* each level holds four descriptors */
    TICK_MS = 1,
    TICKS_MAX = 20, /* a kernel has a hundred ticks a second at least */
    LOOKED_MAX = 16 << 10,
};

struct known {
    uint64_t copy, source; /* inodes */
    int64_t seconds, nanoseconds;
};

/* What the first walk has seen of a name. */
struct looked {
    struct stat status;
    bool same;     /* it is as it was: */
    uint64_t copy; /* the inode of its last copy */
};

struct copier {
    const struct livecopy *copy;
    struct livecopy_done *done;
    struct error *err;
    const struct known *known; /* of the last copy, by its inodes */
    size_t known_len;
    struct {
        struct known *items;
        size_t len, cap;
    } now; /* of this one */
    struct {
        struct looked *items;
        size_t len, cap, next; /* `next` is that of the second walk */
    } looked;
    struct text path;       /* of what is being copied */
    struct map seen;        /* inode of a file with several names, to its place in `names` + 1 */
    struct strings names;   /* where the first of them lies in the copy */
    struct timespec newest; /* the latest change */
    struct contents contents;
    unsigned depth;
    bool changed;
};

/* One name on its way.  `before` and `to` may be -1: there is none, or nothing is made. */
struct spot {
    int from, before, to;
    const char *name;
    uint64_t inode; /* as its directory says */
    struct stat status;
    bool same;
    uint64_t copy;
};

static int failed(const struct copier *copier, const char *what)
{
    return error_sys(copier->err, "%s %.300s", what, text_string(&copier->path));
}

/* --- what is known --- */

static int by_copy(const void *a, const void *b)
{
    uint64_t left = ((const struct known *)a)->copy, right = ((const struct known *)b)->copy;

    return left < right ? -1 : left > right;
}

/* What cannot be read, or is not whole, knows nothing. */
static void read_known(struct copier *copier)
{
    autoclose int fd =
        copier->copy->before < 0 ? -1 : sys_open_beneath(copier->copy->before, LIVECOPY_KNOWN, O_RDONLY);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || status.st_size <= 0 ||
        status.st_size % (off_t)sizeof *copier->known)
        return;

    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return;
    copier->known = bytes;
    copier->known_len = (size_t)status.st_size / sizeof *copier->known;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* A time that is still to come was set by who set the clock: of that file nothing is known. */
static void forget_later(struct copier *copier)
{
    size_t kept = 0;

    for (size_t i = 0; i < copier->now.len; i++) {
        const struct known *one = &copier->now.items[i];
        struct timespec changed = { .tv_sec = one->seconds, .tv_nsec = one->nanoseconds };

        if (is_before(&changed, &copier->newest))
            copier->now.items[kept++] = *one;
    }
    copier->now.len = kept;
}

static int write_known(struct copier *copier)
{
    autoclose int fd =
        openat(copier->copy->out, LIVECOPY_KNOWN, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t size = copier->now.len * sizeof *copier->now.items, done = 0;

    qsort(copier->now.items, copier->now.len, sizeof *copier->now.items, by_copy);
    while (fd >= 0 && done < size) {
        ssize_t put = write(fd, (const char *)copier->now.items + done, size - done);

        if (put < 0)
            break;
        done += (size_t)put;
    }
    return fd < 0 || done < size ? error_sys(copier->err, "write down what was copied") : 0;
}

static bool is_white_out(const struct stat *status)
{
    return S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static void find_known(const struct copier *copier, struct spot *spot)
{
    const struct stat *status = &spot->status;
    struct stat copy;

    if (!copier->known_len || spot->before < 0 ||
        fstatat(spot->before, spot->name, &copy, AT_SYMLINK_NOFOLLOW) < 0)
        return;

    const struct known *known = bsearch(&(struct known){ .copy = copy.st_ino }, copier->known,
                                        copier->known_len, sizeof *copier->known, by_copy);

    spot->copy = copy.st_ino;
    spot->same = is_white_out(status)
                     ? is_white_out(&copy) /* the kernel makes one of many: it has no time of its own */
                     : known && known->source == status->st_ino && known->seconds == status->st_ctim.tv_sec &&
                           known->nanoseconds == status->st_ctim.tv_nsec && copy.st_mode == status->st_mode &&
                           (S_ISDIR(copy.st_mode) || copy.st_size == status->st_size) &&
                           is_same_time(&copy.st_mtim, &status->st_mtim);
}

static void note(struct copier *copier, const struct stat *source, uint64_t copy)
{
    if (!copier->copy->silent && !is_white_out(source))
        *array_add(&copier->now) =
            (struct known){ copy, source->st_ino, source->st_ctim.tv_sec, source->st_ctim.tv_nsec };
}

/* --- looking --- */

static void count(struct copier *copier, const struct spot *spot)
{
    const struct stat *status = &spot->status;
    uint64_t size = (uint64_t)status->st_size, disk = (uint64_t)status->st_blocks * 512;

    if (is_before(&copier->newest, &status->st_ctim))
        copier->newest = status->st_ctim;
    if (spot->same)
        return;
    copier->changed = true;
    copier->done->files++;
    if (S_ISREG(status->st_mode))
        copier->done->bytes += size < disk ? size : disk;
}

/* --- making --- */

/* 1 if this file has another name that was copied before.  One that cannot be linked parts, as it does when it
 * is written to in an overlay. */
static int make_hard_link(struct copier *copier, const struct spot *spot)
{
    autofree char *key = text_format("%" PRIuMAX, (uintmax_t)spot->status.st_ino);
    uint64_t place = map_get(&copier->seen, key);

    if (place) {
        if (linkat(copier->copy->out, copier->names.items[place - 1], spot->to, spot->name, 0) == 0)
            return 1;
        return errno == EMLINK || errno == ENAMETOOLONG ? 0 : failed(copier, "link");
    }
    strings_add(&copier->names, text_string(&copier->path));
    map_add(&copier->seen, key, copier->names.len);
    return 0;
}

static int make_file(struct copier *copier, const struct spot *spot)
{
    int linked = spot->status.st_nlink > 1 ? make_hard_link(copier, spot) : 0;
    struct stat status, made;

    if (linked != 0)
        return linked < 0 ? -1 : 0;

    autoclose int from = sys_open_beneath(spot->from, spot->name, O_RDONLY | O_NONBLOCK), to = -1;

    if (from < 0 || fstat(from, &status) < 0)
        return failed(copier, "open");
    if (!S_ISREG(status.st_mode) || status.st_ino != spot->status.st_ino)
        return error_set(copier->err, ERROR_REFUSED, "%.300s changed while it was copied",
                         text_string(&copier->path));
    to = openat(spot->to, spot->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                status.st_mode & 0777); /* in a layer, which nobody else can enter */
    if (to < 0 || contents_copy(&copier->contents, from, to, &status) < 0 ||
        attributes_copy_file(from, to, &status, &made) < 0)
        return failed(copier, "copy");
    note(copier, &spot->status, made.st_ino);
    return 0;
}

static int make_node(int to, const char *name, const struct stat *status, const char *target)
{
    if (S_ISLNK(status->st_mode))
        return symlinkat(target, to, name);
    if (is_white_out(status))
        return mknodat(to, name, S_IFCHR, makedev(0, 0));
    if (S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode))
        return mknodat(to, name, (status->st_mode & S_IFMT) | 0600, 0);
    errno = ENODEV; /* nobody inside can make one */
    return -1;
}

/* A link, a pipe, a socket, a white-out. */
static int make_other(struct copier *copier, const struct spot *spot)
{
    autoclose int from = sys_openat2(spot->from, spot->name, O_PATH | O_NOFOLLOW, 0), to = -1;
    char target[PATH_MAX + 1] = "";
    struct stat made;

    if (from < 0 || (S_ISLNK(spot->status.st_mode) && readlinkat(from, "", target, sizeof target - 1) < 0))
        return failed(copier, "read");
    if (make_node(spot->to, spot->name, &spot->status, target) < 0)
        return failed(copier, "make a copy of");
    to = sys_openat2(spot->to, spot->name, O_PATH | O_NOFOLLOW, 0);
    if (to < 0 || (!is_white_out(&spot->status) && attributes_copy_all(from, to, &spot->status) < 0) ||
        fstat(to, &made) < 0)
        return failed(copier, "copy");
    note(copier, &spot->status, made.st_ino);
    return 0;
}

/* The last copy of it becomes this one's, too. */
static int make_again(struct copier *copier, const struct spot *spot)
{
    if (linkat(spot->before, spot->name, spot->to, spot->name, 0) < 0)
        return errno == EMLINK ? 1 : failed(copier, "link");
    note(copier, &spot->status, spot->copy);
    return 0;
}

static int make(struct copier *copier, const struct spot *spot)
{
    int again = spot->same ? make_again(copier, spot) : 1;

    if (again <= 0)
        return again;
    return S_ISREG(spot->status.st_mode) ? make_file(copier, spot) : make_other(copier, spot);
}

/* --- walking --- */

static int walk(struct copier *copier, int from, int before, int to);

/* Its own attributes come last: a mode may close it, and whatever is made in it changes its time. */
static int finish_directory(struct copier *copier, const struct spot *spot, int from, int to)
{
    struct stat made;

    if (attributes_copy_all(from, to, &spot->status) < 0 || fstat(to, &made) < 0)
        return failed(copier, "copy");
    note(copier, &spot->status, made.st_ino);
    return 0;
}

static int descend(struct copier *copier, const struct spot *spot)
{
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NONBLOCK };
    autoclose int from = sys_open_beneath(spot->from, spot->name, FLAGS),
                  before = spot->before < 0 ? -1 : sys_open_beneath(spot->before, spot->name, FLAGS), to = -1;
    int result;

    if (from < 0)
        return failed(copier, "open");
    if (copier->depth == DEPTH_MAX)
        return error_set(copier->err, ERROR_UNSUPPORTED, "directories deeper than %d cannot be copied",
                         DEPTH_MAX);
    if (spot->to >= 0 &&
        (mkdirat(spot->to, spot->name, 0700) < 0 || (to = sys_open_beneath(spot->to, spot->name, FLAGS)) < 0))
        return failed(copier, "make a copy of");
    copier->depth++;
    result = walk(copier, from, before, to);
    copier->depth--;
    return result < 0 || to < 0 ? result : finish_directory(copier, spot, from, to);
}

/* Between the walks nothing changes, so both come by the same names in the same order. */
static bool recall(struct copier *copier, struct spot *spot)
{
    const struct looked *looked =
        copier->looked.next < copier->looked.len ? &copier->looked.items[copier->looked.next++] : NULL;

    if (!looked || looked->status.st_ino != spot->inode)
        return false;
    spot->status = looked->status;
    spot->same = looked->same;
    spot->copy = looked->copy;
    return true;
}

static int look(struct copier *copier, struct spot *spot)
{
    if (spot->to >= 0 && recall(copier, spot))
        return 0;
    if (fstatat(spot->from, spot->name, &spot->status, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(copier, "look at");
    find_known(copier, spot);
    if (spot->to >= 0)
        return 0;
    count(copier, spot);
    if (copier->looked.len < LOOKED_MAX)
        *array_add(&copier->looked) = (struct looked){ spot->status, spot->same, spot->copy };
    return 0;
}

static int visit(struct copier *copier, struct spot *spot)
{
    if (look(copier, spot) < 0)
        return -1;
    if (S_ISDIR(spot->status.st_mode))
        return descend(copier, spot);
    return spot->to < 0 ? 0 : make(copier, spot);
}

static int walk(struct copier *copier, int from, int before, int to)
{
    int again = sys_open_beneath(from, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);
    size_t len = copier->path.len;
    int result = 0;

    if (!entries)
        return failed(copier, "read");
    for (const struct dirent *entry; result == 0 && (entry = sys_next_entry(entries));) {
        struct spot spot = {
            .from = from, .before = before, .to = to, .name = entry->d_name, .inode = entry->d_ino
        };

        text_add(&copier->path, "/");
        text_add(&copier->path, entry->d_name);
        result = visit(copier, &spot);
        text_cut(&copier->path, len);
        errno = 0;
    }
    return result == 0 && errno ? failed(copier, "read") : result;
}

static bool is_upper(const char *name)
{
    return name[0] == 'u' && name[1] && !name[1 + strspn(name + 1, "0123456789")];
}

/* The trees; everything else in the sandbox's directory is ours. */
static int walk_uppers(struct copier *copier, int to)
{
    const struct livecopy *copy = copier->copy;
    int again = openat(copy->uppers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
    autoclosedir DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries)
        return error_sys(copier->err, "list the sandbox's directories");
    for (const struct dirent *entry; result == 0 && (entry = sys_next_entry(entries));) {
        struct spot spot = {
            .from = copy->uppers, .before = copy->before, .to = to, .name = entry->d_name, .inode = entry->d_ino
        };

        if (!is_upper(entry->d_name))
            continue;
        text_add(&copier->path, entry->d_name);
        result = visit(copier, &spot);
        text_cut(&copier->path, 0);
    }
    return result;
}

/* --- the whole --- */

/* `newest` is the clock's then: whatever changed before it is over. */
static void wait_for_tick(struct copier *copier)
{
    struct timespec now = { 0 };

    for (int i = 0; i < TICKS_MAX; i++) {
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
        if (is_before(&copier->newest, &now))
            break;
        nanosleep(&(struct timespec){ .tv_nsec = TICK_MS * 1000000L }, NULL);
    }
    copier->newest = now;
}

static bool is_above(uint64_t value, uint64_t max)
{
    return max && value > max;
}

static int run(struct copier *copier)
{
    const struct livecopy *copy = copier->copy;
    struct livecopy_done *done = copier->done;

    if (walk_uppers(copier, -1) < 0)
        return -1;
    if (!copier->changed || is_above(done->bytes, copy->bytes_max) || is_above(done->files, copy->files_max)) {
        done->outcome = copier->changed ? LIVECOPY_TOO_MUCH : LIVECOPY_SAME;
        return 0;
    }
    done->outcome = LIVECOPY_MADE;
    if (walk_uppers(copier, copy->out) < 0)
        return -1;
    wait_for_tick(copier);
    forget_later(copier);
    return write_known(copier);
}

int livecopy_run(const struct livecopy *copy, struct livecopy_done *done, struct error *err)
{
    struct copier copier = { .copy = copy, .done = done, .err = err };

    *done = (struct livecopy_done){ 0 };
    read_known(&copier);

    int result = run(&copier);

    if (copier.known)
        munmap((void *)(uintptr_t)copier.known, copier.known_len * sizeof *copier.known);
    free(copier.now.items);
    free(copier.looked.items);
    map_free(&copier.seen);
    strings_free(&copier.names);
    text_free(&copier.path);
    contents_free(&copier.contents);
    return result < 0 ? error_while(err, "copy what processes are using") : 0;
}
