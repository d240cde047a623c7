#include "store/output_read.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "store/output_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FRAME_MAX = sizeof(struct output_frame) + OUTPUT_CHUNK,
    BUFFER = 2 * FRAME_MAX,
    FILE_MAX = sizeof(struct output_head) + OUTPUT_FRAMES * sizeof(struct output_frame) + OUTPUT_SEGMENT,
};

static int open_dir(int sandbox)
{
    return openat(sandbox, STORE_OUTPUT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A step that has no output has perhaps no directory yet: then it is opened later. */
int output_cursor_open(int sandbox, uint64_t step, struct output_cursor *out, struct error *err)
{
    autoclose int dir = open_dir(sandbox);

    if (dir < 0 && errno != ENOENT)
        return error_sys(err, "open the directory of output");
    *out = OUTPUT_CURSOR_NONE;
    out->sandbox = sandbox;
    out->dir = steal_fd(&dir);
    out->step = step;
    out->buffer = memory_resize(NULL, BUFFER);
    return 0;
}

void output_cursor_close(struct output_cursor *cursor)
{
    if (cursor->fd >= 0)
        close(cursor->fd);
    if (cursor->dir >= 0)
        close(cursor->dir);
    free(cursor->buffer);
    *cursor = OUTPUT_CURSOR_NONE;
}

/* --- segments --- */

static int open_slot(const struct output_cursor *cursor, unsigned slot, struct stat *status)
{
    autoclose int fd = openat(cursor->dir, output_name(cursor->step, slot).text,
                              O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0 && fstat(fd, status) == 0 && S_ISREG(status->st_mode) ? steal_fd(&fd) : -1;
}

static bool read_head(const struct output_cursor *cursor, unsigned slot, int fd, struct output_head *out)
{
    if (pread(fd, out, sizeof *out, 0) != (ssize_t)sizeof *out ||
        memcmp(out->magic, OUTPUT_MAGIC, sizeof out->magic) != 0)
        return false;
    out->step = le64toh(out->step);
    out->segment = le64toh(out->segment);
    out->began_us = le64toh(out->began_us);
    out->before[0] = le64toh(out->before[0]);
    out->before[1] = le64toh(out->before[1]);
    return out->step == cursor->step && out->segment < UINT64_MAX && output_slot(out->segment) == slot;
}

/* The first segment that was not read yet; -1: there is none. */
static int open_next(const struct output_cursor *cursor, struct output_head *out)
{
    int best = -1;

    for (unsigned slot = 0; cursor->dir >= 0 && slot < OUTPUT_SEGMENTS; slot++) {
        struct output_head head;
        struct stat status;
        autoclose int fd = open_slot(cursor, slot, &status);

        if (fd < 0 || !read_head(cursor, slot, fd, &head) || head.segment < cursor->next ||
            (best >= 0 && head.segment > out->segment))
            continue;
        if (best >= 0)
            close(best);
        best = steal_fd(&fd);
        *out = head;
    }
    return best;
}

/* Goes over to a segment, and says what is missing before it. */
static int enter(struct output_cursor *cursor, int fd, const struct output_head *head, output_visit *visit,
                 void *owner)
{
    struct output_event event = { .kind = OUTPUT_GAP };
    bool gap = false;

    if (cursor->fd >= 0)
        close(cursor->fd);
    cursor->fd = fd;
    cursor->at = sizeof *head;
    cursor->torn = false;
    cursor->next = head->segment + 1;
    cursor->began_us = head->began_us;
    for (unsigned i = 0; i < 2; i++) {
        if (head->before[i] <= cursor->counted.bytes[i])
            continue;
        event.left_out.bytes[i] = head->before[i] - cursor->counted.bytes[i];
        cursor->counted.bytes[i] = head->before[i];
        gap = true;
    }
    return gap ? visit(owner, &event) : 0;
}

/* --- frames --- */

static bool read_frame(const unsigned char *bytes, struct output_frame *out, size_t *len)
{
    memcpy(out, bytes, sizeof *out);
    *len = (size_t)le16toh(out->len_less_one) + 1;
    return out->mark == OUTPUT_MARK && (out->stream == OUTPUT_STDOUT || out->stream == OUTPUT_STDERR);
}

static int give(struct output_cursor *cursor, const struct output_frame *frame, const unsigned char *bytes,
                size_t len, output_visit *visit, void *owner)
{
    struct output_event event = { .kind = OUTPUT_BYTES,
                                  .stream = frame->stream,
                                  .time_us = cursor->began_us + (uint64_t)le32toh(frame->after_ms) * 1000,
                                  .bytes = bytes,
                                  .len = len };

    cursor->counted.bytes[frame->stream - 1] += len;
    return visit(owner, &event);
}

/* All whole frames of the buffer. */
static int take_frames(struct output_cursor *cursor, size_t len, output_visit *visit, void *owner)
{
    const unsigned char *at = cursor->buffer, *end = at + len;
    int result = 0;

    while (!result && end - at >= (ptrdiff_t)sizeof(struct output_frame)) {
        struct output_frame frame;
        size_t size;

        if (!read_frame(at, &frame, &size)) {
            cursor->torn = true;
            break;
        }
        if ((size_t)(end - at) < sizeof frame + size)
            break;
        result = give(cursor, &frame, at + sizeof frame, size, visit, owner);
        at += sizeof frame + size;
        cursor->at += sizeof frame + size;
    }
    return result;
}

static int read_frames(struct output_cursor *cursor, output_visit *visit, void *owner, struct error *err)
{
    uint64_t before;
    int result = 0;

    do {
        ssize_t got = cursor->torn ? 0 : pread(cursor->fd, cursor->buffer, BUFFER, (off_t)cursor->at);

        if (got < 0)
            return error_sys(err, "read the output of the step");
        before = cursor->at;
        result = take_frames(cursor, (size_t)got, visit, owner);
        cursor->torn = cursor->torn || cursor->at > FILE_MAX; /* nobody of us wrote that */
    } while (!result && cursor->at > before);
    return result;
}

static int say_torn(uint64_t len, output_visit *visit, void *owner)
{
    struct output_event event = { .kind = OUTPUT_TORN, .len = (size_t)len };

    return visit(owner, &event);
}

/* What is left of the segment now will not get whole any more. */
static int leave(struct output_cursor *cursor, output_visit *visit, void *owner)
{
    struct stat status;

    if (cursor->fd < 0 || fstat(cursor->fd, &status) < 0 || (uint64_t)status.st_size <= cursor->at)
        return 0;

    uint64_t left = (uint64_t)status.st_size - cursor->at;

    cursor->at = (uint64_t)status.st_size;
    return say_torn(left, visit, owner);
}

/* The next segment is begun after the last byte went to this one, so this one is read once more. */
static int go_over(struct output_cursor *cursor, int fd, const struct output_head *head, output_visit *visit,
                   void *owner, struct error *err)
{
    int result = cursor->fd >= 0 ? read_frames(cursor, visit, owner, err) : 0;

    if (!result)
        result = leave(cursor, visit, owner);
    if (!result)
        return enter(cursor, fd, head, visit, owner);
    close(fd);
    return result;
}

int output_cursor_advance(struct output_cursor *cursor, output_visit *visit, void *owner, struct error *err)
{
    struct output_head head;
    int result = 0, fd;

    if (cursor->dir < 0)
        cursor->dir = open_dir(cursor->sandbox);
    for (;;) {
        if (cursor->fd >= 0)
            result = read_frames(cursor, visit, owner, err);
        if (result || (fd = open_next(cursor, &head)) < 0)
            return result;
        result = go_over(cursor, fd, &head, visit, owner, err);
        if (result)
            return result;
    }
}

/* Files that have bytes and no head are torn as a whole. */
static int say_headless(const struct output_cursor *cursor, output_visit *visit, void *owner)
{
    int result = 0;

    for (unsigned slot = 0; cursor->dir >= 0 && !result && slot < OUTPUT_SEGMENTS; slot++) {
        struct output_head head;
        struct stat status;
        autoclose int fd = open_slot(cursor, slot, &status);

        if (fd >= 0 && status.st_size > 0 && !read_head(cursor, slot, fd, &head))
            result = say_torn((uint64_t)status.st_size, visit, owner);
    }
    return result;
}

int output_cursor_end(struct output_cursor *cursor, output_visit *visit, void *owner, struct error *err)
{
    int result = output_cursor_advance(cursor, visit, owner, err);

    if (!result)
        result = leave(cursor, visit, owner);
    return result ? result : say_headless(cursor, visit, owner);
}

int output_read(int sandbox, uint64_t step, output_visit *visit, void *owner, struct error *err)
{
    autooutputcursor struct output_cursor cursor = OUTPUT_CURSOR_NONE;

    if (output_cursor_open(sandbox, step, &cursor, err) < 0)
        return -1;
    return output_cursor_end(&cursor, visit, owner, err);
}
