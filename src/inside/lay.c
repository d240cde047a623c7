#include "inside/lay.h"

#include "inside/rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 16, PLAIN = 0777 };

/* Waiting for the next file would only mean to fail again. */
static bool is_fatal(int number)
{
    static const int numbers[] = { ENOSPC, EDQUOT, EIO, EROFS, ENOMEM, EMFILE, ENFILE };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (number == numbers[i])
            return true;
    return false;
}

void lay_note(struct lay *lay, enum files_why why, int number, const char *name)
{
    struct files_note note = { number, why };

    snprintf(lay->path + lay->path_len, sizeof lay->path - lay->path_len, "%s%s", lay->path_len ? "/" : "",
             name);
    lay->note(lay->owner, &note, lay->path);
    lay->path[lay->path_len] = '\0';
}

/* 0, or -1 if nothing else could be put either. */
static int failed(struct lay *lay, const char *name)
{
    if (is_fatal(errno))
        return -1;
    lay_note(lay, errno == EEXIST || errno == ENOTDIR || errno == EISDIR ? WHY_IN_THE_WAY : WHY_FAILED, errno,
             name);
    return 0;
}

void lay_begin(struct lay *lay)
{
    lay->fd = -1;
    if (getrandom(&lay->seed, sizeof lay->seed, GRND_NONBLOCK) < 0)
        lay->seed = (uint64_t)getpid() << 32 | (uintptr_t)lay >> 4;
}

/* -1: nothing is put here. */
static int here(const struct lay *lay)
{
    return lay->depth ? lay->levels[lay->depth - 1].fd : lay->top;
}

static void drop_file(struct lay *lay)
{
    if (lay->fd < 0)
        return;
    close(lay->fd);
    lay->fd = -1;
    (void)unlinkat(here(lay), lay->temp, 0);
}

void lay_end(struct lay *lay)
{
    drop_file(lay);
    for (; lay->depth; lay->depth--)
        if (lay->levels[lay->depth - 1].fd >= 0 && lay->levels[lay->depth - 1].fd != lay->top)
            close(lay->levels[lay->depth - 1].fd);
    for (size_t i = 0; i < lay->twins_len; i++)
        free(lay->twins[i].path);
    free(lay->twins);
    lay->twins = NULL;
    lay->twins_len = 0;
}

static void next_temp(struct lay *lay)
{
    snprintf(lay->temp, sizeof lay->temp, ".cove-cp-%016llx", (unsigned long long)lay->seed++);
}

/* The name that an entry is to have: the first one may have another. */
static const char *name_for(const struct lay *lay, const struct tree_item *item)
{
    return lay->depth == 0 && lay->as ? lay->as : item->name;
}

static void tell_bits(struct lay *lay, const struct files_entry *entry, const char *name)
{
    if (entry->mode & 07000)
        lay_note(lay, WHY_SETID, (int)(entry->mode & 07000), name);
}

static struct timespec time_of(const struct files_entry *entry)
{
    return (struct timespec){ .tv_sec = (time_t)entry->mtime, .tv_nsec = (long)entry->nsec };
}

/* --- directories --- */

static void push(struct lay *lay, int fd, const char *name)
{
    struct lay_level *level = &lay->levels[lay->depth++];

    *level = (struct lay_level){ .fd = fd, .path_len = lay->path_len };
    if (*name)
        lay->path_len += (size_t)snprintf(lay->path + lay->path_len, sizeof lay->path - lay->path_len, "%s%s",
                                          lay->path_len ? "/" : "", name);
}

static int open_directory(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int lay_enter(void *owner, const struct tree_item *item)
{
    struct lay *lay = owner;
    const char *name = name_for(lay, item);
    int dir = here(lay), fd = -1;

    if (lay->into && lay->depth == 0) {
        push(lay, lay->top, "");
        return 0;
    }
    bool made = dir >= 0 && mkdirat(dir, name, 0700) == 0;

    if (dir >= 0 && (made || errno == EEXIST))
        fd = open_directory(dir, name);
    if (dir >= 0 && fd < 0 && failed(lay, name) < 0)
        return -1;
    if (fd >= 0 && made)
        tell_bits(lay, &item->entry, name);
    lay->files += fd >= 0;
    push(lay, fd, name);
    lay->levels[lay->depth - 1].made = made;
    lay->levels[lay->depth - 1].mode = item->entry.mode & PLAIN;
    lay->levels[lay->depth - 1].mtime = time_of(&item->entry);
    return 0;
}

/* Mode and time come last: a directory without rights could not be filled, and filling changes its time. */
static int lay_leave(void *owner)
{
    struct lay *lay = owner;
    struct lay_level *level = &lay->levels[--lay->depth];
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, level->mtime };
    int result = 0;

    if (level->fd >= 0 && level->made && (fchmod(level->fd, level->mode) < 0 || futimens(level->fd, times) < 0))
        result = failed(lay, "");
    if (level->fd >= 0 && level->fd != lay->top)
        close(level->fd);
    lay->path_len = level->path_len;
    lay->path[lay->path_len] = '\0';
    return result;
}

