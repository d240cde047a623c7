#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *file_text(int dir, const char *name, size_t most)
{
    /* Not to wait at a FIFO that somebody put there. */
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > (off_t)most)
        return NULL;

    /* For what it is, not for what it may be: fresh memory costs more than to read. */
    size_t len = 0, room = (size_t)status.st_size < most ? (size_t)status.st_size + 1 : most;
    autofree char *content = memory_resize(NULL, room + 1);

    for (ssize_t got; len < most && (got = read(fd, content + len, room - len)) > 0;) {
        len += (size_t)got;
        if (len == room) { /* it has grown since, or does not tell its size */
            room = 2 * room > most ? most : 2 * room;
            content = memory_resize(content, room + 1);
        }
    }
    content[len] = '\0';
    return strlen(content) == len ? steal_ptr(&content) : NULL;
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, bytes, len);

        if (put < 0 && errno != EINTR)
            return -1;
        bytes += put > 0 ? put : 0;
        len -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int write_in_place(const char *path, const void *bytes, size_t len, struct error *err)
{
    autoclose int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);

    if (fd < 0 || write_all(fd, bytes, len) < 0)
        return error_sys(err, "write to %s", path);
    return 0;
}

int file_deliverable(const char *path, struct error *err)
{
    const char *name = strrchr(path, '/');
    autofree char *parent = name ? text_format("%.*s", (int)(name - path + 1), path) : text_copy(".");
    struct stat info;

    if (strcmp(path, "-") == 0)
        return 0;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode))
            errno = EISDIR;
        return S_ISDIR(info.st_mode) || access(path, W_OK) < 0 ? error_sys(err, "write to %s", path) : 0;
    }
    return access(parent, W_OK | X_OK) < 0 ? error_sys(err, "write to %s", path) : 0;
}

int file_deliver(const char *path, const void *bytes, size_t len, struct error *err)
{
    struct stat info;

    if (strcmp(path, "-") == 0)
        return write_all(STDOUT_FILENO, bytes, len) < 0 ? error_sys(err, "write to standard output") : 0;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_in_place(path, bytes, len, err);

    autofree char *temporary = text_format("%s.XXXXXX", path);
    autoclose int fd = mkostemp(temporary, O_CLOEXEC); /* with mode 0600 */

    if (fd < 0)
        return error_sys(err, "write to %s", path);
    if (write_all(fd, bytes, len) < 0 || rename(temporary, path) < 0) {
        error_sys(err, "write to %s", path);
        unlink(temporary);
        return -1;
    }
    return 0;
}
