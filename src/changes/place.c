#include "changes/place.h"

#include "base/memory.h"
#include "base/own.h"
#include "changes/digest.h"
#include "changes/scan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int say(struct task *task, enum apply_outcome outcome, const char *why)
{
    task->result->outcome = outcome;
    error_set(&task->result->why, ERROR_REFUSED, "%s", why);
    return -1;
}

int place_conflict(struct task *task, const char *why)
{
    return say(task, APPLY_CONFLICT, why);
}

int place_refuse(struct task *task, const char *why)
{
    return say(task, APPLY_REFUSED, why);
}

int place_failed(struct task *task, const char *what)
{
    task->result->outcome = APPLY_FAILED;
    return error_sys(&task->result->why, "%s", what);
}

bool place_copies(const struct change *change)
{
    return change->new.type == SIDE_FILE && change->kind != CHANGE_MODE;
}

int place_ask(struct task *task, int original, int copy)
{
    const struct apply *apply = task->apply;

    if (!apply->accept || apply->accept(apply->owner, task->change, original, copy))
        return 0;
    return say(task, APPLY_LEFT, "it is not wanted as it is now");
}

struct link_target place_target(int dir, const char *name)
{
    struct link_target target = { 0 };

    if (readlinkat(dir, name, target.text, sizeof target.text - 1) < 0)
        target.text[0] = '\0';
    return target;
}

/* Never setuid.  Of other bits a directory keeps those that it had. */
static mode_t plain_mode(mode_t mode)
{
    return mode & 0777;
}

/* --- copying --- */

/* Bytes that cannot be shared are read and written. */
static int copy_slowly(int from, int to, off_t at, off_t end)
{
    enum { CHUNK = 128 << 10 };
    autofree char *buffer = memory_zero(CHUNK);

    while (at < end) {
        ssize_t got = content_read(from, at, buffer, end - at < CHUNK ? (size_t)(end - at) : CHUNK);

        if (got <= 0)
            return (int)got;
        for (ssize_t done = 0; done < got;) {
            ssize_t put = pwrite(to, buffer + done, (size_t)(got - done), at + done);

            if (put < 0 && errno != EINTR)
                return -1;
            done += put > 0 ? put : 0;
        }
        at += got;
    }
    return 0;
}

static int copy_range(int from, int to, off_t at, off_t end)
{
    off_t put = at;

    while (at < end) {
        ssize_t moved = copy_file_range(from, &at, to, &put, (size_t)(end - at), 0);

        if (moved == 0)
            return 0;
        if (moved < 0 && errno != EINTR)
            return copy_slowly(from, to, at, end);
    }
    return 0;
}

/* Holes stay holes: a file of many terabytes without data must not fill the disk. */
static int copy_bytes(int from, int to, off_t size)
{
    for (off_t at = content_data(from, 0, size), end; at < size; at = content_data(from, end, size)) {
        end = lseek(from, at, SEEK_HOLE);
        if (end <= at || end > size)
            end = size;
        if (copy_range(from, to, at, end) < 0)
            return -1;
    }
    return ftruncate(to, size);
}

/* --- making the new one beside its place --- */

/* As root: to whom the old one belongs, or the directory, not to us.  Anybody else keeps the group, if
 * it is one of theirs. */
static int own_as_before(const struct task *task)
{
    bool root = geteuid() == 0, keeps = task->seen.st_mode && task->seen.st_gid != getegid();
    struct stat like = task->seen;

    if (!root && !keeps)
        return 0;
    if (!like.st_mode && fstat(task->parent, &like) < 0)
        return -1;

    int changed =
        fchownat(task->parent, task->beside, root ? like.st_uid : (uid_t)-1, like.st_gid, AT_SYMLINK_NOFOLLOW);

    return root ? changed : 0;
}

static int check_content(struct task *task, int fd)
{
    const struct digest none = { 0 };
    struct digest written;

    if (!task->content)
        return 0;
    if (digest_equal(task->content, &none)) {
        errno = EIO;
        return place_failed(task, "read it when it was looked at");
    }
    if (digest_file(fd, &written) < 0)
        return place_failed(task, "read the file that was written");
    if (!digest_equal(&written, task->content))
        return place_refuse(task, "it was written to after it was looked at");
    return 0;
}

