#include "changes/scan.h"

#include "base/error.h"
#include "base/own.h"
#include "changes/names.h"
#include "changes/prints.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

int scan_open(int dir, const char *path, int flags)
{
    return sys_open_on_mount(dir, path, (uint64_t)flags);
}

/* To open a FIFO wakes whoever waits at its other end, to open a device may do anything: what it is
 * must be known first, and stay so. */
int scan_open_file(int dir, const char *path)
{
    autoclose int handle = scan_open(dir, path, O_PATH);
    struct stat status;

    if (handle < 0 || fstat(handle, &status) < 0)
        return -1;
    if (!S_ISREG(status.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return open(sys_fd_path(handle).text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool scan_is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

bool scan_is_closed(struct scan *scan, int error)
{
    if (scan_is_gone(error))
        return false;
    if (error != EACCES && error != EPERM && error != EXDEV) /* the last: it is a mount point by now */
        scan->broken = error;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

void entries_free(struct entries *entries)
{
    for (size_t i = 0; i < entries->len; i++)
        free(entries->items[i].name);
    free(entries->items);
    *entries = (struct entries){ 0 };
}

const struct entry *entries_find(const struct entries *entries, const char *name)
{
    struct entry key = { .name = (char *)(uintptr_t)name };

    return entries->len ? bsearch(&key, entries->items, entries->len, sizeof *entries->items, by_name) : NULL;
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int scan_list(int dir, size_t most, bool *cut, struct entries *out)
{
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclosedir DIR *names = own < 0 ? NULL : fdopendir(own);

    if (!names) {
        if (own >= 0)
            close(own);
        return -1;
    }
    errno = 0;
    for (const struct dirent *found; (found = readdir(names)); errno = 0) {
        if (is_dot(found->d_name))
            continue;
        if (out->len >= most) {
            if (cut)
                *cut = true;
            errno = cut ? 0 : E2BIG;
            break;
        }
        *array_add(out) =
            (struct entry){ .name = text_copy(found->d_name), .type = found->d_type, .change = NO_CHANGE };
    }
    if (errno)
        return -1;
    if (out->len)
        qsort(out->items, out->len, sizeof *out->items, by_name);
    return 0;
}

char *scan_join(const char *dir, const char *name)
{
    return *dir ? text_format("%s/%s", dir, name) : text_copy(name);
}

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_hidden(const struct scan *scan, const char *path)
{
    return bsearch(&path, scan->hidden.items, scan->hidden.len, sizeof *scan->hidden.items, by_string);
}

bool scan_hidden(const struct scan *scan, const char *path)
{
    autofree char *part = text_copy(path);

    for (char *end = part + strlen(part); scan->hidden.len && end; end = strrchr(part, '/')) {
        *end = '\0';
        if (is_hidden(scan, part))
            return true;
    }
    return false;
}

bool scan_is_later(const struct scan *scan, const struct stat *status)
{
    const struct timespec *since = &scan->source->since, *changed = &status->st_ctim;

    if ((!since->tv_sec && !since->tv_nsec) || prints_have(scan->source->ours, status))
        return false;
    return changed->tv_sec > since->tv_sec ||
           (changed->tv_sec == since->tv_sec && changed->tv_nsec >= since->tv_nsec);
}

size_t scan_add(struct scan *scan, const char *path, enum change_kind kind)
{
    *array_add(scan->out) = (struct change){ .path = text_copy(path), .kind = kind };
    return scan->out->len - 1;
}

static enum side_type type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return SIDE_FILE;
    case S_IFLNK:
        return SIDE_LINK;
    case S_IFDIR:
        return SIDE_DIRECTORY;
    default:
        return SIDE_OTHER;
    }
}

static char *read_link(int dir, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir, name, target, sizeof target - 1);

    if (len < 0)
        return text_copy("");
    target[len] = '\0';
    return text_copy(target);
}

void scan_fill(struct side *side, const struct stat *status, int dir, const char *name, uid_t shift)
{
    free(side->target);
    *side = (struct side){
        .type = type_of(status->st_mode),
        .mode = status->st_mode & 07777,
        .uid = status->st_uid >= shift ? status->st_uid - shift : (uid_t)-1,
        .gid = status->st_gid >= shift ? status->st_gid - shift : (gid_t)-1,
        .size = S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0,
        .stored = S_ISREG(status->st_mode) ? (uint64_t)status->st_blocks * 512 : 0,
        .mtime = status->st_mtim,
        .target = S_ISLNK(status->st_mode) ? read_link(dir, name) : NULL,
    };
}

void job_free(struct job *job)
{
    free(job->path);
}

void change_free(struct change *change)
{
    free(change->path);
    free(change->from);
    free(change->old.target);
    free(change->new.target);
}

void changes_free(struct changes *changes)
{
    for (size_t i = 0; i < changes->len; i++)
        change_free(&changes->items[i]);
    free(changes->items);
    *changes = CHANGES_NONE;
}

static void prepare(struct scan *scan)
{
    const struct strings *hide = scan->source->hide;

    for (size_t i = 0; hide && i < hide->len; i++)
        *array_add(&scan->hidden) = hide->items[i];
    if (scan->hidden.len)
        qsort(scan->hidden.items, scan->hidden.len, sizeof *scan->hidden.items, by_string);
}

static void free_scan(struct scan *scan)
{
    for (size_t i = 0; i < scan->jobs.len; i++)
        job_free(&scan->jobs.items[i]);
    free(scan->jobs.items);
    free(scan->orphans.items);
    free(scan->links.items);
    free((void *)scan->hidden.items);
    free(scan->buffer);
}

static int by_path(const void *a, const void *b)
{
    const struct change *one = a, *other = b;
    int order = strcmp(one->path, other->path);

    return order ? order : (int)one->kind - (int)other->kind;
}

static int path_against(const void *path, const void *change)
{
    return strcmp(path, ((const struct change *)change)->path);
}

struct change *changes_find(const struct changes *changes, const char *path)
{
    return changes->len ? bsearch(path, changes->items, changes->len, sizeof *changes->items, path_against)
                        : NULL;
}

/* Drops what was made part of another change, and sorts the rest. */
static void put_in_order(struct changes *changes)
{
    size_t kept = 0;

    for (size_t i = 0; i < changes->len; i++)
        if (changes->items[i].path)
            changes->items[kept++] = changes->items[i];
    changes->len = kept;
    if (kept)
        qsort(changes->items, kept, sizeof *changes->items, by_path);
}

static int run(struct scan *scan)
{
    prepare(scan);
    if (walk_changes(scan) < 0)
        return -1;
    links_flag(scan);
    renames_pair(scan);
    orphans_flag(scan);
    put_in_order(scan->out);
    return 0;
}

static int run_at(struct scan *scan, const char *path, unsigned how)
{
    prepare(scan);
    if (walk_at(scan, path, how) < 0)
        return -1;
    put_in_order(scan->out);
    return 0;
}

/* `path` NULL: everything. */
static int find(const struct changes_source *source, const char *path, unsigned how, struct changes *out,
                struct error *err)
{
    struct changes found = CHANGES_NONE;
    struct scan scan = { .source = source, .out = &found, .err = err };
    int result = path ? run_at(&scan, path, how) : run(&scan);

    free_scan(&scan);
    if (result < 0) {
        changes_free(&found);
        return error_while(err, "read what the sandbox changed");
    }
    *out = found;
    return 0;
}

int changes_scan(const struct changes_source *source, struct changes *out, struct error *err)
{
    return find(source, NULL, 0, out, err);
}

int changes_scan_at(const struct changes_source *source, const char *path, unsigned how, struct changes *out,
                    struct error *err)
{
    return find(source, path, how, out, err);
}
