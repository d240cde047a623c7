#include "base/file.h"

#include "base/memory.h"
#include "base/own.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

char *file_text(int dir, const char *name, size_t most)
{
    /* Not to wait at a FIFO that somebody put there. */
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > (off_t)most)
        return NULL;

    autofree char *content = memory_zero(most + 1);
    size_t len = 0;

    for (ssize_t got; len < most && (got = read(fd, content + len, most - len)) > 0;)
        len += (size_t)got;
    return strlen(content) == len ? steal_ptr(&content) : NULL;
}
