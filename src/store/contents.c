#include "store/contents.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 8 << 20, /* between two questions whether to go on */
    BUFFER = 256 << 10,
    BLOCK = 512, /* the unit of st_blocks, whatever the file system's is */
};

void contents_free(struct contents *contents)
{
    free(contents->buffer);
    contents->buffer = NULL;
}

static int go_on(const struct contents *contents)
{
    if (!contents->go_on || contents->go_on(contents->owner))
        return 0;
    errno = EINTR;
    return -1;
}

/* True if the kernel cannot copy between these two, and plain reading may. */
static bool must_read(int number)
{
    return number == EXDEV || number == EINVAL || number == ENOSYS || number == EOPNOTSUPP;
}

static ssize_t copy_plainly(struct contents *contents, int from, int to, off_t at, size_t len)
{
    ssize_t got;

    if (!contents->buffer)
        contents->buffer = memory_zero(BUFFER);
    got = pread(from, contents->buffer, len < BUFFER ? len : BUFFER, at);
    for (ssize_t done = 0; done < got;) {
        ssize_t put = pwrite(to, contents->buffer + done, (size_t)(got - done), at + done);

        if (put < 0)
            return -1;
        done += put;
    }
    return got;
}

/* A stretch without holes.  `at` is where it begins, and then, how far it came. */
static int copy_data(struct contents *contents, int from, int to, off_t *at, off_t end)
{
    bool plain = false;

    while (*at < end) {
        size_t len = end - *at < CHUNK ? (size_t)(end - *at) : CHUNK;
        off_t in = *at, out = in;
        ssize_t done =
            plain ? copy_plainly(contents, from, to, *at, len) : copy_file_range(from, &in, to, &out, len, 0);

        if (done < 0 && !plain && must_read(errno)) {
            plain = true;
            continue;
        }
        if (done < 0)
            return -1;
        if (done == 0) /* somebody made it shorter */
            return 0;
        *at += done;
        contents->bytes += (uint64_t)done;
        if (go_on(contents) < 0)
            return -1;
    }
    return 0;
}

static int copy_around_holes(struct contents *contents, int from, int to, off_t size)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA), hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);

        if (data < 0 && errno == ENXIO)
            break;
        if (hole < 0) { /* a file system that knows no holes */
            data = at;
            hole = size;
        }
        if (hole > size)
            hole = size;
        at = hole > at ? hole : size;
        if (copy_data(contents, from, to, &data, hole) < 0)
            return -1;
    }
    return ftruncate(to, size);
}

/* Most files have no hole: who has as many blocks as its size takes need not be asked where they are. */
static int copy_bytes(struct contents *contents, int from, int to, const struct stat *status)
{
    off_t at = 0, size = status->st_size;

    if (status->st_blocks < (size + BLOCK - 1) / BLOCK)
        return copy_around_holes(contents, from, to, size);
    if (copy_data(contents, from, to, &at, size) < 0)
        return -1;
    return at == size ? 0 : ftruncate(to, size);
}

static bool share(struct contents *contents, int from, int to)
{
    if (contents->no_clone)
        return false;
    if (ioctl(to, FICLONE, from) == 0)
        return true;
    contents->no_clone = errno == EOPNOTSUPP || errno == EXDEV || errno == ENOTTY || errno == ENOSYS;
    return false;
}

int contents_copy(struct contents *contents, int from, int to, const struct stat *status)
{
    return !status->st_size || share(contents, from, to) ? 0 : copy_bytes(contents, from, to, status);
}
