/* cove-files: the program of ours that handles files inside a sandbox.
 *
 * Theory of operation.  It is started by PID 1 as any command is, with the same user, filter and domain, and
 * reads requests from standard input until that ends (protocol.h).  So whatever a link, a mount or a race
 * inside leads it to, a command could have gone there as well, and nobody outside ever looks up a path inside.
 *
 * Should: answer each request once; hold no more in memory than a frame; remove what it began and did not
 * finish. Must not: have a right that a command has not; trust that it is alone. */

#include "inside/ask.h"
#include "inside/frames.h"
#include "inside/remove.h"
#include "inside/rename.h"
#include "inside/tree_send.h"
#include "inside/untar.h"
#include "inside/watch.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What is read of a file that has no size, as those of /proc. */
enum { SIZELESS_MAX = 1 << 20 };

static unsigned char got[FRAMES_ROOM], put[FRAMES_ROOM];
static struct frames frames = { .in = STDIN_FILENO, .out = STDOUT_FILENO, .got = got, .put = put };

static bool has(const struct ask *ask, uint32_t flag)
{
    return ask->request.flags & flag;
}

/* --- answers --- */

static int say_error(struct ask *ask, enum files_why why, int number)
{
    struct files_note note = { number, why };

    if (ask->told)
        return 0;
    ask->told = true;
    if (frames_send(&frames, SAY_ERROR, ask->id, &note, sizeof note, ask->path, strlen(ask->path)) < 0)
        return -1;
    return frames_flush(&frames);
}

static int say_ok(const struct ask *ask, uint32_t count)
{
    struct files_done done = { .count = count };

    return frames_send(&frames, SAY_OK, ask->id, &done, sizeof done, NULL, 0);
}

