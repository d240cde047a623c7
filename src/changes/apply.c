#include "changes/apply.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/changes.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* One change on its way home. */
struct task {
    const struct apply *apply;
    const struct change *change;
    int parent;       /* the directory of the tree that it lies in */
    const char *name; /* in there */
    char beside[48];  /* the name under which it is made */
    struct stat seen; /* what is there now; st_mode 0: nothing */
    struct apply_result *result;
};

static int say(struct task *task, enum apply_outcome outcome, const char *why)
{
    task->result->outcome = outcome;
    error_set(&task->result->why, ERROR_REFUSED, "%s", why);
    return -1;
}

static int conflict(struct task *task, const char *why)
{
    return say(task, APPLY_CONFLICT, why);
}

static int failed(struct task *task, const char *what)
{
    task->result->outcome = APPLY_FAILED;
    return error_sys(&task->result->why, "%s", what);
}

/* --- places --- */

static int open_beneath(int root, const char *path, uint64_t flags)
{
    return sys_openat2(root, path, flags | O_CLOEXEC,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static int open_directory_of(int root, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    autofree char *directory = slash ? text_format("%.*s", (int)(slash - path), path) : text_copy(".");

    *name = slash ? slash + 1 : path;
    return open_beneath(root, directory, O_RDONLY | O_DIRECTORY);
}

/* The same for the same place, so that a second try finds what the first one left. */
static void name_beside(struct task *task)
{
    uint64_t hash = 0xcbf29ce484222325ULL;

    for (const char *at = task->name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3ULL;
    snprintf(task->beside, sizeof task->beside, ".cove-apply-%016" PRIx64, hash);
}

/* Rights of a file of the owner's: never setuid, always the owner's own. */
static mode_t plain_mode(mode_t mode)
{
    return mode & 0777;
}

static bool before(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/* What an earlier try left: ours (without rights, then older than the sandbox), or the
 * owner's old file, exchanged already.  One that was written since may be the only copy of something. */
static int clear_beside(struct task *task)
{
    struct stat left;

    if (fstatat(task->parent, task->beside, &left, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : failed(task, "look for an earlier try");
    if (S_ISREG(left.st_mode) && plain_mode(left.st_mode) && !before(left.st_mtim, task->apply->since)) {
        error_set(&task->result->why, ERROR_REFUSED, "%s beside it may be yours; look at it, then remove it",
                  task->beside);
        task->result->outcome = APPLY_CONFLICT;
        return -1;
    }
    if (unlinkat(task->parent, task->beside, S_ISDIR(left.st_mode) ? AT_REMOVEDIR : 0) < 0)
        return failed(task, "remove what an earlier try left");
    return 0;
}

/* --- is it still what the sandbox saw? --- */

static enum side_type type_of(mode_t mode)
{
    if (!mode)
        return SIDE_NONE;
    if (S_ISREG(mode))
        return SIDE_FILE;
    if (S_ISLNK(mode))
        return SIDE_LINK;
    return S_ISDIR(mode) ? SIDE_DIRECTORY : SIDE_OTHER;
}

static int look(struct task *task)
{
    if (fstatat(task->parent, task->name, &task->seen, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    memset(&task->seen, 0, sizeof task->seen);
    return errno == ENOENT ? 0 : failed(task, "look at what is there");
}

static bool is_as_scanned(const struct task *task)
{
    const struct side *old = &task->change->old;

    if (type_of(task->seen.st_mode) != old->type)
        return false;
    if (old->type != SIDE_FILE)
        return true;
    return (uint64_t)task->seen.st_size == old->size && task->seen.st_mtim.tv_sec == old->mtime.tv_sec &&
           task->seen.st_mtim.tv_nsec == old->mtime.tv_nsec;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* --- making the new one beside its place --- */

static int open_new(const struct task *task)
{
    return open_beneath(task->apply->upper, task->change->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

/* As root: to whom the directory belongs, not to us. */
static int own_as_directory(const struct task *task)
{
    struct stat parent;

    if (geteuid() != 0)
        return 0;
    if (fstat(task->parent, &parent) < 0)
        return -1;
    return fchownat(task->parent, task->beside, parent.st_uid, parent.st_gid, AT_SYMLINK_NOFOLLOW);
}

/* As much as there was when we began: what grows as fast as it is copied has no end. */
static size_t rest(off_t size, off_t done)
{
    return size - done < 1 << 30 ? (size_t)(size - done) : (size_t)1 << 30;
}

static int copy_bytes(int from, int to, off_t size)
{
    off_t done = 0;
    ssize_t moved = copy_file_range(from, NULL, to, NULL, rest(size, 0), 0);

    while (moved > 0) {
        done += moved;
        moved = copy_file_range(from, NULL, to, NULL, rest(size, done), 0);
    }
    if (moved == 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
        return (int)moved;
    if (lseek(from, 0, SEEK_SET) < 0 || lseek(to, 0, SEEK_SET) < 0)
        return -1;
    for (done = 0; (moved = sendfile(to, from, NULL, rest(size, done))) > 0;)
        done += moved;
    return (int)moved;
}

static int ask(struct task *task, int original, int copy)
{
    const struct apply *apply = task->apply;

    if (!apply->accept || apply->accept(apply->owner, task->change, original, copy))
        return 0;
    return say(task, APPLY_LEFT, "it is not wanted as it is now");
}

static int make_file(struct task *task)
{
    const struct timespec old = { task->apply->since.tv_sec - 1, 0 }, times[2] = { old, old };
    autoclose int from = open_new(task), to = -1;
    struct stat status;

    if (from < 0 || fstat(from, &status) < 0 || !S_ISREG(status.st_mode))
        return failed(task, "open the sandbox's file");
    to = openat(task->parent, task->beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
    if (to < 0 || copy_bytes(from, to, status.st_size) < 0)
        return failed(task, "write the file");
    if (ask(task, from, to) < 0)
        return -1;
    if (own_as_directory(task) < 0 || (!task->apply->live && futimens(to, times) < 0) ||
        fchmod(to, plain_mode(task->change->new.mode)) < 0)
        return failed(task, "set owner, mode and time");
    return 0;
}

static int make_link(struct task *task)
{
    if (symlinkat(task->change->new.target, task->parent, task->beside) < 0 || own_as_directory(task) < 0)
        return failed(task, "make the link");
    return 0;
}

static int make_directory(struct task *task)
{
    if (mkdirat(task->parent, task->beside, 0700) < 0 || own_as_directory(task) < 0 ||
        fchmodat(task->parent, task->beside, plain_mode(task->change->new.mode) | 0700, 0) < 0)
        return failed(task, "make the directory");
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
    return say(task, APPLY_REFUSED, "it is neither a file nor a link nor a directory");
}

/* --- putting it in its place --- */

static int drop(const struct task *task, mode_t mode)
{
    return unlinkat(task->parent, task->beside, S_ISDIR(mode) ? AT_REMOVEDIR : 0);
}

static int put_where_nothing_was(struct task *task)
{
    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_NOREPLACE) == 0)
        return 0;
    int number = errno;

    (void)drop(task, task->change->new.type == SIDE_DIRECTORY ? S_IFDIR : S_IFREG);
    errno = number;
    return number == EEXIST ? conflict(task, "something was made there meanwhile")
                            : failed(task, "put it in its place");
}

/* After the exchange what was there lies beside.  If it is not what we looked at, the owner was
 * faster, and has it back. */
static int exchange(struct task *task)
{
    struct stat old;

    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_EXCHANGE) < 0) {
        (void)drop(task, task->change->new.type == SIDE_DIRECTORY ? S_IFDIR : S_IFREG);
        return failed(task, "put it in its place");
    }
    if (fstatat(task->parent, task->beside, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_same_file(&old, &task->seen)) {
        if (drop(task, old.st_mode) == 0)
            return 0;
        (void)renameat2(task->parent, task->beside, task->parent, task->name, RENAME_EXCHANGE);
        (void)drop(task, task->change->new.type == SIDE_DIRECTORY ? S_IFDIR : S_IFREG);
        return conflict(task, "the directory that was there still holds something");
    }
    if (renameat2(task->parent, task->beside, task->parent, task->name, RENAME_EXCHANGE) < 0)
        return failed(task, "give the owner's file back; it lies beside its place");
    (void)drop(task, task->change->new.type == SIDE_DIRECTORY ? S_IFDIR : S_IFREG);
    return conflict(task, "it was written to while it was brought home");
}

/* Before it has its name: from then on it may be the owner who writes to it. */
static int note_put(struct task *task)
{
    struct stat made;

    if (!task->apply->live)
        return 0;
    if (fstatat(task->parent, task->beside, &made, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(task, "look at what was made");
    task->result->put = print_of(&made);
    return 0;
}

static int put(struct task *task)
{
    if (clear_beside(task) < 0)
        return -1;
    if (make_beside(task) < 0 || note_put(task) < 0) {
        (void)drop(task, task->change->new.type == SIDE_DIRECTORY ? S_IFDIR : S_IFREG);
        return -1;
    }
    if ((task->seen.st_mode ? exchange(task) : put_where_nothing_was(task)) < 0)
        return -1;
    if (!task->apply->live)
        (void)utimensat(task->parent, task->name, NULL, AT_SYMLINK_NOFOLLOW); /* builds go by it */
    return 0;
}

static int take_away(struct task *task)
{
    struct stat old;

    if (S_ISDIR(task->seen.st_mode)) {
        if (unlinkat(task->parent, task->name, AT_REMOVEDIR) == 0)
            return 0;
        return errno == ENOTEMPTY ? conflict(task, "it holds files that the sandbox did not remove")
                                  : failed(task, "remove the directory");
    }
    if (clear_beside(task) < 0)
        return -1;
    if (renameat2(task->parent, task->name, task->parent, task->beside, RENAME_NOREPLACE) < 0)
        return failed(task, "take it away");
    if (fstatat(task->parent, task->beside, &old, AT_SYMLINK_NOFOLLOW) == 0 && is_same_file(&old, &task->seen))
        return drop(task, old.st_mode) < 0 ? failed(task, "remove it") : 0;
    (void)renameat2(task->parent, task->beside, task->parent, task->name, RENAME_NOREPLACE);
    return conflict(task, "it was written to while it was taken away");
}

static int change_mode(struct task *task)
{
    autoclose int fd = openat(task->parent, task->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat now;

    if (fd < 0 || fstat(fd, &now) < 0)
        return failed(task, "open it");
    if (now.st_ino != task->seen.st_ino || S_ISLNK(now.st_mode))
        return conflict(task, "it was replaced meanwhile");
    if (chmod(sys_fd_path(fd).text, plain_mode(task->change->new.mode)) < 0)
        return failed(task, "change its mode");
    task->result->put = print_of(&task->seen);
    return 0;
}

static int rename_directory(struct task *task)
{
    const char *name;
    autoclose int from = open_directory_of(task->apply->tree, task->change->from, &name);

    if (from < 0)
        return conflict(task, "the directory that was renamed is not there");
    if (renameat2(from, name, task->parent, task->name, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EEXIST ? conflict(task, "something was made there meanwhile")
                           : failed(task, "rename the directory");
}

/* --- one change --- */

static bool has_same_bytes(const struct task *task)
{
    autoclose int new = open_new(task), old = -1;
    char a[8192], b[8192];
    ssize_t got;

    old = openat(task->parent, task->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (new < 0 || old < 0)
        return false;
    while ((got = read(new, a, sizeof a)) > 0) {
        for (ssize_t done = 0; done < got;) {
            ssize_t more = read(old, b + done, (size_t)(got - done));

            if (more <= 0)
                return false;
            done += more;
        }
        if (memcmp(a, b, (size_t)got) != 0)
            return false;
    }
    return got == 0 && read(old, b, 1) == 0;
}

/* A second try, or the owner did the same. */
static bool is_done_already(const struct task *task)
{
    const struct side *new = &task->change->new;
    enum side_type there = type_of(task->seen.st_mode);
    char target[4096];

    if (there != new->type)
        return false;
    if (new->type == SIDE_NONE)
        return true;
    if (new->type == SIDE_LINK) {
        ssize_t len = readlinkat(task->parent, task->name, target, sizeof target);

        return len >= 0 && (size_t)len == strlen(new->target) && memcmp(target, new->target, (size_t)len) == 0;
    }
    if (plain_mode(task->seen.st_mode) != plain_mode(new->mode))
        return false;
    return new->type == SIDE_DIRECTORY || ((uint64_t)task->seen.st_size == new->size &&has_same_bytes(task));
}

static int refuse(struct task *task)
{
    static const struct {
        unsigned flag;
        const char *why;
    } reasons[] = {
        { FLAG_SPECIAL, "devices, pipes and sockets are never brought home" },
        { FLAG_LINK_OUT, "the link leads out of the workspace" },
        { FLAG_HIDDEN, "you have a file there that the sandbox was not shown" },
        { FLAG_UNREADABLE, "it cannot be read" },
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (task->change->flags & reasons[i].flag)
            return say(task, APPLY_REFUSED, reasons[i].why);
    if (task->change->count > 0)
        return say(task, APPLY_REFUSED, "too many files below it went; remove the directory yourself");
    return 0;
}

static int check(struct task *task)
{
    if (refuse(task) < 0 || look(task) < 0)
        return -1;
    if (is_done_already(task)) {
        task->result->outcome = APPLY_SAME;
        return 1;
    }
    if (task->change->kind == CHANGE_RENAMED && task->seen.st_mode)
        return conflict(task, "something was made there meanwhile");
    if (task->change->kind == CHANGE_RENAMED && task->change->new.type == SIDE_DIRECTORY)
        return 0;
    if (task->change->flags & FLAG_BASE_CHANGED ||
        (task->change->kind != CHANGE_RENAMED && !is_as_scanned(task)))
        return conflict(task, "it was changed on the host since the sandbox began");
    return 0;
}

static int carry_out(struct task *task)
{
    bool copies = task->change->new.type == SIDE_FILE && task->change->kind != CHANGE_MODE;

    if (!copies && ask(task, -1, -1) < 0)
        return -1;
    switch (task->change->kind) {
    case CHANGE_REMOVED:
        return take_away(task);
    case CHANGE_MODE:
        return change_mode(task);
    case CHANGE_RENAMED:
        if (task->change->new.type == SIDE_DIRECTORY)
            return rename_directory(task);
        return put(task);
    case CHANGE_ADDED:
    case CHANGE_CHANGED:
    case CHANGE_RETYPED:
        return put(task);
    }
    return -1;
}

static void apply_at(const struct apply *apply, const struct change *change, const char *path,
                     struct apply_result *result)
{
    struct task task = { .apply = apply, .change = change, .result = result };
    autoclose int parent = open_directory_of(apply->tree, path, &task.name);

    task.parent = parent;
    result->outcome = APPLY_DONE;
    if (parent < 0) {
        if (errno == ENOENT && apply->only_look)
            return; /* its directory would have been made */
        (void)conflict(&task, "the directory it lies in is not there any more");
        return;
    }
    name_beside(&task);
    if (check(&task) == 0 && !apply->only_look)
        (void)carry_out(&task);
}

/* A file that was renamed is put at its new place first; then the old one goes. */
static void remove_origin(const struct apply *apply, const struct change *change, struct apply_result *result)
{
    struct change gone = { .path = change->from, .kind = CHANGE_REMOVED, .old = change->old };

    if (result->outcome == APPLY_DONE || result->outcome == APPLY_SAME)
        apply_at(apply, &gone, change->from, result);
}

/* --- all of them --- */

enum round { ROUND_DIRECTORY_RENAMES, ROUND_MOST, ROUND_REMOVALS, ROUNDS };

static enum round round_of(const struct change *change)
{
    if (change->kind == CHANGE_RENAMED && change->new.type == SIDE_DIRECTORY)
        return ROUND_DIRECTORY_RENAMES;
    if (change->kind == CHANGE_REMOVED ||
        (change->kind == CHANGE_RETYPED && change->old.type == SIDE_DIRECTORY))
        return ROUND_REMOVALS;
    return ROUND_MOST;
}

static void apply_round(const struct apply *apply, const struct changes *changes, enum round round,
                        struct apply_result *results)
{
    for (size_t n = 0; n < changes->len; n++) {
        size_t i = round == ROUND_REMOVALS ? changes->len - 1 - n : n;
        const struct change *change = &changes->items[i];

        if (results[i].outcome == APPLY_LEFT || round_of(change) != round)
            continue;
        apply_at(apply, change, change->path, &results[i]);
        if (change->kind == CHANGE_RENAMED && change->new.type == SIDE_FILE)
            remove_origin(apply, change, &results[i]);
    }
}

int apply_changes(const struct apply *apply, const struct changes *changes, apply_wanted *wanted, void *owner,
                  struct apply_result *results, struct error *err)
{
    for (size_t i = 0; i < changes->len; i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].outcome = wanted(owner, &changes->items[i]) ? APPLY_DONE : APPLY_LEFT;
    }
    for (enum round round = 0; round < ROUNDS; round++)
        apply_round(apply, changes, round, results);
    if (!apply->only_look && !apply->live && syncfs(apply->tree) < 0)
        return error_sys(err, "write the changes to disk");
    return 0;
}
