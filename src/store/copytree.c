#include "store/copytree.h"

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "base/own.h"
#include "base/text.h"
#include "store/contents.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DEPTH_MAX = 256, /* each level holds two descriptors */
    NOTES_MAX = 20,
};

struct copier {
    const struct copytree *copy;
    struct strings *notes;
    struct error *err;
    struct text path;     /* of what is being copied; "" at the top */
    struct map seen;      /* "device:inode" of files with several names, to its place in `names` + 1 */
    struct strings names; /* where the first of them lies in the copy */
    uint64_t files;
    struct contents contents;
    size_t left_out;
    int depth;
    bool as_root;
};

/* One name on its way: both directories are open. */
struct entry {
    int from, to;
    const char *name;
    struct stat status;
};

static int failed(struct copier *copier, const char *what)
{
    return error_sys(copier->err, "%s %.300s", what, text_string(&copier->path));
}

static int leave_out(struct copier *copier, const char *why)
{
    if (copier->left_out++ < NOTES_MAX)
        strings_take(copier->notes, text_format("%s: %s", text_string(&copier->path), why));
    return 0;
}

static bool may_go_on(void *owner)
{
    const struct copier *copier = owner;
    const struct copytree *copy = copier->copy;

    return !copy->go_on || copy->go_on(copy->owner, copier->files, copier->contents.bytes);
}

