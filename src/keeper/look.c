#include "keeper/look.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/destination.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE = -1 };

/* What a call does with its path.  OPEN and OPEN2 say so in an argument. */
enum act {
    ACT_READ,
    ACT_RUN,
    ACT_ATTRIBUTES,
    ACT_CHANGE,
    ACT_WRITE,
    ACT_CREATE,
    ACT_REPLACE,
    ACT_REMOVE,
    ACT_OPEN,
    ACT_OPEN2
};

/* Where it must be possible to write: nowhere, on the mount at least, in the file, in its directory. */
enum where { NOWHERE, MOUNT, FILE_ITSELF, DIRECTORY };

static const struct {
    enum look_how how;
    enum where if_there, if_absent;
} needs[] = {
    [ACT_READ] = { LOOK_READ, NOWHERE, NOWHERE },         /* also looks for it */
    [ACT_RUN] = { LOOK_RUN, NOWHERE, NOWHERE },           /* its mode is not looked at */
    [ACT_ATTRIBUTES] = { LOOK_WRITE, MOUNT, NOWHERE },    /* its owner may, and Landlock does not ask */
    [ACT_CHANGE] = { LOOK_WRITE, FILE_ITSELF, NOWHERE },  /* follows a link */
    [ACT_WRITE] = { LOOK_WRITE, FILE_ITSELF, DIRECTORY }, /* likewise */
    [ACT_CREATE] = { LOOK_WRITE, NOWHERE, DIRECTORY },    /* what is there is an error of another kind */
    [ACT_REPLACE] = { LOOK_WRITE, DIRECTORY, DIRECTORY }, /* whatever is there */
    [ACT_REMOVE] = { LOOK_WRITE, DIRECTORY, NOWHERE },    /* a file's own mode does not matter */
};

/* Two rows for a call with two paths.  A call that this architecture lacks has no row. */
static const struct path_call {
    int number;
    signed char dir, path; /* which arguments; dir NONE: the working directory */
    signed char flags;     /* of ACT_OPEN */
    enum act act;
} path_calls[] = {
    { SYS_openat, 0, 1, 2, ACT_OPEN },
    { SYS_openat2, 0, 1, 2, ACT_OPEN2 },
    { SYS_newfstatat, 0, 1, NONE, ACT_READ },
    { SYS_statx, 0, 1, NONE, ACT_READ },
    { SYS_faccessat, 0, 1, NONE, ACT_READ },
    { SYS_faccessat2, 0, 1, NONE, ACT_READ },
    { SYS_readlinkat, 0, 1, NONE, ACT_READ },
    { SYS_chdir, NONE, 0, NONE, ACT_READ },
    { SYS_execve, NONE, 0, NONE, ACT_RUN },
    { SYS_execveat, 0, 1, NONE, ACT_RUN },
    { SYS_mkdirat, 0, 1, NONE, ACT_CREATE },
    { SYS_mknodat, 0, 1, NONE, ACT_CREATE },
    { SYS_symlinkat, 1, 2, NONE, ACT_CREATE },
    { SYS_linkat, 2, 3, NONE, ACT_CREATE },
    { SYS_renameat2, 0, 1, NONE, ACT_REMOVE },
    { SYS_renameat2, 2, 3, NONE, ACT_REPLACE },
    { SYS_unlinkat, 0, 1, NONE, ACT_REMOVE },
    { SYS_truncate, NONE, 0, NONE, ACT_CHANGE },
    { SYS_fchmodat, 0, 1, NONE, ACT_ATTRIBUTES },
    { SYS_fchownat, 0, 1, NONE, ACT_ATTRIBUTES },
    { SYS_utimensat, 0, 1, NONE, ACT_ATTRIBUTES },
#ifdef SYS_open
    { SYS_open, NONE, 0, 1, ACT_OPEN },
    { SYS_creat, NONE, 0, NONE, ACT_WRITE },
    { SYS_stat, NONE, 0, NONE, ACT_READ },
    { SYS_lstat, NONE, 0, NONE, ACT_READ },
    { SYS_access, NONE, 0, NONE, ACT_READ },
    { SYS_readlink, NONE, 0, NONE, ACT_READ },
    { SYS_mkdir, NONE, 0, NONE, ACT_CREATE },
    { SYS_mknod, NONE, 0, NONE, ACT_CREATE },
    { SYS_symlink, NONE, 1, NONE, ACT_CREATE },
    { SYS_link, NONE, 1, NONE, ACT_CREATE },
    { SYS_rename, NONE, 0, NONE, ACT_REMOVE },
    { SYS_rename, NONE, 1, NONE, ACT_REPLACE },
    { SYS_rmdir, NONE, 0, NONE, ACT_REMOVE },
    { SYS_unlink, NONE, 0, NONE, ACT_REMOVE },
    { SYS_chmod, NONE, 0, NONE, ACT_ATTRIBUTES },
    { SYS_chown, NONE, 0, NONE, ACT_ATTRIBUTES },
    { SYS_lchown, NONE, 0, NONE, ACT_ATTRIBUTES },
#endif
#ifdef SYS_renameat
    { SYS_renameat, 0, 1, NONE, ACT_REMOVE },
    { SYS_renameat, 2, 3, NONE, ACT_REPLACE },
#endif
};

