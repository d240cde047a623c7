#include "store/packages.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { CHUNK = 1 << 16 };

#define PACKAGES "packages"

/* --- the directory --- */

int packages_enter(int sandbox, struct error *err)
{
    autoclose int state = openat(sandbox, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return state < 0 ? error_sys(err, "open the state directory")
                     : store_open_private(state, PACKAGES, PACKAGES, err);
}

int packages_open(const char *state, struct error *err)
{
    autofree char *path = text_format("%s/" PACKAGES, state);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    return errno == ENOENT ? error_set(err, ERROR_MISSING, "there is no package cache")
                           : error_sys(err, "open %.200s", path);
}

/* --- what is there --- */

static int open_file(int dir, const char *name)
{
    autoclose int fd =
        checksum_is(name, NULL) ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
        return -1;
    return steal_fd(&fd);
}

int packages_get(int dir, const char *name, uint64_t *size)
{
    autoclose int fd = open_file(dir, name);
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0)
        return -1;
    if (info.st_size == 0) { /* what a crash of the machine has left */
        (void)unlinkat(dir, name, 0);
        return -1;
    }
    (void)futimens(fd, NULL);
    *size = (uint64_t)info.st_size;
    return steal_fd(&fd);
}

/* --- what comes to it --- */

int packages_spool(int dir)
{
    return openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* The name of what was read, and copied to `to` unless that is -1.  -1: it could not be. */
static int64_t take_sum(int from, int to, enum checksum_kind kind, struct checksum *out)
{
    static char chunk[CHUNK];
    struct checksumming *sum = checksumming_new(kind);
    int64_t done = 0;
    ssize_t got;

    while ((got = pread(from, chunk, sizeof chunk, done)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || done + got > PACKAGE_BYTES_MAX || (to >= 0 && write(to, chunk, (size_t)got) != got)) {
            checksumming_end(sum, NULL);
            return -1;
        }
        checksumming_add(sum, chunk, (size_t)got);
        done += got;
    }
    checksumming_end(sum, out);
    return done;
}

static bool is_wrong(const struct checksum *sum, const char *name)
{
#ifdef COVE_UNSAFE
    const char *without = getenv("COVE_UNSAFE_WITHOUT");

    if (without && strstr(without, "package-hash"))
        return false;
#endif
    return strcmp(sum->text, name) != 0;
}

/* Not synced: who reads it looks at the bytes again, and what a crash of the machine has left of it goes then.
 */
static enum packages_added name_it(int dir, int fd, const char *name)
{
    autofree char *link = text_format("/proc/self/fd/%d", fd);

    if (fchmod(fd, 0400) < 0)
        return PACKAGE_FAILED;
    if (linkat(AT_FDCWD, link, dir, name, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST)
        return PACKAGE_ADDED;
    return PACKAGE_FAILED;
}

enum packages_added packages_add(int dir, int spool, const char *name, uint64_t *size)
{
    autoclose int fd = packages_spool(dir);
    enum checksum_kind kind;
    struct checksum sum;
    int64_t done;

    if (fd < 0 || !checksum_is(name, &kind) || (done = take_sum(spool, fd, kind, &sum)) < 0)
        return PACKAGE_FAILED;
    if (is_wrong(&sum, name))
        return PACKAGE_WRONG;
    *size = (uint64_t)done;
    return name_it(dir, fd, name);
}

void packages_check(int dir, const char *name)
{
    autoclose int fd = open_file(dir, name);
    enum checksum_kind kind;
    struct checksum sum;

    if (fd >= 0 && checksum_is(name, &kind) &&
        (take_sum(fd, -1, kind, &sum) < 0 || strcmp(sum.text, name) != 0))
        (void)unlinkat(dir, name, 0);
}

/* --- what goes --- */

struct file {
    struct timespec used;
    uint64_t bytes;
    struct checksum name;
};

struct files {
    struct file *items;
    size_t len, cap;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *first = &((const struct file *)a)->used, *second = &((const struct file *)b)->used;

    if (first->tv_sec != second->tv_sec)
        return first->tv_sec < second->tv_sec ? -1 : 1;
    return first->tv_nsec < second->tv_nsec ? -1 : first->tv_nsec > second->tv_nsec;
}

static void add_file(int dir, const char *name, struct files *out)
{
    struct stat info;

    if (!checksum_is(name, NULL) || fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    struct file *file = array_add(out);

    *file = (struct file){ .used = info.st_mtim, .bytes = (uint64_t)info.st_blocks * 512 };
    if (file->bytes < PACKAGE_BYTES_MIN) /* some file systems have it in the inode, which is not free either */
        file->bytes = PACKAGE_BYTES_MIN;
    memcpy(file->name.text, name, strlen(name) + 1);
}

static int list(int dir, struct files *out, struct error *err)
{
    autoclose int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *opened = own < 0 ? NULL : fdopendir(own);

    if (!opened)
        return error_sys(err, "list the package cache");
    (void)steal_fd(&own); /* it is the stream's now */
    for (const struct dirent *entry; (entry = readdir(opened));)
        add_file(dir, entry->d_name, out);
    return 0;
}

static void remove_oldest(int dir, struct files *files, uint64_t wanted, bool dry, struct packages_usage *usage)
{
    if (!files->items)
        return;
    qsort(files->items, files->len, sizeof *files->items, by_use);
    for (size_t i = 0; i < files->len && usage->bytes - usage->removed_bytes > wanted; i++) {
        const struct file *file = &files->items[i];

        if (!dry && unlinkat(dir, file->name.text, 0) < 0)
            continue;
        usage->removed_bytes += file->bytes;
        usage->removed_files++;
    }
}

/* One at a time: two would each remove what both count. */
int packages_trim(int dir, uint64_t most, bool dry, struct packages_usage *out, struct error *err)
{
    struct files files = { 0 };

    *out = (struct packages_usage){ 0 };
    if (flock(dir, LOCK_EX) < 0)
        return error_sys(err, "lock the package cache");
    int listed = list(dir, &files, err);

    for (size_t i = 0; i < files.len; i++)
        out->bytes += files.items[i].bytes;
    out->files = files.len;
    if (listed == 0 && out->bytes > most)
        remove_oldest(dir, &files, most - most / 10, dry, out);
    free(files.items);
    (void)flock(dir, LOCK_UN);
    return listed;
}
