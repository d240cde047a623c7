#include "store/store.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "store/authorities.h"
#include "sys/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Each level of a tree that is being removed holds one descriptor. */
enum { DEPTH_MAX = 64 };

/* Whatever the umask. */
static int make_private(int dir, const char *name)
{
    return mkdirat(dir, name, 0700) < 0 ? -1 : fchmodat(dir, name, 0700, 0);
}

/* Opens `name` below `dir` and checks that it is ours alone: whoever else could write there could
 * swap what we mount. */
static int open_ours(int dir, const char *name, const char *shown, struct error *err)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return error_sys(err, "open %s", shown);
    if (fstat(fd, &status) < 0)
        return error_sys(err, "look at %s", shown);
    if (status.st_uid != geteuid() || (status.st_mode & 077))
        return error_set(err, ERROR_REFUSED, "%s must belong to you and be closed to others (chmod 700)",
                         shown);
    return steal_fd(&fd);
}

/* The same, making it if needed. */
int store_open_private(int dir, const char *name, const char *shown, struct error *err)
{
    if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && make_private(dir, name) < 0 && errno != EEXIST)
        return error_sys(err, "make %s", shown);
    return open_ours(dir, name, shown, err);
}

/* mkdir -p: the directories above the state directory may be anybody's, as $HOME's parents are. */
static int open_state(const char *state, struct error *err)
{
    autofree char *path = text_copy(state);

    if (*state != '/')
        return error_set(err, ERROR_INVALID, "the state directory %s is not absolute", state);
    for (char *slash = access(state, F_OK) == 0 ? NULL : strchr(path + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return error_sys(err, "make %s", path);
        *slash = '/';
    }
    return store_open_private(AT_FDCWD, state, state, err);
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";

/* Twenty characters of 32: 100 random bits, no lock and no counter needed. */
int store_new_id(char id[ID_LENGTH + 1], struct error *err)
{
    unsigned char bytes[ID_LENGTH];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_sys(err, "get random bytes");
    for (size_t i = 0; i < ID_LENGTH; i++)
        id[i] = letters[bytes[i] & 31];
    id[ID_LENGTH] = '\0';
    return 0;
}

/* A directory with the layers that the next sandbox is likely to have: to make it takes longer than to rename
 * it, and whoever ends a sandbox has the time. */
static const char spare[] = "../spare";

/* Not among the sandboxes, where it would be swept.  It is locked while somebody makes it. */
static const char making[] = "../spare.new";

static void clear_stale(int parent)
{
    autoclose int fd = openat(parent, making, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char id[ID_LENGTH + 1];
    struct error ignored;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || store_new_id(id, &ignored) < 0)
        return;
    /* First the name, so that nobody takes it for whole while it is removed. */
    if (renameat(parent, making, parent, id) == 0)
        (void)store_remove_tree(parent, id, &ignored);
}

void store_make_spare(int parent, spare_furnish *furnish, const void *owner)
{
    if (faccessat(parent, spare, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    if (mkdirat(parent, making, 0700) < 0) {
        clear_stale(parent);
        return;
    }
    autoclose int fd = openat(parent, making, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || (furnish && !furnish(owner, fd)))
        return;               /* the next one clears it away */
    (void)flock(fd, LOCK_UN); /* whoever takes it locks it */
    if (renameat2(parent, making, parent, spare, RENAME_NOREPLACE) < 0)
        clear_stale(parent);
}

static int take_directory(int parent, const char *id)
{
    return renameat(parent, spare, parent, id) == 0 ? 0 : make_private(parent, id);
}

int store_create(const char *state, struct sandbox_dir *out, struct error *err)
{
    autoclose int base = open_state(state, err), parent = -1, fd = -1, images = -1, empty = -1;
    struct sandbox_dir dir;

    if (base < 0)
        return error_while(err, "prepare the state directory");
    parent = store_open_private(base, "sandboxes", "sandboxes in the state directory", err);
    images = parent < 0 ? -1 : store_open_private(base, "images", "images in the state directory", err);
    empty = images < 0 ? -1 : store_open_private(images, "empty", "images/empty in the state directory", err);
    if (empty < 0 || store_new_id(dir.id, err) < 0)
        return -1;
    /* While we hold this nobody sweeps: the directory exists for a moment before it is locked. */
    if (flock(parent, LOCK_SH) < 0)
        return error_sys(err, "lock the directory of sandboxes");
    if (take_directory(parent, dir.id) < 0)
        return error_sys(err, "make a sandbox directory in %s", state);
    fd = openat(parent, dir.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
        struct error ignored;

        error_sys(err, "lock the sandbox directory");
        (void)unlinkat(parent, dir.id, 0); /* if the spare was none */
        (void)store_remove_tree(parent, dir.id, &ignored);
        return -1;
    }
    (void)flock(parent, LOCK_UN);
    dir.parent = steal_fd(&parent);
    dir.fd = steal_fd(&fd);
    *out = dir;
    return 0;
}

/* A payload may have taken its own rights away, and the kernel's work/incompat has none.  The mode
 * is changed by a handle on the directory itself: the name may be a link by the time we use it. */
static int make_accessible(int dir, const char *name)
{
    autoclose int fd = sys_open_on_mount(dir, name, O_PATH | O_DIRECTORY);
    autofree char *path = text_format("/proc/self/fd/%d", fd);

    return fd < 0 ? -1 : chmod(path, 0700);
}

/* Never what is mounted on it. */
static int open_to_empty(int dir, const char *name)
{
    int fd = sys_open_on_mount(dir, name, O_RDONLY | O_DIRECTORY);

    if (fd < 0 && errno == EACCES && make_accessible(dir, name) == 0)
        fd = sys_open_on_mount(dir, name, O_RDONLY | O_DIRECTORY);
    return fd;
}

/* Removing a tree that a payload has made.  It may be deeper than descriptors or the stack allow, so
 * what lies DEPTH_MAX levels down is moved up, next to the top, and removed from there. */
struct removal {
    int top;
    unsigned moved;
};

static int remove_below(struct removal *removal, int dir, const char *name, unsigned depth);

static int move_up(struct removal *removal, int dir, const char *name)
{
    char place[24];

    snprintf(place, sizeof place, "deep-%u", ++removal->moved);
    (void)make_accessible(dir, name); /* a directory must be writable to get another parent */
    return renameat(dir, name, removal->top, place);
}

/* As what it seems to be: most directories of a sandbox that is over are empty. */
static int remove_entry(struct removal *removal, int dir, const struct dirent *entry, unsigned depth)
{
    const char *name = entry->d_name;
    int how = entry->d_type == DT_DIR ? AT_REMOVEDIR : 0;
    struct stat status;

    if (unlinkat(dir, name, how) == 0)
        return 0;
    if (errno == EACCES && fchmod(dir, 0700) == 0 && unlinkat(dir, name, how) == 0)
        return 0;
    if (how == 0 && (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode)))
        return -1;
    return remove_below(removal, dir, name, depth + 1);
}

static int empty_directory(struct removal *removal, int fd, unsigned depth)
{
    autoclosedir DIR *entries = fdopendir(fd);
    int number = 0;

    if (!entries) {
        close(fd);
        return -1;
    }
    for (const struct dirent *entry; (entry = sys_next_entry(entries));)
        if (remove_entry(removal, fd, entry, depth) < 0 && !number)
            number = errno;
    errno = number;
    return number ? -1 : 0;
}

static int remove_below(struct removal *removal, int dir, const char *name, unsigned depth)
{
    if (depth >= DEPTH_MAX)
        return move_up(removal, dir, name);

    int fd = open_to_empty(dir, name);
    if (fd < 0 || empty_directory(removal, fd, depth) < 0)
        return -1;
    return unlinkat(dir, name, AT_REMOVEDIR);
}

int store_remove_tree(int dir, const char *name, struct error *err)
{
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 0;

    autoclose int top = open_to_empty(dir, name);
    struct removal removal = { .top = top };

    /* Each round takes DEPTH_MAX levels off what the one before moved up. */
    for (unsigned before = 0; top >= 0; before = removal.moved) {
        int again = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (again < 0 || empty_directory(&removal, again, 0) < 0)
            break;
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
            return 0;
        if (removal.moved == before)
            break;
    }
    return error_sys(err, "remove %s", name);
}

int store_remove(struct sandbox_dir *dir, struct error *err)
{
    authorities_give(dir->fd);
    int result = store_remove_tree(dir->parent, dir->id, err);

    close(dir->fd);
    close(dir->parent);
    *dir = SANDBOX_DIR_NONE;
    return result;
}

/* A sandbox with a record is its owner's to remove.  True if it ended with nobody to tidy it up. */
static bool sweep_one(int parent, const char *name)
{
    autoclose int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct error err;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    if (faccessat(fd, STORE_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return faccessat(fd, "w0", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (errno == ENOENT)
        (void)store_remove_tree(parent, name, &err);
    return false;
}

/* A stream of its own on the directory `fd`. */
static DIR *list(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);

    if (!entries && again >= 0)
        close(again);
    return entries;
}

void store_sweep(const struct sandbox_dir *own, struct strings *unfinished)
{
    autoclosedir DIR *entries = list(own->parent);

    if (!entries || flock(dirfd(entries), LOCK_EX | LOCK_NB) < 0)
        return; /* somebody starts or sweeps: the next one will do */
    for (struct dirent *entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, own->id) != 0 &&
            sweep_one(own->parent, entry->d_name))
            strings_add(unfinished, entry->d_name);
}

static const char swept[] = "../swept"; /* its time says when to sweep again */

bool store_may_sweep(int parent)
{
    enum { LONGEST_S = 3600 }; /* a clock may have been set back */
    struct timespec now;
    struct stat status;

    clock_gettime(CLOCK_REALTIME, &now);
    return fstatat(parent, swept, &status, AT_SYMLINK_NOFOLLOW) < 0 || status.st_mtim.tv_sec < now.tv_sec ||
           status.st_mtim.tv_sec > now.tv_sec + LONGEST_S;
}

void store_swept(int parent, uint64_t took_us)
{
    enum { SHORT_US = 250000, REST = 20 };
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

    if (took_us < SHORT_US)
        return;
    clock_gettime(CLOCK_REALTIME, &times[1]);
    times[1].tv_sec += (time_t)(took_us * REST / 1000000);

    autoclose int fd = openat(parent, swept, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)futimens(fd, times);
}

int store_open(const char *state, struct error *err)
{
    autoclose int base = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (base < 0 && errno != ENOENT)
        return error_sys(err, "open the state directory %s", state);
    if (base < 0 || faccessat(base, "sandboxes", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return error_set(err, ERROR_MISSING, "there are no sandboxes");
    return open_ours(base, "sandboxes", "sandboxes in the state directory", err);
}

bool store_is_id(const char *name)
{
    return strlen(name) == ID_LENGTH && !name[strspn(name, letters)];
}

int store_list(int parent, struct strings *out, struct error *err)
{
    autoclosedir DIR *entries = list(parent);

    if (!entries)
        return error_sys(err, "list the sandboxes");
    for (struct dirent *entry; (entry = readdir(entries));)
        if (store_is_id(entry->d_name))
            strings_add(out, entry->d_name);
    return 0;
}

int store_enter(int parent, const char *id, struct error *err)
{
    int fd = openat(parent, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open the sandbox %s", id) : fd;
}

bool store_is_held(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK;
    (void)flock(fd, LOCK_UN);
    return false;
}

/* Polls: a lock with a time limit would need a signal. */
int store_hold(int fd, unsigned patience_ms)
{
    enum { PAUSE_MS = 5 };

    for (unsigned waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += PAUSE_MS) {
        if (errno != EWOULDBLOCK || waited >= patience_ms)
            return -1;
        (void)poll(NULL, 0, PAUSE_MS);
    }
    return 0;
}

int store_write_file(int dir, const char *name, const char *bytes, size_t len, struct error *err)
{
    autofree char *fresh = text_format("%s.new", name);
    autoclose int fd = -1;

    if (unlinkat(dir, fresh, 0) < 0 && errno != ENOENT)
        return error_sys(err, "remove an old %s", fresh);
    fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || file_put(fd, bytes, len) < 0 || renameat(dir, fresh, dir, name) < 0) {
        error_sys(err, "write %s of the sandbox", name);
        (void)unlinkat(dir, fresh, 0);
        return -1;
    }
    return 0;
}

int store_write_record(int dir, const char *bytes, size_t len, struct error *err)
{
    return store_write_file(dir, STORE_RECORD, bytes, len, err);
}

/* A file without blocks yet may be found empty after a crash, although its name was kept.  Nobody waits for the
 * disk: what is under way belongs to the next commit of the file system, with the name. */
void store_flush_record(int dir)
{
    static const char *const files[] = { STORE_RECORD, STORE_SPEC };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        autoclose int fd = openat(dir, files[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        if (fd >= 0)
            (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

void store_drop_record(int dir)
{
    (void)unlinkat(dir, STORE_RECORD, 0);
}

/* What a sandbox is made of when nothing of it runs: files by their names, layers by letter and number, as
 * open_layer() in box/execute.c makes them. */
static bool is_lasting(const char *name)
{
    static const char *const files[] = { STORE_RECORD, STORE_PRINTS,   STORE_SPEC,    STORE_TRACE, STORE_OUTPUT,
                                         STORE_STACK,  STORE_FREEZING, STORE_TURNING, STORE_TRUST };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(name, files[i]) == 0)
            return true;
    return (name[0] == 'u' || name[0] == 'b') && name[1] && !name[1 + strspn(name + 1, "0123456789")];
}

void store_tidy(int dir)
{
    autoclosedir DIR *entries = list(dir);
    struct error ignored;

    for (const struct dirent *entry; entries && (entry = sys_next_entry(entries));)
        if (!is_lasting(entry->d_name) && store_remove_tree(dir, entry->d_name, &ignored) < 0)
            (void)unlinkat(dir, entry->d_name, 0);
    authorities_tidy(dir);
}
