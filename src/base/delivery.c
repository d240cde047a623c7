#include "base/delivery.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_standard_output(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int cannot(const char *path, struct error *err)
{
    return error_sys(err, "write to %s", path);
}

/* Held by itself, so that nobody decides later what its name leads to. */
static int hold_odd(const char *path, struct delivery *delivery, struct error *err)
{
    struct stat info;

    delivery->there = openat(delivery->dir, delivery->name, O_PATH | O_CLOEXEC);
    if (delivery->there < 0 || fstat(delivery->there, &info) < 0)
        return cannot(path, err);
    if (S_ISDIR(info.st_mode))
        errno = EISDIR;
    return S_ISDIR(info.st_mode) || access(path, W_OK) < 0 ? cannot(path, err) : 0;
}

static int find_place(const char *path, struct delivery *delivery, struct error *err)
{
    const char *slash = strrchr(path, '/');
    autofree char *parent = slash ? text_format("%.*s", (int)(slash - path + 1), path) : text_copy(".");
    struct stat info;

    delivery->path = path;
    delivery->name = slash ? slash + 1 : path;
    if (is_standard_output(path))
        return 0;
    delivery->dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (delivery->dir < 0)
        return cannot(path, err);
    errno = EISDIR;
    if (!delivery->name[0])
        return cannot(path, err);
    if (fstatat(delivery->dir, delivery->name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode))
        return hold_odd(path, delivery, err);
    return access(parent, W_OK | X_OK) < 0 ? cannot(path, err) : 0;
}

int delivery_open(const char *path, struct delivery *out, struct error *err)
{
    *out = DELIVERY_NONE;
    if (find_place(path, out, err) == 0)
        return 0;
    delivery_close(out);
    return -1;
}

static int make(const struct delivery *delivery, const char *name)
{
    return openat(delivery->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int put_odd(const struct delivery *delivery, const void *bytes, size_t len, struct error *err)
{
    autofree char *link = text_format("/proc/self/fd/%d", delivery->there);
    autoclose int fd = open(link, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);

    return fd < 0 || file_put(fd, bytes, len) < 0 ? cannot(delivery->path, err) : 0;
}

int delivery_put(const struct delivery *delivery, const void *bytes, size_t len, struct error *err)
{
    unsigned number;

    if (is_standard_output(delivery->path))
        return file_put(STDOUT_FILENO, bytes, len) < 0 ? error_sys(err, "write to standard output") : 0;
    if (delivery->there >= 0)
        return put_odd(delivery, bytes, len, err);
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return cannot(delivery->path, err);

    autofree char *temporary = text_format("%s.%08x", delivery->name, number);
    autoclose int fd = make(delivery, temporary);

    if (fd < 0)
        return cannot(delivery->path, err);
    if (file_put(fd, bytes, len) < 0 || renameat(delivery->dir, temporary, delivery->dir, delivery->name) < 0) {
        cannot(delivery->path, err);
        unlinkat(delivery->dir, temporary, 0);
        return -1;
    }
    return 0;
}

int delivery_put_new(const struct delivery *delivery, const void *bytes, size_t len, struct error *err)
{
    autoclose int fd = make(delivery, delivery->name);

    return fd < 0 || file_put(fd, bytes, len) < 0 ? cannot(delivery->path, err) : 0;
}

void delivery_close(struct delivery *delivery)
{
    own_close(&delivery->dir);
    own_close(&delivery->there);
    *delivery = DELIVERY_NONE;
}
