#include "store/output.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "store/output_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_US = 1000000 };

static uint64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int output_open(int sandbox, uint64_t step, struct output *out, struct error *err)
{
    struct output output = OUTPUT_NONE;
    autoclose int dir = -1;

    if (mkdirat(sandbox, STORE_OUTPUT, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make the directory for output");
    dir = openat(sandbox, STORE_OUTPUT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return error_sys(err, "open the directory for output");
    output.dir = steal_fd(&dir);
    output.step = step;
    output.began_us = clock_us();
    output.began_wall_us = wall_us();
    *out = output;
    return 0;
}

static void end_segment(struct output *output)
{
    if (output->fd >= 0)
        close(steal_fd(&output->fd));
}

/* A name that is taken is an older segment's, whose turn is over.  Readers that have it open keep it. */
static int begin_segment(struct output *output)
{
    unsigned slot = output_slot(output->segment);
    struct output_name name = output_name(output->step, slot);

    (void)unlinkat(output->dir, name.text, 0);
    output->held[slot] = (struct output_count){ 0 };
    output->size = output->frames = output->used = 0;
    output->fd =
        openat(output->dir, name.text, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return output->fd < 0 ? -1 : 0;
}

/* Leaves whole frames behind, or no segment at all, and rests for a while. */
static void fail(struct output *output, int number)
{
    output->failed = output->failed ? output->failed : number;
    output->again_us = clock_us() + AGAIN_US;
    if (output->fd < 0)
        return;
    if (output->size) {
        int cut = ftruncate(output->fd, (off_t)output->size);

        (void)cut; /* if that fails too, readers find the rest torn */
        output->segment++;
    } else {
        struct output_name name = output_name(output->step, output_slot(output->segment));

        (void)unlinkat(output->dir, name.text, 0);
    }
    end_segment(output);
}

static uint32_t after_ms(const struct output *output)
{
    uint64_t after = (clock_us() - output->began_us) / 1000;

    return after < UINT32_MAX ? (uint32_t)after : UINT32_MAX;
}

/* One frame with one write, and with it what stands before the first. */
static int put_frame(struct output *output, enum output_stream stream, const void *bytes, size_t len)
{
    struct output_head head = {
        .step = htole64(output->step),
        .segment = htole64(output->segment),
        .began_us = htole64(output->began_wall_us),
        .before = { htole64(output->seen.bytes[0]), htole64(output->seen.bytes[1]) },
    };
    struct output_frame frame = { (uint8_t)stream, OUTPUT_MARK, htole16((uint16_t)(len - 1)),
                                  htole32(after_ms(output)) };
    struct iovec parts[] = { { &head, output->size ? 0 : sizeof head },
                             { &frame, sizeof frame },
                             { (void *)(uintptr_t)bytes, len } };
    size_t whole = parts[0].iov_len + sizeof frame + len;

    memcpy(head.magic, OUTPUT_MAGIC, sizeof head.magic);

    ssize_t done = writev(output->fd, parts, 3);

    if (done != (ssize_t)whole) {
        errno = done < 0 ? errno : ENOSPC; /* what a short write to a file means */
        return -1;
    }
    output->size += whole;
    output->frames++;
    output->used += len;
    output->held[output_slot(output->segment)].bytes[stream - 1] += len;
    return 0;
}

static bool is_full(const struct output *output)
{
    return output->used >= OUTPUT_SEGMENT || output->frames >= OUTPUT_FRAMES;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The length of what was kept of the beginning; 0: it failed. */
static size_t keep(struct output *output, enum output_stream stream, const void *bytes, size_t len)
{
    if (output->fd >= 0 && is_full(output)) {
        end_segment(output);
        output->segment++;
    }
    if (output->fd < 0 && begin_segment(output) < 0) {
        fail(output, errno);
        return 0;
    }
    len = least(len, least(OUTPUT_CHUNK, OUTPUT_SEGMENT - output->used));
    if (put_frame(output, stream, bytes, len) == 0)
        return len;
    fail(output, errno);
    return 0;
}

void output_add(struct output *output, enum output_stream stream, const void *bytes, size_t len)
{
    const char *at = bytes, *end = at + len;

    while (at < end && (!output->again_us || clock_us() >= output->again_us)) {
        size_t kept = keep(output, stream, at, (size_t)(end - at));

        if (!kept)
            break;
        output->again_us = 0;
        output->seen.bytes[stream - 1] += kept;
        at += kept;
    }
    output->seen.bytes[stream - 1] += (size_t)(end - at);
}

struct output_count output_kept(const struct output *output)
{
    struct output_count kept = { 0 };

    for (unsigned i = 0; i < OUTPUT_SEGMENTS; i++) {
        kept.bytes[0] += output->held[i].bytes[0];
        kept.bytes[1] += output->held[i].bytes[1];
    }
    return kept;
}

int output_close(struct output *output, struct error *err)
{
    int failed = output->failed;

    end_segment(output);
    if (output->dir >= 0)
        close(output->dir);
    *output = OUTPUT_NONE;
    errno = failed;
    return failed ? error_sys(err, "keep the output of the step") : 0;
}

void output_remove(int sandbox, uint64_t step)
{
    autoclose int dir = openat(sandbox, STORE_OUTPUT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    for (unsigned slot = 0; dir >= 0 && slot < OUTPUT_SEGMENTS; slot++)
        (void)unlinkat(dir, output_name(step, slot).text, 0);
}
