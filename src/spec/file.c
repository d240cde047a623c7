#include "spec/file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int open_at(int directory, const char *name, int flags)
{
    return openat(directory, name, flags | O_RDONLY | O_NOCTTY | O_CLOEXEC);
}

/* Reads to the end; more than the bound is an error of its own. */
static int read_whole(int fd, const char *shown, struct text *out, struct error *err)
{
    int more = file_add_rest(fd, NODE_BYTES_MAX, out);

    if (more < 0)
        return error_sys(err, "%s: read it", shown);
    return more ? error_set(err, ERROR_INVALID, "%s: is larger than 1 MB", shown) : 0;
}

/* Opens without following a link and without waiting for the other end of a pipe. */
static int open_regular(int directory, const char *name, const char *shown, struct stat *stat,
                        struct error *err)
{
    autoclose int fd = open_at(directory, name, O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 && errno == ELOOP)
        return error_set(err, ERROR_REFUSED, "%s: is a symbolic link; it must be the file itself", shown);
    if (fd < 0)
        return error_sys(err, "%s: open it", shown);
    if (fstat(fd, stat) < 0)
        return error_sys(err, "%s: look at it", shown);
    if (!S_ISREG(stat->st_mode))
        return error_set(err, ERROR_REFUSED, "%s: is %s; it must be a regular file", shown,
                         S_ISDIR(stat->st_mode) ? "a directory" : "something else");
    return steal_fd(&fd);
}

/* A file that is not there is no error: 1, and `err` as if nothing had happened. */
static int missing_or_failed(struct error *err)
{
    if (err->kind != ERROR_SYSTEM || err->sys_errno != ENOENT)
        return -1;
    *err = (struct error){ 0 };
    return 1;
}

/* In a sticky directory only the owner of a file can replace it, so /tmp will do. */
static int check_writers(const struct stat *stat, const char *shown, const struct file_rules *rules,
                         struct error *err)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): callers fill it by fstat() */
    bool sticky = S_ISDIR(stat->st_mode) && (stat->st_mode & S_ISVTX);

    if (stat->st_uid != rules->owner && stat->st_uid != rules->other_owner)
        return error_set(err, ERROR_REFUSED, "%s: belongs to user %u; it must belong to %s", shown,
                         (unsigned)stat->st_uid, rules->who);
    if ((stat->st_mode & (S_IWGRP | S_IWOTH)) && !sticky) {
        error_set(err, ERROR_REFUSED, "%s: others can write it (mode %04o)", shown,
                  (unsigned)stat->st_mode & 07777);
        return error_hint(err, "chmod go-w it, after a look at what it says");
    }
    return 0;
}

/* Opens the directory that holds `path` and leaves the last part of the path in *name. */
static int open_parent(const char *path, bool links, const char **name, struct text *shown, struct error *err)
{
    const char *slash = strrchr(path, '/');
    autofree char *parent = slash ? text_format("%.*s", (int)(slash - path), path) : text_copy(".");
    const char *opened = *parent ? parent : "/";
    int fd = open_at(AT_FDCWD, opened, O_DIRECTORY | (links ? 0 : O_NOFOLLOW));

    text_add_inert(shown, opened);
    *name = slash ? slash + 1 : path;
    return fd < 0 ? error_sys(err, "%s: open it", text_string(shown)) : fd;
}

int file_read_trusted(const char *path, const struct file_rules *rules, struct text *out, struct error *err)
{
    autotext struct text shown = TEXT_NONE, parent_shown = TEXT_NONE;
    const char *name;
    struct stat stat;
    autoclose int parent = open_parent(path, rules->links, &name, &parent_shown, err);

    text_add_inert(&shown, path);
    if (parent < 0)
        return missing_or_failed(err);

    autoclose int fd = open_regular(parent, name, text_string(&shown), &stat, err);

    if (fd < 0)
        return missing_or_failed(err);
    if (check_writers(&stat, text_string(&shown), rules, err) < 0)
        return -1;
    if (fstat(parent, &stat) < 0)
        return error_sys(err, "%s: look at it", text_string(&parent_shown));
    if (check_writers(&stat, text_string(&parent_shown), rules, err) < 0)
        return error_while(err, "%s: its directory", text_string(&shown));
    return read_whole(fd, text_string(&shown), out, err);
}

int file_read_untrusted(int directory, const char *name, const char *shown, struct text *out, struct error *err)
{
    struct stat stat;
    autoclose int fd = open_regular(directory, name, shown, &stat, err);

    if (fd < 0)
        return missing_or_failed(err);
    return read_whole(fd, shown, out, err);
}

int file_read_named(const char *path, struct text *out, struct error *err)
{
    autotext struct text shown = TEXT_NONE;
    autoclose int fd = open_at(AT_FDCWD, path, 0);

    text_add_inert(&shown, path);
    if (fd < 0)
        return error_sys(err, "%s: open it", text_string(&shown));
    return read_whole(fd, text_string(&shown), out, err);
}