/* Calls with the address of another end: which arguments are the address and its length. */
static const struct address_call {
    int number;
    signed char address, len;
} address_calls[] = {
    { SYS_connect, 1, 2 },
    { SYS_sendto, 4, 5 },
};

/* One process, reached through its directory in /proc. */
struct subject {
    uint32_t pid;
    int memory, root;
    const struct look_view *view;
};

__attribute__((format(printf, 2, 3))) static int open_of(uint32_t pid, const char *format, ...)
{
    char path[64], name[32];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    return open(path, (strcmp(name, "mem") == 0 ? O_RDONLY : O_PATH | O_DIRECTORY) | O_CLOEXEC);
}

/* Stops at the end of the mapping, as the kernel's own look does.  The bytes may change before the
 * kernel reads them: they are good for a note, never for a decision. */
static int read_string(const struct subject *subject, uint64_t address, char *to)
{
    ssize_t got = pread(subject->memory, to, LOOK_PATH_MAX, (off_t)address);

    if (got <= 0 || !memchr(to, '\0', (size_t)got))
        return -1;
    return 0;
}

void look_normalise(char *path)
{
    char *to = path;

    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");

        if (len == 2 && at[0] == '.' && at[1] == '.') {
            while (to > path && *--to != '/')
                ;
        } else if (len > 0 && !(len == 1 && at[0] == '.')) {
            *to++ = '/';
            memmove(to, at, len);
            to += len;
        }
        at += len;
        at += *at == '/';
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

char *look_above(const char *path)
{
    size_t len = (size_t)(strrchr(path, '/') - path);

    return text_format("%.*s", len > 0 ? (int)len : 1, path);
}

/* The name inside of the directory that a relative path starts from. */
static int base_of(const struct subject *subject, const struct seccomp_data *data, signed char dir, char *to)
{
    char link[64];

    if (dir == NONE || (int)data->args[(int)dir] == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%u/cwd", subject->pid);
    else
        snprintf(link, sizeof link, "/proc/%u/fd/%d", subject->pid, (int)data->args[(int)dir]);
    ssize_t len = readlink(link, to, LOOK_PATH_MAX - 1);

    if (len <= 0 || to[0] != '/')
        return -1;
    to[len] = '\0';
    return 0;
}

/* What is another thing for each process, and for us. */
static const char *const own_places[] = { "/proc/self", "/proc/thread-self", "/dev/fd" };

static bool is_noise(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(own_places); i++)
        if (path_within(path, own_places[i]))
            return true;
    return (text_starts(path, "/proc/") && strchr("0123456789", path[6])) || strstr(path, "/__pycache__");
}

static bool host_has(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

/* A device on a read-only mount takes writes all the same. */
static bool refuses_writes(int fd)
{
    struct stat info;
    struct statfs mount;

    if (fstat(fd, &info) < 0 || !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode)))
        return false;
    return fstatfs(fd, &mount) == 0 && mount.f_flags & ST_RDONLY;
}

static int open_inside(const struct subject *subject, const char *path, int flags)
{
    return sys_openat2(subject->root, path, O_PATH | flags | O_CLOEXEC,
                       RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

static int open_above(const struct subject *subject, const char *path)
{
    autofree char *above = look_above(path);

    return open_inside(subject, above, O_DIRECTORY);
}

/* The name inside of what `fd` is, every link resolved; `to` holds LOOK_PATH_MAX. */
static int name_of(int fd, char *to)
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, to, LOOK_PATH_MAX - 1);

    if (len <= 0 || to[0] != '/')
        return -1;
    to[len] = '\0';
    return 0;
}

