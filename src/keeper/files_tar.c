#include "keeper/files_tar.h"

#include "changes/tar.h"
#include "keeper/files_notes.h"
#include "keeper/files_tree.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A tar has no holes.  So that a file of 8 EiB that stores nothing keeps nobody reading, there may be so much
 * of holes in all, and this many bytes for each that was sent.  The same for what a file lost while it was
 * read. */
enum { HOLES_FREE = 1 << 30, HOLES_RATIO = 16, LOST_MAX = 1 << 20 };

static int put(struct files_tar *tar, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t done = write(tar->fd, at, len);

        if (done < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){ .fd = tar->fd, .events = POLLOUT }, 1, -1);
        else if (done < 0 && errno != EINTR)
            return -1;
        at += done > 0 ? done : 0;
        len -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int put_zeros(struct files_tar *tar, uint64_t len)
{
    static const char zeros[64 << 10];

    for (; len > 0; len -= len < sizeof zeros ? len : sizeof zeros)
        if (put(tar, zeros, len < sizeof zeros ? (size_t)len : sizeof zeros) < 0)
            return -1;
    return 0;
}

/* The path of a name; text_cut() to what is given takes it off again. */
static size_t add_name(struct files_tar *tar, const char *name)
{
    size_t before = tar->path.len;

    if (before)
        text_add(&tar->path, "/");
    text_add(&tar->path, name);
    return before;
}

static void cut(struct files_tar *tar, size_t len)
{
    if (tar->path.data)
        text_cut(&tar->path, len);
}

static int put_header(struct files_tar *tar, const struct tree_item *item, enum tar_type type,
                      const char *target)
{
    struct tar_member member = { .path = text_string(&tar->path),
                                 .type = type,
                                 .mode = type == TAR_LINK ? 0777 : item->entry.mode,
                                 .size = type == TAR_FILE ? item->entry.size : 0,
                                 .mtime = (time_t)item->entry.mtime,
                                 .target = target };
    autotext struct text header = TEXT_NONE;

    tar_add_header(&member, &header);
    tar->files++;
    return put(tar, text_string(&header), header.len);
}

static void note(struct files_tar *tar, uint32_t why, int number)
{
    (void)files_note_add(tar->copy, &(struct files_note){ number, why }, text_string(&tar->path));
}

static int on_enter(void *owner, const struct tree_item *item)
{
    struct files_tar *tar = owner;
    bool hidden = tar->bare && tar->depth == 0;

    tar->lengths[tar->depth++] = hidden ? 0 : add_name(tar, item->name);
    return hidden ? 0 : put_header(tar, item, TAR_DIRECTORY, NULL);
}

static int on_leave(void *owner)
{
    struct files_tar *tar = owner;

    cut(tar, tar->lengths[--tar->depth]);
    return 0;
}

static int on_file(void *owner, const struct tree_item *item)
{
    struct files_tar *tar = owner;
    size_t before = add_name(tar, item->name);

    tar->size = item->entry.size;
    tar->at = 0;
    if (item->entry.twin)
        strings_add(&tar->twins, text_string(&tar->path));

    int result = put_header(tar, item, TAR_FILE, NULL);

    cut(tar, before);
    return result;
}

static int on_data(void *owner, const void *bytes, size_t len)
{
    struct files_tar *tar = owner;

    tar->at += len;
    tar->bytes += len;
    return put(tar, bytes, len);
}

static int on_hole(void *owner, uint64_t len)
{
    struct files_tar *tar = owner;

    if (__builtin_add_overflow(tar->holes, len, &tar->holes) ||
        (tar->holes > HOLES_FREE && (tar->holes - HOLES_FREE) / HOLES_RATIO > tar->bytes)) {
        tar->problem = "its files are nearly all holes, which a tar cannot have";
        errno = EFBIG;
        return -1;
    }
    tar->at += len;
    return put_zeros(tar, len);
}

/* The header has said how long it is, so something must stand there. */
static int on_file_end(void *owner, int status)
{
    struct files_tar *tar = owner;

    if (status) {
        if (tar->size - tar->at > LOST_MAX) {
            tar->problem = "a file became much shorter while it was read";
            errno = ESTALE;
            return -1;
        }
        note(tar, WHY_CHANGED, status);
        if (put_zeros(tar, tar->size - tar->at) < 0)
            return -1;
    }
    return put_zeros(tar, tar_padding(tar->size));
}

static int on_link(void *owner, const struct tree_item *item)
{
    struct files_tar *tar = owner;
    size_t before = add_name(tar, item->name);
    int result = put_header(tar, item, TAR_LINK, item->target);

    cut(tar, before);
    return result;
}

static int on_twin(void *owner, const struct tree_item *item)
{
    struct files_tar *tar = owner;
    size_t before = add_name(tar, item->name);
    int result = put_header(tar, item, TAR_HARD_LINK, tar->twins.items[item->entry.twin - 1]);

    cut(tar, before);
    return result;
}

static int on_left_out(void *owner, const struct tree_item *item)
{
    struct files_tar *tar = owner;
    size_t before = add_name(tar, item->name);

    note(tar, item->note.why, item->note.number);
    cut(tar, before);
    return 0;
}

const struct tree_sink files_tar_sink = {
    .enter = on_enter,
    .leave = on_leave,
    .file = on_file,
    .data = on_data,
    .hole = on_hole,
    .file_end = on_file_end,
    .link = on_link,
    .twin = on_twin,
    .left_out = on_left_out,
};

int files_tar_end(struct files_tar *tar)
{
    autotext struct text end = TEXT_NONE;

    tar_add_end(&end);
    return put(tar, text_string(&end), end.len);
}

void files_tar_free(struct files_tar *tar)
{
    text_free(&tar->path);
    strings_free(&tar->twins);
}
