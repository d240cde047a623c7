#include "inside/tree_send.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif

enum { SEEN_SLOTS = 2 * FILES_TWINS_MAX };

static int send_note(struct tree_sender *sender, enum files_why why, int number, const char *name)
{
    struct files_note note = { number, why };

    return frames_send(sender->frames, TREE_LEFT_OUT, sender->id, &note, sizeof note, name, strlen(name));
}

static struct files_entry entry_of(const struct stat *status, const char *name)
{
    return (struct files_entry){ .mode = status->st_mode,
                                 .nsec = (uint32_t)status->st_mtim.tv_nsec,
                                 .mtime = status->st_mtim.tv_sec,
                                 .size = S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0,
                                 .uid = status->st_uid,
                                 .gid = status->st_gid,
                                 .name_len = (uint32_t)strlen(name) };
}

static int send_entry(struct tree_sender *sender, uint32_t kind, const struct files_entry *entry,
                      const char *name)
{
    return frames_send(sender->frames, kind, sender->id, entry, sizeof *entry, name, entry->name_len);
}

/* --- files --- */

/* A slot for the file: used, or free, or NULL if there is no room for more. */
static struct tree_seen *find_seen(struct tree_sender *sender, const struct stat *status)
{
    size_t at = (size_t)(status->st_ino * 0x9e3779b97f4a7c15ULL >> 40);

    if (!sender->seen && !(sender->seen = calloc(SEEN_SLOTS, sizeof *sender->seen)))
        return NULL;
    for (;; at++) {
        struct tree_seen *seen = &sender->seen[at % SEEN_SLOTS];

        if (!seen->number)
            return sender->twins < FILES_TWINS_MAX ? seen : NULL;
        if (seen->inode == status->st_ino && seen->device == status->st_dev)
            return seen;
    }
}

/* 1: it was another name of a file that was sent.  Gives the file a number if it may have more. */
static int send_as_twin(struct tree_sender *sender, const struct stat *status, struct files_entry *entry,
                        const char *name)
{
    struct tree_seen *seen = status->st_nlink > 1 ? find_seen(sender, status) : NULL;

    if (!seen)
        return 0;
    if (!seen->number) {
        *seen = (struct tree_seen){ status->st_dev, status->st_ino, ++sender->twins };
        entry->twin = seen->number;
        return 0;
    }
    entry->twin = seen->number;
    return send_entry(sender, TREE_TWIN, entry, name) < 0 ? -1 : 1;
}

static bool is_told_to_stop(const struct tree_sender *sender)
{
    if (!sender->listens || !frames_has_word(sender->frames))
        return false;
    errno = ECANCELED;
    return true;
}

