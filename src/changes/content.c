#include "changes/scan.h"

#include "base/memory.h"
#include "base/own.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 128 << 10 };

off_t content_data(int fd, off_t at, off_t size)
{
    off_t found = lseek(fd, at, SEEK_DATA);

    if (found < 0)
        return errno == ENXIO ? size : at; /* a file system that knows no holes has data everywhere */
    return found < size ? found : size;
}

ssize_t content_read(int fd, off_t at, char *into, size_t len)
{
    size_t have = 0;

    while (have < len) {
        ssize_t got = pread(fd, into + have, len - have, at + (off_t)have);

        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)have;
}

/* What both have as a hole is skipped: a file of many terabytes without data must not keep us. */
int content_equal(struct scan *scan, int one, int other, uint64_t *budget)
{
    struct stat a, b;

    if (fstat(one, &a) < 0 || fstat(other, &b) < 0)
        return -1;
    if (a.st_size != b.st_size)
        return 0;
    if (!scan->buffer)
        scan->buffer = memory_zero((size_t)2 * CHUNK);
    for (off_t at = 0; at < a.st_size;) {
        off_t next = content_data(one, at, a.st_size), also = content_data(other, at, a.st_size);

        at = next < also ? next : also;

        size_t len = a.st_size - at < CHUNK ? (size_t)(a.st_size - at) : CHUNK;
        uint64_t cost = len * 2;

        if (budget && cost > *budget)
            return -1;
        if (budget)
            *budget -= cost;
        ssize_t got = content_read(one, at, scan->buffer, len),
                same = content_read(other, at, scan->buffer + CHUNK, len);

        if (got < 0 || same < 0)
            return -1;
        /* Shorter than its status said: somebody is just writing it. */
        if (got != (ssize_t)len || same != got || memcmp(scan->buffer, scan->buffer + CHUNK, len) != 0)
            return 0;
        at += (off_t)len;
    }
    return 1;
}

bool content_text(int dir, const char *path, size_t most, struct text *out)
{
    autoclose int fd = scan_open_file(dir, path);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || (uint64_t)status.st_size > most)
        return false;

    autofree char *bytes = memory_resize(NULL, (size_t)status.st_size + 1);
    ssize_t got = content_read(fd, 0, bytes, (size_t)status.st_size);

    if (got >= 0)
        text_add_bytes(out, bytes, (size_t)got);
    return got >= 0;
}