/* Without rights until it is whole. */
static int make_file(struct task *task)
{
    autoclose int from = scan_open_file(task->apply->upper, task->change->path), to = -1;
    struct stat status;

    if (from < 0 || fstat(from, &status) < 0)
        return place_failed(task, "open the sandbox's file");
    to = openat(task->parent, task->beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
    if (to < 0 || copy_bytes(from, to, status.st_size) < 0)
        return place_failed(task, "write the file");
    if (check_content(task, to) < 0 || place_ask(task, from, to) < 0)
        return -1;
    if (own_as_before(task) < 0 || fchmod(to, plain_mode(task->change->new.mode)) < 0)
        return place_failed(task, "set owner and mode");
    return 0;
}

static int make_link(struct task *task)
{
    if (symlinkat(task->change->new.target, task->parent, task->beside) < 0 || own_as_before(task) < 0)
        return place_failed(task, "make the link");
    return 0;
}

/* A directory that gives its group to what is made in it, gives it on. */
static int make_directory(struct task *task)
{
    autoclose int fd = -1;
    struct stat made;

    if (mkdirat(task->parent, task->beside, 0700) < 0 ||
        (fd = openat(task->parent, task->beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
        fstat(fd, &made) < 0 || own_as_before(task) < 0 ||
        fchmod(fd, plain_mode(task->change->new.mode) | 0700 | (made.st_mode & S_ISGID)) < 0)
        return place_failed(task, "make the directory");
    return 0;
}

static int make_beside(struct task *task)
{
    switch (task->change->new.type) {
    case SIDE_FILE:
        return make_file(task);
    case SIDE_LINK:
        return make_link(task);
    case SIDE_DIRECTORY:
        return make_directory(task);
    case SIDE_NONE:
    case SIDE_OTHER:
        break;
    }
    return place_refuse(task, "it is neither a file nor a link nor a directory");
}

/* --- putting it in its place --- */

/* Keeps errno, so that what went wrong before can still be said. */
static void drop_new(const struct task *task)
{
    int number = errno;

    (void)unlinkat(task->parent, task->beside, task->change->new.type == SIDE_DIRECTORY ? AT_REMOVEDIR : 0);
    errno = number;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What lies beside after a rename or an exchange stays there, and we say so: the next try looks at it. */
static int stays_beside(struct task *task, const char *what)
{
    char whole[BESIDE_MAX + 96];

    snprintf(whole, sizeof whole, "%s, which is now called %s", what, task->beside);
    return place_failed(task, whole);
}

/* What was there lies beside now.  1: it is not what we looked at. */
static int finish(struct task *task)
{
    struct stat old;

    if (fstatat(task->parent, task->beside, &old, AT_SYMLINK_NOFOLLOW) < 0)
        return stays_beside(task, "look at what was there");
    if (!is_same_file(&old, &task->seen))
        return 1;
    if (unlinkat(task->parent, task->beside, 0) < 0)
        return stays_beside(task, "remove what was there");
    return 0;
}

static int put_where_nothing_is(struct task *task)
{
    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_NOREPLACE) == 0)
        return 0;
    drop_new(task);
    return errno == EEXIST ? place_conflict(task, "something was made there meanwhile")
                           : place_failed(task, "put it in its place");
}

/* It has no content but what is in it: what is not empty is not exchanged, then given back. */
static int put_for_directory(struct task *task)
{
    if (unlinkat(task->parent, task->name, AT_REMOVEDIR) == 0)
        return put_where_nothing_is(task);
    drop_new(task);
    return errno == ENOTEMPTY ? place_conflict(task, "the directory that was there still holds something")
                              : place_failed(task, "remove the directory that was there");
}

/* After the exchange what was there lies beside.  If it is not what we looked at, the owner was
 * faster, and has it back. */
static int exchange(struct task *task)
{
    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_EXCHANGE) < 0) {
        drop_new(task);
        return place_failed(task, "put it in its place");
    }

    int result = finish(task);

    if (result <= 0)
        return result;
    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_EXCHANGE) < 0)
        return stays_beside(task, "give yours back");
    drop_new(task);
    return place_conflict(task, "it was written to while it was brought home");
}

/* Before it has its name: from then on it may be the owner who writes to it. */
static int note_put(struct task *task)
{
    struct stat made;

    if (fstatat(task->parent, task->beside, &made, AT_SYMLINK_NOFOLLOW) < 0)
        return place_failed(task, "look at what was made");
    task->result->put = print_of(&made);
    return 0;
}

int place_put(struct task *task)
{
    if (leftover_clear(task, task->change->path) < 0)
        return -1;
    if (make_beside(task) < 0 || note_put(task) < 0) {
        drop_new(task);
        return -1;
    }
    if (!task->seen.st_mode)
        return put_where_nothing_is(task);
    return S_ISDIR(task->seen.st_mode) ? put_for_directory(task) : exchange(task);
}

static int take_directory_away(struct task *task)
{
    if (unlinkat(task->parent, task->name, AT_REMOVEDIR) == 0)
        return 0;
    return errno == ENOTEMPTY ? place_conflict(task, "it holds files that the sandbox did not remove")
                              : place_failed(task, "remove the directory");
}

int place_take_away(struct task *task)
{
    if (S_ISDIR(task->seen.st_mode))
        return take_directory_away(task);
    if (leftover_clear(task, task->change->path) < 0)
        return -1;
    if (renameat2(task->parent, task->name, task->parent, task->beside, RENAME_NOREPLACE) < 0)
        return place_failed(task, "take it away");

    int result = finish(task);

    if (result <= 0)
        return result;
    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_NOREPLACE) < 0)
        return stays_beside(task, "give yours back");
    return place_conflict(task, "it was written to while it was taken away");
}

int place_mode(struct task *task, bool open)
{
    autoclose int fd = openat(task->parent, task->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    mode_t mode = plain_mode(task->change->new.mode);
    struct stat now;

    if (fd < 0 || fstat(fd, &now) < 0)
        return place_failed(task, "open it");
    if (now.st_ino != task->seen.st_ino || now.st_dev != task->seen.st_dev || S_ISLNK(now.st_mode))
        return place_conflict(task, "it was replaced meanwhile");
    if (!S_ISDIR(now.st_mode) && now.st_nlink > 1)
        return place_refuse(task, "it is a hard link, and its other names would change too");
    if (S_ISDIR(now.st_mode))
        mode |= (now.st_mode & 07000) | (open ? 0700 : 0);
    if (chmod(sys_fd_path(fd).text, mode) < 0)
        return place_failed(task, "change its mode");
    task->result->put = print_of(&task->seen);
    return 0;
}