/* Where the next data is, from `at` on; the end if there is none. */
static off_t skip_hole(int fd, off_t at, const struct stat *status)
{
    if ((uint64_t)status->st_blocks * 512 >= (uint64_t)status->st_size)
        return at;

    off_t data = lseek(fd, at, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? status->st_size : at;
    return data < status->st_size ? data : status->st_size;
}

static int send_hole(struct tree_sender *sender, off_t len)
{
    uint64_t bytes = (uint64_t)len;

    return frames_send(sender->frames, TREE_HOLE, sender->id, &bytes, sizeof bytes, NULL, 0);
}

/* 0, or an errno that the other end is told; -1 if it cannot be told anything any more. */
static int send_content(struct tree_sender *sender, int fd, const struct stat *status)
{
    for (off_t at = 0; at < status->st_size;) {
        off_t data = skip_hole(fd, at, status);
        unsigned char *room;

        if (is_told_to_stop(sender) || (data > at && send_hole(sender, data - at) < 0))
            return -1;
        at = data;
        if (at >= status->st_size)
            break;
        if (!(room = frames_room(sender->frames)))
            return -1;

        off_t left = status->st_size - at;
        ssize_t got = pread(fd, room, left < FRAME_MAX ? (size_t)left : FRAME_MAX, at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : ESTALE;
        frames_put_data(sender->frames, sender->id, (size_t)got);
        at += got;
        sender->bytes += (uint64_t)got;
    }
    return 0;
}

static int send_file(struct tree_sender *sender, int dir, const char *name, const char *as)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return send_note(sender, WHY_FAILED, errno, as);
    if (!S_ISREG(status.st_mode))
        return send_note(sender, WHY_CHANGED, 0, as);

    struct files_entry entry = entry_of(&status, as);
    int twin = send_as_twin(sender, &status, &entry, as);

    if (twin != 0)
        return twin < 0 ? -1 : 0;
    if (send_entry(sender, TREE_FILE, &entry, as) < 0)
        return -1;

    int sent = send_content(sender, fd, &status);
    struct files_done done = { .status = sent };

    if (sent < 0)
        return -1;
    sender->files++;
    return frames_send(sender->frames, TREE_FILE_END, sender->id, &done, sizeof done, NULL, 0);
}

/* --- links and directories --- */

static int send_link(struct tree_sender *sender, int dir, const char *name, const char *as,
                     const struct stat *status)
{
    struct files_entry entry = entry_of(status, as);
    char strings[FILES_NAME_MAX + FILES_PATH_MAX + 1];
    ssize_t len = readlinkat(dir, name, strings + entry.name_len, FILES_PATH_MAX + 1);

    if (len <= 0 || len > FILES_PATH_MAX)
        return send_note(sender, WHY_FAILED, len < 0 ? errno : ENAMETOOLONG, as);
    memcpy(strings, as, entry.name_len);
    entry.target_len = (uint32_t)len;
    sender->files++;
    return frames_send(sender->frames, TREE_LINK, sender->id, &entry, sizeof entry, strings,
                       entry.name_len + entry.target_len);
}

/* What a kernel makes up when it is asked is nobody's tree. */
static bool is_made_up(int fd)
{
    static const unsigned long kinds[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,        CGROUP_SUPER_MAGIC,
                                           CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, MQUEUE_MAGIC };
    struct statfs system;

    if (fstatfs(fd, &system) < 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((unsigned long)system.f_type == kinds[i])
            return true;
    return false;
}

static int send_directory(struct tree_sender *sender, int dir, const char *name, const char *as)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return send_note(sender, WHY_FAILED, errno, as);
    if (sender->depth >= FILES_DEPTH_MAX)
        return send_note(sender, WHY_DEEP, 0, as);
    if ((!sender->depth || sender->levels[sender->depth - 1].device != status.st_dev) && is_made_up(fd))
        return send_note(sender, WHY_SPECIAL, 0, as);

    struct files_entry entry = entry_of(&status, as);
    DIR *entries = fdopendir(fd);

    if (!entries)
        return -1;
    (void)steal_fd(&fd);
    sender->levels[sender->depth].entries = entries;
    sender->levels[sender->depth++].device = status.st_dev;
    sender->files++;
    return send_entry(sender, TREE_DIR, &entry, as);
}

/* --- the walk --- */

static int send_one(struct tree_sender *sender, int dir, const char *name, const char *as)
{
    struct stat status;

    if (is_told_to_stop(sender))
        return -1;
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return send_note(sender, WHY_FAILED, errno, as);
    switch (status.st_mode & S_IFMT) {
    case S_IFREG:
        return send_file(sender, dir, name, as);
    case S_IFDIR:
        return send_directory(sender, dir, name, as);
    case S_IFLNK:
        return send_link(sender, dir, name, as, &status);
    default:
        return send_note(sender, WHY_SPECIAL, 0, as);
    }
}

static int leave(struct tree_sender *sender)
{
    closedir(sender->levels[--sender->depth].entries);
    return frames_send(sender->frames, TREE_LEAVE, sender->id, NULL, 0, NULL, 0);
}

/* One more name of the innermost directory, or out of it. */
static int go_on(struct tree_sender *sender)
{
    DIR *entries = sender->levels[sender->depth - 1].entries;
    const struct dirent *entry;

    do
        entry = readdir(entries);
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    if (!entry)
        return leave(sender);
    if (strlen(entry->d_name) > FILES_NAME_MAX) /* some file systems have longer ones; nobody can make them */
        return send_note(sender, WHY_NAME, 0, "?");
    return send_one(sender, dirfd(entries), entry->d_name, entry->d_name);
}

int tree_send(struct tree_sender *sender, int dir, const char *name, const char *as)
{
    int result = send_one(sender, dir, name, as);

    while (result == 0 && sender->depth)
        result = go_on(sender);

    int number = errno;

    while (sender->depth)
        closedir(sender->levels[--sender->depth].entries);
    free(sender->seen);
    sender->seen = NULL;
    errno = number;
    return result;
}