/* --- taking a name --- */

/* What lies there: its type, 0 for nothing. */
static mode_t type_of(int dir, const char *name)
{
    struct stat status;

    return fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ? 0 : status.st_mode & S_IFMT;
}

/* Where there was nothing, nothing is replaced; some file systems cannot promise that. */
static int rename_to_nothing(int dir, const char *from, const char *to)
{
    if (rename_at(dir, from, dir, to, true) == 0)
        return 0;
    return errno == EINVAL || errno == ENOSYS ? renameat(dir, from, dir, to) : -1;
}

/* Gives what is called lay->temp its name: in the place of nothing, or of something of the same type.  A rename
 * replaces the name, whatever it has become meanwhile, and follows nothing. */
static int take_name(struct lay *lay, const char *name, mode_t type)
{
    int dir = here(lay);
    mode_t there = type_of(dir, name);
    int result;

    errno = EEXIST;
    if (there && there != type)
        result = -1;
    else
        result = there ? renameat(dir, lay->temp, dir, name) : rename_to_nothing(dir, lay->temp, name);
    if (result == 0) {
        lay->files++;
        return 0;
    }
    int number = errno;

    (void)unlinkat(dir, lay->temp, 0);
    errno = number;
    return -1;
}

/* --- files --- */

static int make_temp(struct lay *lay, int dir)
{
    int fd = -1;

    for (int i = 0; i < TRIES && fd < 0; i++) {
        next_temp(lay);
        fd = openat(dir, lay->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Its place in the list is kept even if it does not come: numbers are those of the sender. */
static int add_twin(struct lay *lay)
{
    if (!lay->twins && !(lay->twins = calloc(FILES_TWINS_MAX, sizeof *lay->twins)))
        return -1;
    lay->twins_len++;
    return 0;
}

static int lay_file(void *owner, const struct tree_item *item)
{
    struct lay *lay = owner;
    int dir = here(lay);

    snprintf(lay->name, sizeof lay->name, "%s", name_for(lay, item));
    lay->entry = item->entry;
    lay->at = 0;
    if (item->entry.twin && add_twin(lay) < 0)
        return -1;
    if (dir < 0)
        return 0;
    if (lay->into && lay->depth == 0) {
        errno = ENOTDIR;
        return -1;
    }
    mode_t there = type_of(dir, lay->name);

    if (there && there != S_IFREG) { /* it is not read for nothing */
        lay_note(lay, WHY_IN_THE_WAY, 0, lay->name);
        return 0;
    }
    lay->fd = make_temp(lay, dir);
    return lay->fd < 0 ? failed(lay, lay->name) : 0;
}

static int give_up(struct lay *lay)
{
    int number = errno;

    drop_file(lay);
    errno = number;
    return failed(lay, lay->name);
}

static int lay_data(void *owner, const void *bytes, size_t len)
{
    struct lay *lay = owner;
    const char *from = bytes;

    while (lay->fd >= 0 && len) {
        ssize_t put = pwrite(lay->fd, from, len, (off_t)lay->at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return give_up(lay);
        from += put;
        len -= (size_t)put;
        lay->at += (uint64_t)put;
        lay->bytes += (uint64_t)put;
    }
    return 0;
}

static int lay_hole(void *owner, uint64_t len)
{
    struct lay *lay = owner;

    lay->at += len;
    return 0;
}

static void remember_twin(struct lay *lay, const struct stat *status)
{
    struct lay_twin *twin = &lay->twins[lay->twins_len - 1];
    size_t len = lay->path_len + strlen(lay->name) + 2;

    if (len > FILES_PATH_MAX ||
        asprintf(&twin->path, "%s%s%s", lay->path, lay->path_len ? "/" : "", lay->name) < 0) {
        twin->path = NULL;
        return;
    }
    twin->device = status->st_dev;
    twin->inode = status->st_ino;
}

static int finish_file(struct lay *lay)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, time_of(&lay->entry) };
    struct stat status;

    if (ftruncate(lay->fd, (off_t)lay->entry.size) < 0 || fchmod(lay->fd, lay->entry.mode & PLAIN) < 0 ||
        futimens(lay->fd, times) < 0 || fstat(lay->fd, &status) < 0)
        return give_up(lay);
    int closed = close(lay->fd); /* some file systems say only now that there is no room */

    lay->fd = -1;
    if (closed < 0) {
        int number = errno;

        (void)unlinkat(here(lay), lay->temp, 0);
        errno = number;
        return failed(lay, lay->name);
    }
    if (take_name(lay, lay->name, S_IFREG) < 0)
        return failed(lay, lay->name);
    tell_bits(lay, &lay->entry, lay->name);
    if (lay->entry.twin)
        remember_twin(lay, &status);
    return 0;
}

static int lay_file_end(void *owner, int status)
{
    struct lay *lay = owner;

    if (status && here(lay) >= 0) {
        drop_file(lay);
        lay_note(lay, status == ESTALE ? WHY_CHANGED : WHY_FAILED, status, lay->name);
        return 0;
    }
    return lay->fd >= 0 ? finish_file(lay) : 0;
}

/* --- links --- */

static int lay_link(void *owner, const struct tree_item *item)
{
    struct lay *lay = owner;
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, time_of(&item->entry) };
    const char *name = name_for(lay, item);
    int dir = here(lay), made = -1;

    if (dir < 0)
        return 0;
    if (lay->into && lay->depth == 0) {
        errno = ENOTDIR;
        return -1;
    }
    for (int i = 0; i < TRIES && made < 0 && (i == 0 || errno == EEXIST); i++) {
        next_temp(lay);
        made = symlinkat(item->target, dir, lay->temp);
    }
    if (made < 0)
        return failed(lay, name);
    (void)utimensat(dir, lay->temp, times, AT_SYMLINK_NOFOLLOW);
    return take_name(lay, name, S_IFLNK) < 0 ? failed(lay, name) : 0;
}

/* The directory that the last name of `path` lies in, without following anything; its descriptor may be
 * lay->top. */
static int walk(struct lay *lay, const char *path, const char **last)
{
    int dir = lay->top;

    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        char name[FILES_NAME_MAX + 1];
        size_t len = (size_t)(slash - path);
        int next = -1;

        errno = EINVAL;
        if (tree_is_name(path, len)) {
            memcpy(name, path, len);
            name[len] = '\0';
            next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (dir != lay->top)
            close(dir);
        if (next < 0)
            return -1;
        dir = next;
    }
    *last = path;
    return dir;
}

static int link_temp(struct lay *lay, const char *path)
{
    const char *last;
    int dir = walk(lay, path, &last), made = -1;

    if (dir < 0)
        return -1;
    errno = EINVAL;
    if (tree_is_name(last, strlen(last)))
        for (int i = 0; i < TRIES && made < 0 && (i == 0 || errno == EEXIST); i++) {
            next_temp(lay);
            made = linkat(dir, last, here(lay), lay->temp, 0);
        }
    int number = errno;

    if (dir != lay->top)
        close(dir);
    errno = number;
    return made;
}

/* A rename between two names of one file does nothing, and says that all is well. */
static void drop_temp(struct lay *lay)
{
    (void)unlinkat(here(lay), lay->temp, 0);
}

int lay_hard_link(struct lay *lay, const char *name, const char *path)
{
    if (here(lay) < 0)
        return 0;
    if (link_temp(lay, path) < 0 || take_name(lay, name, S_IFREG) < 0)
        return failed(lay, name);
    drop_temp(lay);
    return 0;
}

/* Only what came with this tree gets another name, never what lay there before. */
static int lay_twin(void *owner, const struct tree_item *item)
{
    struct lay *lay = owner;
    const struct lay_twin *twin =
        item->entry.twin <= lay->twins_len ? &lay->twins[item->entry.twin - 1] : &(struct lay_twin){ 0 };
    const char *name = name_for(lay, item);
    struct stat status;

    if (here(lay) < 0)
        return 0;
    if (!twin->path) {
        lay_note(lay, WHY_TWIN, 0, name);
        return 0;
    }
    if (link_temp(lay, twin->path) < 0)
        return failed(lay, name);
    if (fstatat(here(lay), lay->temp, &status, AT_SYMLINK_NOFOLLOW) < 0 || status.st_ino != twin->inode ||
        status.st_dev != twin->device) {
        drop_temp(lay);
        lay_note(lay, WHY_TWIN, 0, name);
        return 0;
    }
    if (take_name(lay, name, S_IFREG) < 0)
        return failed(lay, name);
    drop_temp(lay);
    return 0;
}

static int lay_left_out(void *owner, const struct tree_item *item)
{
    struct lay *lay = owner;

    lay_note(lay, item->note.why, item->note.number, name_for(lay, item));
    return 0;
}

const struct tree_sink lay_sink = {
    .enter = lay_enter,
    .leave = lay_leave,
    .file = lay_file,
    .data = lay_data,
    .hole = lay_hole,
    .file_end = lay_file_end,
    .link = lay_link,
    .twin = lay_twin,
    .left_out = lay_left_out,
};
