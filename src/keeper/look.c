#include "keeper/look.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE = -1 };

/* What a call does with its path.  OPEN and OPEN2 say so in an argument. */
enum act { ACT_READ, ACT_RUN, ACT_CHANGE, ACT_CREATE, ACT_OPEN, ACT_OPEN2 };

/* Two rows for a call with two paths.  A call that this architecture lacks has no row. */
static const struct path_call {
    int number;
    signed char dir, path; /* which arguments; dir NONE: the working directory */
    signed char flags;     /* of ACT_OPEN */
    enum act act;
} path_calls[] = {
    { SYS_openat, 0, 1, 2, ACT_OPEN },          { SYS_openat2, 0, 1, 2, ACT_OPEN2 },
    { SYS_newfstatat, 0, 1, NONE, ACT_READ },   { SYS_statx, 0, 1, NONE, ACT_READ },
    { SYS_faccessat, 0, 1, NONE, ACT_READ },    { SYS_faccessat2, 0, 1, NONE, ACT_READ },
    { SYS_readlinkat, 0, 1, NONE, ACT_READ },   { SYS_chdir, NONE, 0, NONE, ACT_READ },
    { SYS_execve, NONE, 0, NONE, ACT_RUN },     { SYS_execveat, 0, 1, NONE, ACT_RUN },
    { SYS_mkdirat, 0, 1, NONE, ACT_CREATE },    { SYS_mknodat, 0, 1, NONE, ACT_CREATE },
    { SYS_symlinkat, 1, 2, NONE, ACT_CREATE },  { SYS_linkat, 2, 3, NONE, ACT_CREATE },
    { SYS_renameat2, 0, 1, NONE, ACT_CHANGE },  { SYS_renameat2, 2, 3, NONE, ACT_CREATE },
    { SYS_unlinkat, 0, 1, NONE, ACT_CHANGE },   { SYS_truncate, NONE, 0, NONE, ACT_CHANGE },
    { SYS_fchmodat, 0, 1, NONE, ACT_CHANGE },   { SYS_fchownat, 0, 1, NONE, ACT_CHANGE },
    { SYS_utimensat, 0, 1, NONE, ACT_CHANGE },
#ifdef SYS_open
    { SYS_open, NONE, 0, 1, ACT_OPEN },         { SYS_creat, NONE, 0, NONE, ACT_CREATE },
    { SYS_stat, NONE, 0, NONE, ACT_READ },      { SYS_lstat, NONE, 0, NONE, ACT_READ },
    { SYS_access, NONE, 0, NONE, ACT_READ },    { SYS_readlink, NONE, 0, NONE, ACT_READ },
    { SYS_mkdir, NONE, 0, NONE, ACT_CREATE },   { SYS_mknod, NONE, 0, NONE, ACT_CREATE },
    { SYS_symlink, NONE, 1, NONE, ACT_CREATE }, { SYS_link, NONE, 1, NONE, ACT_CREATE },
    { SYS_rename, NONE, 0, NONE, ACT_CHANGE },  { SYS_rename, NONE, 1, NONE, ACT_CREATE },
    { SYS_rmdir, NONE, 0, NONE, ACT_CHANGE },   { SYS_unlink, NONE, 0, NONE, ACT_CHANGE },
    { SYS_chmod, NONE, 0, NONE, ACT_CHANGE },   { SYS_chown, NONE, 0, NONE, ACT_CHANGE },
    { SYS_lchown, NONE, 0, NONE, ACT_CHANGE },
#endif
#ifdef SYS_renameat
    { SYS_renameat, 0, 1, NONE, ACT_CHANGE },   { SYS_renameat, 2, 3, NONE, ACT_CREATE },
#endif
};

/* One process, reached through its directory in /proc. */
struct subject {
    uint32_t pid;
    int memory, root;
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

static bool is_noise(const char *path)
{
    if (text_starts(path, "/proc/") && (strchr("0123456789", path[6]) || path_within(path, "/proc/self") ||
                                        path_within(path, "/proc/thread-self")))
        return true;
    return strstr(path, "/__pycache__") != NULL;
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

static int open_inside(const struct subject *subject, const char *path)
{
    return sys_openat2(subject->root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC,
                       RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

static enum look_found find(const struct subject *subject, const char *path, bool writes)
{
    autoclose int fd = open_inside(subject, path);
    int number = errno;
    if (fd >= 0)
        return writes && refuses_writes(fd) ? LOOK_READ_ONLY : LOOK_FINE;
    if (number == EACCES || number == EPERM)
        return host_has(path) ? LOOK_DENIED : LOOK_FINE;
    if (number != ENOENT && number != ENOTDIR)
        return LOOK_FINE;
    if (!writes)
        return host_has(path) ? LOOK_ABSENT : LOOK_FINE;

    autofree char *parent = text_format("%.*s", (int)(strrchr(path, '/') - path), path);
    autoclose int above = open_inside(subject, parent[0] ? parent : "/");

    if (above >= 0)
        return refuses_writes(above) ? LOOK_READ_ONLY : LOOK_FINE;
    return host_has(path) ? LOOK_ABSENT : LOOK_FINE;
}

static bool opens_for_writing(const struct subject *subject, const struct path_call *row,
                              const struct seccomp_data *data)
{
    uint64_t flags = row->act == ACT_OPEN ? data->args[(int)row->flags] : 0;

    if (row->act == ACT_OPEN2 && pread(subject->memory, &flags, sizeof flags, (off_t)data->args[2]) < 0)
        return false;
    return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
}

static void look_at_path(const struct subject *subject, const struct path_call *row,
                         const struct seccomp_data *data, look_note *note, void *owner)
{
    char given[LOOK_PATH_MAX + 1], path[2 * LOOK_PATH_MAX] = "";
    bool writes = row->act == ACT_CHANGE || row->act == ACT_CREATE;
    enum look_how how = row->act == ACT_RUN ? LOOK_RUN : LOOK_READ;

    if (read_string(subject, data->args[(int)row->path], given) < 0 || !given[0])
        return;
    if (given[0] != '/' && base_of(subject, data, row->dir, path) < 0)
        return;
    size_t base = strlen(path);

    snprintf(path + base, sizeof path - base, "/%s", given);
    look_normalise(path);
    if (strlen(path) >= LOOK_PATH_MAX || is_noise(path))
        return;
    writes = writes || opens_for_writing(subject, row, data);

    enum look_found found = find(subject, path, writes);

    if (found != LOOK_FINE)
        note(owner, writes ? LOOK_WRITE : how, found, path);
}

void look_at_call(const struct seccomp_notif *call, look_note *note, void *owner)
{
    autoclose int memory = -1;
    autoclose int root = -1;

    for (size_t i = 0; i < ARRAY_LEN(path_calls); i++) {
        if (path_calls[i].number != call->data.nr)
            continue;
        if (memory < 0)
            memory = open_of(call->pid, "mem");
        if (root < 0)
            root = open_of(call->pid, "root");
        if (memory < 0 || root < 0)
            return;
        look_at_path(&(struct subject){ call->pid, memory, root }, &path_calls[i], &call->data, note, owner);
    }
}
