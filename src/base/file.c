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

    return file_rest(fd, most);
}

char *file_rest(int fd, size_t most)
{
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

int file_add_rest(int fd, size_t most, struct text *out)
{
    char buffer[16384];
    ssize_t got;

    while ((got = read(fd, buffer, sizeof buffer)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        text_add_bytes(out, buffer, (size_t)got);
        if (out->len > most)
            return 1;
    }
    return 0;
}

int file_put(int fd, const char *bytes, size_t len)
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