static int say_info(const struct ask *ask, int dir, const char *path, const char *name, bool follow)
{
    struct stat status;
    struct files_entry entry;
    char strings[FILES_NAME_MAX + FILES_PATH_MAX + 1];

    if (fstatat(dir, path, &status, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    entry = (struct files_entry){ .mode = status.st_mode,
                                  .nsec = (uint32_t)status.st_mtim.tv_nsec,
                                  .mtime = status.st_mtim.tv_sec,
                                  .size = (uint64_t)status.st_size,
                                  .uid = status.st_uid,
                                  .gid = status.st_gid,
                                  .name_len = (uint32_t)strlen(name) };
    if (entry.name_len > FILES_NAME_MAX)
        return 0;
    memcpy(strings, name, entry.name_len);
    if (S_ISLNK(status.st_mode)) {
        ssize_t len = readlinkat(dir, path, strings + entry.name_len, FILES_PATH_MAX);

        entry.target_len = len > 0 ? (uint32_t)len : 0;
    }
    return frames_send(&frames, SAY_INFO, ask->id, &entry, sizeof entry, strings,
                       entry.name_len + entry.target_len);
}

/* --- looking --- */

static int do_stat(struct ask *ask)
{
    return say_info(ask, AT_FDCWD, ask->path, "", has(ask, FILES_FOLLOW));
}

/* Names that go away meanwhile were not there. */
static int do_list(struct ask *ask)
{
    autoclosedir DIR *entries = opendir(ask->path);
    const struct dirent *entry;
    uint64_t count = 0;

    if (!entries)
        return -1;
    while ((errno = 0, entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count++ == ask->request.length)
            break;
        if (say_info(ask, dirfd(entries), entry->d_name, entry->d_name, false) < 0 && errno != ENOENT)
            return -1;
    }
    if (!entry && errno)
        return -1;
    ask->told = true;
    return say_ok(ask, entry != NULL);
}

static int open_to_read(const struct ask *ask, struct stat *status)
{
    int fd = open(ask->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, status) < 0)
        return fd;
    if (S_ISREG(status->st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(status->st_mode) ? EISDIR : ESPIPE;
    return -1;
}

/* A file that grows while it is read has an end: where it ended when it was opened. */
static int do_read(struct ask *ask)
{
    struct stat status = { 0 };
    autoclose int fd = open_to_read(ask, &status);
    uint64_t at = ask->request.offset, most = status.st_size ? (uint64_t)status.st_size : SIZELESS_MAX, left;

    if (fd < 0)
        return -1;
    left = at < most ? most - at : 0;
    left = left < ask->request.length ? left : ask->request.length;
    while (left) {
        unsigned char *room = frames_room(&frames);
        ssize_t len = room ? pread(fd, room, left < FRAME_MAX ? (size_t)left : FRAME_MAX, (off_t)at) : -1;

        if (len < 0)
            return -1;
        if (len == 0)
            break;
        frames_put_data(&frames, ask->id, (size_t)len);
        at += (uint64_t)len;
        left -= (uint64_t)len;
    }
    return 0;
}

/* --- what the host sends --- */

/* Takes frames up to END.  What goes wrong is told at once, and the rest is not looked at.  -1: the host is
 * gone, or said what it must not; 0: it is over, and *out_status is what END said. */
static int receive_all(struct ask *ask, int (*take)(void *owner, const struct frame *frame), void *owner,
                       int *out_status)
{
    struct frame frame;

    while (frames_receive(&frames, &frame) == FRAMES_GOT && frame.id == ask->id) {
        struct files_done done;

        if (frame.kind == ASK_END && frame.length == sizeof done) {
            memcpy(&done, frame.bytes, sizeof done);
            *out_status = done.status;
            return 0;
        }
        if (!ask->told && take(owner, &frame) < 0 && say_error(ask, WHY_FAILED, errno) < 0)
            return -1;
    }
    return -1;
}

static int write_frame(void *owner, const struct frame *frame)
{
    const int *fd = owner;
    size_t done = 0;

    errno = EBADMSG;
    if (frame->kind != TREE_DATA)
        return -1;
    while (done < frame->length) {
        ssize_t len = write(*fd, frame->bytes + done, frame->length - done);

        if (len < 0 && errno != EINTR)
            return -1;
        done += len > 0 ? (size_t)len : 0;
    }
    return 0;
}

static int open_to_write(const struct ask *ask, char *temp, size_t size)
{
    mode_t mode = ask->request.mode == UINT32_MAX ? 0666 : ask->request.mode & 0777;
    int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat status;

    *temp = '\0';
    if (has(ask, FILES_WHOLE)) {
        if (snprintf(temp, size, "%s.cove-%d", ask->path, (int)getpid()) >= (int)size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        return open(temp, flags | O_EXCL | O_NOFOLLOW, mode);
    }
    flags |= has(ask, FILES_APPEND) ? O_APPEND : O_TRUNC;

    int fd = open(ask->path, flags | (has(ask, FILES_NEW) ? O_EXCL : 0), mode);

    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    errno = ESPIPE;
    return -1;
}

static int finish_write(const struct ask *ask, int fd, const char *temp)
{
    if (ask->request.mode != UINT32_MAX && fchmod(fd, ask->request.mode & 0777) < 0)
        return -1;
    if (!*temp)
        return 0;
    return rename_at(AT_FDCWD, temp, AT_FDCWD, ask->path, has(ask, FILES_NEW));
}

static int do_write(struct ask *ask)
{
    char temp[FILES_PATH_MAX + 32];
    autoclose int fd = open_to_write(ask, temp, sizeof temp);
    int status = 0, result;

    if (fd < 0 && say_error(ask, WHY_FAILED, errno) < 0)
        return -1;
    result = receive_all(ask, write_frame, &fd, &status);
    if (result == 0 && !ask->told && !status && (result = finish_write(ask, fd, temp)) < 0)
        (void)say_error(ask, WHY_FAILED, errno);
    if (*temp && fd >= 0 && (result < 0 || status || ask->told))
        (void)unlink(temp);
    errno = status ? ECANCELED : errno;
    return result < 0 || status ? -1 : 0;
}

/* --- trees --- */

/* Told when all is over: before that the host does not listen. */
static struct {
    struct files_note note;
    char path[1024];
} notes[FILES_NOTES_MAX];
static size_t notes_len, notes_more;

static void keep_note(void *owner, const struct files_note *note, const char *path)
{
    (void)owner;
    if (notes_len == FILES_NOTES_MAX) {
        notes_more++;
        return;
    }
    notes[notes_len].note = *note;
    snprintf(notes[notes_len++].path, sizeof notes->path, "%s", path);
}

static int say_notes(const struct ask *ask)
{
    struct files_note more = { (int)notes_more, WHY_MORE };

    for (size_t i = 0; i < notes_len; i++)
        if (frames_send(&frames, SAY_NOTE, ask->id, &notes[i].note, sizeof notes->note, notes[i].path,
                        strlen(notes[i].path)) < 0)
            return -1;
    return notes_more ? frames_send(&frames, SAY_NOTE, ask->id, &more, sizeof more, NULL, 0) : 0;
}

/* Splits off the last name.  False if the path is a directory by the way it is written: "/", "x/", "x/.". */
static bool split(const char *path, char *dir, const char **name)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

    if (!tree_is_name(last, strlen(last)))
        return false;
    snprintf(dir, FILES_PATH_MAX + 1, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    *name = last;
    return true;
}

static int open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int do_send(struct ask *ask)
{
    static struct tree_sender sender;
    char real[PATH_MAX], dir[FILES_PATH_MAX + 1];
    const char *path = has(ask, FILES_FOLLOW) ? realpath(ask->path, real) : ask->path, *name = ".";
    struct stat status;

    if (!path)
        return -1;
    bool named = split(path, dir, &name);
    autoclose int from = open_directory(named ? dir : path);

    if (from < 0 || fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    sender = (struct tree_sender){ .frames = &frames, .id = ask->id };
    return tree_send(&sender, from, name, named ? name : "tree");
}

static int take_tree(void *owner, const struct frame *frame)
{
    return tree_read(owner, frame);
}

static int open_to_lay(struct ask *ask, struct lay *lay, char *dir)
{
    if (has(ask, FILES_INTO))
        return open_directory(ask->path);
    errno = EINVAL;
    return split(ask->path, dir, &lay->as) ? open_directory(dir) : -1;
}

/* The end of what was laid: what was told, and how it went. */
static int end_lay(struct ask *ask, const struct lay *lay, bool whole)
{
    if (!ask->told && !whole)
        return say_error(ask, WHY_FORM, EBADMSG);
    if (ask->told)
        return 0;
    if (say_notes(ask) < 0)
        return -1;
    ask->told = true;
    return say_ok(ask, lay->files < UINT32_MAX ? (uint32_t)lay->files : UINT32_MAX);
}

static int do_take(struct ask *ask)
{
    static struct lay lay;
    char dir[FILES_PATH_MAX + 1];
    struct tree_reader reader = { .sink = &lay_sink, .owner = &lay };
    int status = 0, result;

    memset(&lay, 0, sizeof lay);
    lay.note = keep_note;
    lay.into = has(ask, FILES_INTO);
    autoclose int top = open_to_lay(ask, &lay, dir);

    lay.top = top;
    if (top < 0 && say_error(ask, WHY_FAILED, errno) < 0)
        return -1;
    lay_begin(&lay);
    result = receive_all(ask, take_tree, &reader, &status);
    lay_end(&lay);
    return result < 0 || end_lay(ask, &lay, !status && tree_is_whole(&reader)) < 0 ? -1 : 0;
}

static int take_tar(void *owner, const struct frame *frame)
{
    errno = EBADMSG;
    return frame->kind == TREE_DATA ? untar_bytes(owner, frame->bytes, frame->length) : -1;
}

static int do_untar(struct ask *ask)
{
    static struct untar untar;
    int status = 0, result;

    memset(&untar, 0, sizeof untar);
    autoclose int top = open_directory(ask->path);

    untar.lay.top = top;
    untar.lay.note = keep_note;
    if (top < 0 && say_error(ask, WHY_FAILED, errno) < 0)
        return -1;
    lay_begin(&untar.lay);
    result = receive_all(ask, take_tar, &untar, &status);
    bool whole = result == 0 && !status && !ask->told && untar_end(&untar) == 0;

    lay_end(&untar.lay);
    return result < 0 || end_lay(ask, &untar.lay, whole) < 0 ? -1 : 0;
}

/* --- changing --- */

static int make_one(const char *path, mode_t mode, bool may_be_there)
{
    struct stat status;

    if (mkdir(path, mode) == 0)
        return 0;
    if (!may_be_there || errno != EEXIST)
        return -1;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    errno = ENOTDIR;
    return -1;
}

static int do_make(struct ask *ask)
{
    mode_t mode = ask->request.mode == UINT32_MAX ? 0777 : ask->request.mode & 0777;
    bool parents = has(ask, FILES_PARENTS);

    for (char *at = ask->path + 1; parents && (at = strchr(at, '/')); at++) {
        *at = '\0';
        int made = make_one(ask->path, 0777, true);

        *at = '/';
        if (made < 0)
            return -1;
    }
    if (make_one(ask->path, mode, parents) < 0)
        return -1;
    return ask->request.mode == UINT32_MAX ? 0 : chmod(ask->path, mode);
}

static int do_move(struct ask *ask)
{
    return rename_at(AT_FDCWD, ask->path, AT_FDCWD, ask->other, has(ask, FILES_NEW));
}

static int do_remove(struct ask *ask)
{
    return remove_path(ask->path, has(ask, FILES_RECURSIVE));
}

static int do_symlink(struct ask *ask)
{
    return symlink(ask->other, ask->path);
}

static int do_mode(struct ask *ask)
{
    return chmod(ask->path, ask->request.mode & 07777);
}

static int do_times(struct ask *ask)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                       { (time_t)ask->request.mtime, (long)ask->request.nsec } };

    return utimensat(AT_FDCWD, ask->path, times, has(ask, FILES_FOLLOW) ? 0 : AT_SYMLINK_NOFOLLOW);
}

static int do_watch(struct ask *ask)
{
    struct frame frame;

    if (watch_run(&frames, ask->id, ask->path, has(ask, FILES_RECURSIVE)) < 0)
        return -1;
    if (frames_receive(&frames, &frame) == FRAMES_GOT && frame.kind == ASK_CANCEL && frame.id == ask->id)
        return 0;
    _exit(1); /* the host is gone, or does not keep to the order */
}

/* --- requests --- */

static int (*const requests[])(struct ask *ask) = {
    [ASK_STAT] = do_stat,   [ASK_LIST] = do_list,   [ASK_READ] = do_read,     [ASK_WRITE] = do_write,
    [ASK_MAKE] = do_make,   [ASK_MOVE] = do_move,   [ASK_REMOVE] = do_remove, [ASK_SYMLINK] = do_symlink,
    [ASK_MODE] = do_mode,   [ASK_TIMES] = do_times, [ASK_SEND] = do_send,     [ASK_TAKE] = do_take,
    [ASK_UNTAR] = do_untar, [ASK_WATCH] = do_watch,
};

/* False: there is no way to go on. */
static bool answer(const struct frame *frame)
{
    static struct ask ask;

    notes_len = notes_more = 0;
    if (frame->kind >= sizeof requests / sizeof *requests || !requests[frame->kind] || !ask_read(frame, &ask))
        return false;
    int result = requests[frame->kind](&ask);

    if (!ask.told && (result < 0 ? say_error(&ask, WHY_FAILED, errno) : say_ok(&ask, 0)) < 0)
        return false;
    return true;
}

int main(void)
{
    struct frame frame;
    int got_one;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    while ((got_one = frames_receive(&frames, &frame)) == FRAMES_GOT)
        if (!answer(&frame))
            return 1;
    return got_one < 0;
}