/* Whether `name` lies in the place, or in what the place leads to. */
static bool lies_in(const struct subject *subject, const char *name, const char *place)
{
    char real[LOOK_PATH_MAX];

    if (path_within(name, place))
        return true;
    autoclose int fd = open_inside(subject, place, 0);

    return fd >= 0 && name_of(fd, real) == 0 && path_within(name, real);
}

/* Landlock cannot be asked from outside: its rules are known. */
static bool landlock_refuses(const struct subject *subject, int fd)
{
    const struct strings *writable = subject->view->writable;
    char name[LOOK_PATH_MAX];

    if (!writable || name_of(fd, name) < 0)
        return false;
    for (size_t i = 0; i < writable->len; i++)
        if (lies_in(subject, name, writable->items[i]))
            return false;
    return true;
}

/* The number in a column of the line that begins with `key`; columns count from 1. */
static int read_number(const char *status, const char *key, int column, int base, uint64_t *out)
{
    const char *line = strstr(status, key);
    const char *at = line ? line + strlen(key) : "";
    char *end;

    for (int i = 0; i < column; i++, at = end) {
        *out = strtoull(at, &end, base);
        if (end == at)
            return -1;
    }
    return 0;
}

/* Who the process is for files, as we see it; -1 if it is gone, or has a right to pass over modes. */
static int read_ids(const struct subject *subject, uint64_t *out_uid, uint64_t *out_gid)
{
    char path[64], status[4096];
    uint64_t capabilities;

    snprintf(path, sizeof path, "/proc/%u/status", subject->pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, status, sizeof status - 1);

    if (len < 0)
        return -1;
    status[len] = '\0';
    if (read_number(status, "\nUid:", 4, 10, out_uid) < 0 ||
        read_number(status, "\nGid:", 4, 10, out_gid) < 0 ||
        read_number(status, "\nCapEff:", 1, 16, &capabilities) < 0)
        return -1;
    return capabilities >> CAP_DAC_OVERRIDE & 1 ? -1 : 0;
}

/* If it is the same user as we are the kernel can be asked, who knows of groups and access lists too. */
static bool mode_refuses(const struct subject *subject, int fd)
{
    struct stat info;
    uint64_t uid, gid;

    if (fstat(fd, &info) < 0 || !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) ||
        read_ids(subject, &uid, &gid) < 0)
        return false;
    if (uid == geteuid())
        return syscall(SYS_faccessat2, fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) < 0 && errno == EACCES;
    return !(info.st_mode & (info.st_uid == uid ? S_IWUSR : info.st_gid == gid ? S_IWGRP : S_IWOTH));
}

static enum look_found judge_writing(const struct subject *subject, int fd, enum where where)
{
    if (where == NOWHERE)
        return LOOK_FINE;
    if (refuses_writes(fd))
        return LOOK_READ_ONLY;
    if (where == MOUNT)
        return LOOK_FINE;
    if (landlock_refuses(subject, fd))
        return LOOK_READ_ONLY;
    return mode_refuses(subject, fd) ? LOOK_DENIED : LOOK_FINE;
}

static bool is_link(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISLNK(info.st_mode);
}

/* Of a link that is followed, `path` becomes where it leads: that is what cannot be written. */
static enum look_found judge_there(const struct subject *subject, char *path, int fd, enum where where)
{
    autoclose int other = where == DIRECTORY                    ? open_above(subject, path)
                          : where == FILE_ITSELF && is_link(fd) ? open_inside(subject, path, 0)
                                                                : -1;

    if (where == FILE_ITSELF && is_link(fd) && (other < 0 || name_of(other, path) < 0))
        return LOOK_FINE;
    return judge_writing(subject, other >= 0 ? other : fd, where);
}

/* What is to be new is not on the host either, but the directory for it may be. */
static bool host_has_above(const char *path)
{
    autofree char *above = look_above(path);

    return host_has(above);
}

static enum look_found find(const struct subject *subject, char *path, enum act act)
{
    autoclose int fd = open_inside(subject, path, O_NOFOLLOW);
    int number = errno;
    if (fd >= 0)
        return judge_there(subject, path, fd, needs[act].if_there);
    if (number == EACCES || number == EPERM)
        return host_has(path) ? LOOK_DENIED : LOOK_FINE;
    if (number != ENOENT && number != ENOTDIR)
        return LOOK_FINE;
    if (needs[act].if_absent == NOWHERE)
        return host_has(path) ? LOOK_ABSENT : LOOK_FINE;

    autoclose int above = open_above(subject, path);

