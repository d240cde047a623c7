#include "changes/prints.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* As it is written: the same machine reads it. */
struct row {
    uint64_t inode;
    int64_t size, seconds, nanoseconds;
};

struct print print_of(const struct stat *status)
{
    return (struct print){ status->st_ino, status->st_size, status->st_mtim };
}

void prints_note(int fd, size_t place, const struct print *print)
{
    struct row row = { print->inode, print->size, print->mtime.tv_sec, print->mtime.tv_nsec };

    if (fd >= 0 && place < PRINTS_MAX)
        (void)!pwrite(fd, &row, sizeof row, (off_t)(place * sizeof row));
}

static int by_value(const void *a, const void *b)
{
    const struct print *one = a, *other = b;
    const int64_t pairs[][2] = { { (int64_t)one->inode, (int64_t)other->inode },
                                 { one->size, other->size },
                                 { one->mtime.tv_sec, other->mtime.tv_sec },
                                 { one->mtime.tv_nsec, other->mtime.tv_nsec } };

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    return 0;
}

void prints_read(int fd, struct prints *out)
{
    struct row rows[256];
    ssize_t got;

    *out = PRINTS_NONE;
    for (off_t at = 0; out->len < PRINTS_MAX && (got = pread(fd, rows, sizeof rows, at)) > 0; at += got)
        for (size_t i = 0; i < (size_t)got / sizeof *rows; i++)
            if (rows[i].inode)
                *array_add(out) =
                    (struct print){ rows[i].inode, rows[i].size, { rows[i].seconds, rows[i].nanoseconds } };
    if (out->len)
        qsort(out->items, out->len, sizeof *out->items, by_value);
}

void prints_free(struct prints *prints)
{
    free(prints->items);
    *prints = PRINTS_NONE;
}

bool prints_have(const struct prints *prints, const struct stat *status)
{
    struct print wanted = print_of(status);

    return prints && prints->len &&
           bsearch(&wanted, prints->items, prints->len, sizeof *prints->items, by_value);
}