static int go_on(struct copier *copier)
{
    if (may_go_on(copier))
        return 0;
    errno = EINTR;
    return failed(copier, "copy");
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_left(const struct copier *copier)
{
    const struct strings *leave = copier->copy->leave;
    const char *path = text_string(&copier->path);

    return leave && leave->len &&
           bsearch(&path, leave->items, leave->len, sizeof *leave->items, by_string) != NULL;
}

/* What went away, or became something else, is as if it had been before we came. */
static bool is_gone(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

/* --- what a name is --- */

/* Owner first: giving a file away takes its setuid bit. */
static int copy_attributes(struct copier *copier, int fd, const struct stat *status)
{
    const struct timespec times[2] = { status->st_atim, status->st_mtim };

    if (copier->as_root && fchown(fd, status->st_uid, status->st_gid) < 0)
        return failed(copier, "give the owner's");
    if (!copier->as_root)
        (void)!fchown(fd, (uid_t)-1, status->st_gid);
    if (fchmod(fd, status->st_mode & 07777) < 0 || futimens(fd, times) < 0)
        return failed(copier, "set mode and time of");
    return 0;
}

/* 1 if this file has another name that was copied before. */
static int copy_hard_link(struct copier *copier, const struct entry *entry)
{
    autofree char *key =
        text_format("%" PRIuMAX ":%" PRIuMAX, (uintmax_t)entry->status.st_dev, (uintmax_t)entry->status.st_ino);
    uint64_t place = map_get(&copier->seen, key);

    if (place) {
        if (linkat(copier->copy->to, copier->names.items[place - 1], entry->to, entry->name, 0) == 0)
            return 1;
        return errno == EMLINK ? 0 : failed(copier, "link");
    }
    strings_add(&copier->names, text_string(&copier->path));
    map_add(&copier->seen, key, copier->names.len);
    return 0;
}

static int copy_file(struct copier *copier, struct entry *entry)
{
    autoclose int from = sys_open_on_mount(entry->from, entry->name, O_RDONLY | O_NONBLOCK);
    autoclose int to = -1;

    if (from < 0 && is_gone(errno))
        return 0;
    if (from < 0 && (errno == EACCES || errno == EPERM))
        return leave_out(copier, "cannot be read");
    if (from < 0 && errno == EXDEV)
        return leave_out(copier, "is a mount");
    if (from < 0 || fstat(from, &entry->status) < 0)
        return failed(copier, "open");
    if (!S_ISREG(entry->status.st_mode))
        return 0;
    if (entry->status.st_nlink > 1) {
        int linked = copy_hard_link(copier, entry);

        if (linked != 0)
            return linked < 0 ? -1 : 0;
    }
    to = openat(entry->to, entry->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return failed(copier, "make a copy of");
    if (contents_copy(&copier->contents, from, to, &entry->status) < 0)
        return failed(copier, "copy");
    copier->files++;
    return copy_attributes(copier, to, &entry->status);
}

static int copy_link(struct copier *copier, const struct entry *entry)
{
    const struct timespec times[2] = { entry->status.st_atim, entry->status.st_mtim };
    char target[PATH_MAX + 1];
    ssize_t len = readlinkat(entry->from, entry->name, target, sizeof target - 1);

    if (len < 0)
        return is_gone(errno) || errno == EINVAL ? 0 : failed(copier, "read the link");
    target[len] = '\0';
    if (symlinkat(target, entry->to, entry->name) < 0 ||
        utimensat(entry->to, entry->name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(copier, "make the link");
    if (copier->as_root &&
        fchownat(entry->to, entry->name, entry->status.st_uid, entry->status.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(copier, "give the owner's");
    copier->files++;
    return 0;
}

static int copy_entries(struct copier *copier, int from, int to);

/* Mode and times come last: a directory without rights could not be filled, and filling changes its time. */
static int copy_directory(struct copier *copier, struct entry *entry)
{
    autoclose int from = sys_open_on_mount(entry->from, entry->name, O_RDONLY | O_DIRECTORY);
    autoclose int to = -1;
    int why = from < 0 ? errno : 0, result = 0;

    if (is_gone(why))
        return 0;
    if (why && why != EACCES && why != EPERM && why != EXDEV)
        return failed(copier, "open");
    if (copier->depth >= DEPTH_MAX)
        return error_set(copier->err, ERROR_UNSUPPORTED, "directories are nested too deep to copy %.200s",
                         text_string(&copier->path));
    if (from >= 0 && fstat(from, &entry->status) < 0)
        return failed(copier, "look at");
    if (mkdirat(entry->to, entry->name, 0700) < 0 ||
        (to = openat(entry->to, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return failed(copier, "make a copy of");
    if (from < 0) {
        leave_out(copier, why == EXDEV ? "is a mount; its files are" : "cannot be read; its files are");
    } else {
        copier->depth++;
        result = copy_entries(copier, steal_fd(&from), to);
        copier->depth--;
    }
    return result < 0 ? -1 : copy_attributes(copier, to, &entry->status);
}

static int copy_one(struct copier *copier, struct entry *entry)
{
    if (is_left(copier))
        return 0;
    if (go_on(copier) < 0)
        return -1;
    if (fstatat(entry->from, entry->name, &entry->status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return is_gone(errno) ? 0 : failed(copier, "look at");
    switch (entry->status.st_mode & S_IFMT) {
    case S_IFDIR:
        return copy_directory(copier, entry);
    case S_IFREG:
        return copy_file(copier, entry);
    case S_IFLNK:
        return copy_link(copier, entry);
    default:
        return leave_out(copier, "is neither a file nor a link nor a directory");
    }
}

/* Owns `from`. */
static int copy_entries(struct copier *copier, int from, int to)
{
    autoclosedir DIR *entries = fdopendir(from);
    size_t before = copier->path.len;
    int result = 0;

    if (!entries) {
        close(from);
        return failed(copier, "read");
    }
    for (const struct dirent *found; result == 0 && (found = sys_next_entry(entries));) {
        struct entry entry = { from, to, found->d_name, { 0 } };

        text_add(&copier->path, before ? "/" : "");
        text_add(&copier->path, found->d_name);
        result = copy_one(copier, &entry);
        text_cut(&copier->path, before);
        errno = 0;
    }
    return result == 0 && errno ? failed(copier, "read") : result;
}

static int copy_only(struct copier *copier, const char *name)
{
    struct entry entry = { copier->copy->from, copier->copy->to, name, { 0 } };

    text_add(&copier->path, name);
    return copy_one(copier, &entry);
}

static int copy_all(struct copier *copier)
{
    const struct copytree *copy = copier->copy;
    autoclose int from = openat(copy->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat top;

    if (from < 0 || fstat(from, &top) < 0)
        return error_sys(copier->err, "open the tree to copy");
    if (copy_entries(copier, steal_fd(&from), copy->to) < 0)
        return -1;
    return copy_attributes(copier, copy->to, &top);
}

int copytree_run(const struct copytree *copy, struct strings *notes, struct error *err)
{
    struct copier copier = { .copy = copy, .notes = notes, .err = err, .as_root = geteuid() == 0 };

    copier.contents.go_on = may_go_on;
    copier.contents.owner = &copier;

    int result = copy->only ? copy_only(&copier, copy->only) : copy_all(&copier);

    if (result < 0 && err->sys_errno == ENOSPC)
        error_hint(err, "a copy needs as much room as the tree; --workspace cow needs none");
    if (copier.left_out > NOTES_MAX)
        strings_take(notes, text_format("and %zu more", copier.left_out - NOTES_MAX));
    map_free(&copier.seen);
    strings_free(&copier.names);
    text_free(&copier.path);
    contents_free(&copier.contents);
    return result;
}