    if (above >= 0)
        return judge_writing(subject, above, DIRECTORY);
    return host_has_above(path) ? LOOK_ABSENT : LOOK_FINE;
}

/* Making a file that may be there already asks for nothing if it is. */
static enum act act_of_flags(uint64_t flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

    if (flags & O_CREAT)
        return writes && !(flags & O_EXCL) ? ACT_WRITE : ACT_CREATE;
    return writes ? ACT_CHANGE : ACT_READ;
}

static enum act act_of(const struct subject *subject, const struct path_call *row,
                       const struct seccomp_data *data)
{
    uint64_t flags = 0;

    if (row->act == ACT_OPEN)
        return act_of_flags(data->args[(int)row->flags]);
    if (row->act != ACT_OPEN2)
        return row->act;
    if (pread(subject->memory, &flags, sizeof flags, (off_t)data->args[(int)row->flags]) != sizeof flags)
        return ACT_READ;
    return act_of_flags(flags);
}

/* What `given` means, as an absolute path, in `path`, which holds twice LOOK_PATH_MAX; -1: not worth a look. */
static int complete(const struct subject *subject, const struct seccomp_data *data, signed char dir,
                    const char *given, char *path)
{
    path[0] = '\0';
    if (!given[0] || (given[0] != '/' && base_of(subject, data, dir, path) < 0))
        return -1;
    size_t base = strlen(path);

    snprintf(path + base, (size_t)2 * LOOK_PATH_MAX - base, "/%s", given);
    look_normalise(path);
    return strlen(path) >= LOOK_PATH_MAX || is_noise(path) ? -1 : 0;
}

static void look_at_path(const struct subject *subject, const struct path_call *row,
                         const struct seccomp_data *data)
{
    char given[LOOK_PATH_MAX + 1], path[2 * LOOK_PATH_MAX];

    if (read_string(subject, data->args[(int)row->path], given) < 0 ||
        complete(subject, data, row->dir, given, path) < 0)
        return;
    enum act act = act_of(subject, row, data);
    enum look_found found = find(subject, path, act);

    if (found != LOOK_FINE)
        subject->view->note(subject->view->owner, needs[act].how, found, path);
}

/* What goes to a name is the gateway's to judge and to tell.  An address that stands for none is refused
 * without it, or nearly so. */
static void look_at_address(const struct subject *subject, const struct address_call *row,
                            const struct seccomp_data *data)
{
    const struct look_view *view = subject->view;
    char bytes[sizeof(struct sockaddr_un)], name[DESTINATION_MAX], path[2 * LOOK_PATH_MAX];
    uint32_t len = (uint32_t)data->args[(int)row->len];

    if (len > sizeof bytes || /* no family that is looked at is longer */
        pread(subject->memory, bytes, len, (off_t)data->args[(int)row->address]) != (ssize_t)len)
        return;
    switch (destination_read(bytes, len, name)) {
    case DESTINATION_INSIDE:
        break;
    case DESTINATION_NETWORK:
        view->note(view->owner, LOOK_CONNECT, LOOK_NO_NETWORK, name);
        break;
    case DESTINATION_SOCKET:
        if (complete(subject, data, NONE, name, path) == 0 && find(subject, path, ACT_READ) == LOOK_ABSENT)
            view->note(view->owner, LOOK_CONNECT, LOOK_ABSENT, path);
        break;
    }
}

static const struct address_call *address_call_of(const struct seccomp_data *data)
{
    for (size_t i = 0; i < ARRAY_LEN(address_calls); i++)
        if (address_calls[i].number == data->nr && data->args[(int)address_calls[i].address])
            return &address_calls[i];
    return NULL;
}

static bool has_path(const struct seccomp_data *data)
{
    for (size_t i = 0; i < ARRAY_LEN(path_calls); i++)
        if (path_calls[i].number == data->nr)
            return true;
    return false;
}

void look_at_call(const struct seccomp_notif *call, const struct look_view *view)
{
    const struct address_call *address = address_call_of(&call->data);

    if (!address && !has_path(&call->data))
        return;
    autoclose int memory = open_of(call->pid, "mem");
    autoclose int root = open_of(call->pid, "root");
    struct subject subject = { call->pid, memory, root, view };

    if (memory < 0 || root < 0)
        return;
    if (address)
        look_at_address(&subject, address, &call->data);
    for (size_t i = 0; i < ARRAY_LEN(path_calls); i++)
        if (path_calls[i].number == call->data.nr)
            look_at_path(&subject, &path_calls[i], &call->data);
}
