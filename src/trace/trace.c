#include "trace/trace.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "trace/line.h"
#include "trace/read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the last record is looked for: nearly every line is shorter than the first, every line fits into the
 * second.  Only if somebody has put much else behind it, all of the file is read. */
static const size_t windows[] = { 64 << 10, TRACE_LINE_MAX + (64 << 10) };

/* The last whole record of a file; of none, all are 0. */
struct last {
    uint64_t at, len, seq;
};

/* `from` is where the line begins if the window holds its beginning. */
static bool is_last(const char *line, size_t len, uint64_t from, struct last *out)
{
    autotraceline struct trace_line read = TRACE_LINE_NONE;

    if (!trace_line_read(line, len, &read))
        return false;
    *out = (struct last){ from, len, read.seq };
    return true;
}

/* Line by line from the end.  1: found, 0: not here, -1: errno. */
static int look_back(int fd, uint64_t size, size_t window, struct last *out)
{
    size_t len = size < window ? (size_t)size : window;
    autofree char *bytes = memory_resize(NULL, len + 1);
    uint64_t from = size - len;

    if (pread(fd, bytes, len, (off_t)from) != (ssize_t)len)
        return -1;
    for (size_t end = len, at = end; end > 0; end = at > 0 ? at - 1 : 0, at = end) {
        while (at > 0 && bytes[at - 1] != '\n')
            at--;
        if (at == 0 && from > 0)
            return 0; /* it begins before the window */
        if (is_last(bytes + at, end - at, from + at, out))
            return 1;
    }
    return 0;
}

static int ignore(void *owner, const struct trace_line *line, bool verified)
{
    (void)owner, (void)line, (void)verified;
    return 0;
}

static int look_through(int dir, struct last *out, struct error *err)
{
    struct trace_found found;

    if (trace_read(dir, ignore, NULL, &found, err) < 0)
        return -1;
    *out = (struct last){ found.at, found.len, found.seq };
    return 0;
}

static int find_last(int dir, int fd, uint64_t size, struct last *out, struct error *err)
{
    *out = (struct last){ 0 };
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        int found = look_back(fd, size, windows[i], out);

        if (found < 0)
            return error_sys(err, "read the end of the trace");
        if (found || size <= windows[i])
            return 0;
    }
    return look_through(dir, out, err);
}

/* The hash of `len` bytes from `at` on. */
static int hash_range(int fd, uint64_t at, uint64_t len, char out[SHA256_TEXT])
{
    enum { PIECE = 64 << 10 };
    struct sha256 *sha256 = sha256_new();
    autofree char *buffer = memory_resize(NULL, PIECE);
    unsigned char sum[SHA256_BYTES];

    while (len) {
        ssize_t got = pread(fd, buffer, len < PIECE ? (size_t)len : PIECE, (off_t)at);

        if (got <= 0) {
            sha256_end(sha256, NULL);
            return -1;
        }
        sha256_add(sha256, buffer, (size_t)got);
        at += (uint64_t)got;
        len -= (uint64_t)got;
    }
    sha256_end(sha256, sum);
    sha256_text(sum, out);
    return 0;
}

/* Takes back what a write that failed has left. */
static int mend(struct trace *trace)
{
    if (!trace->torn)
        return 0;
    if (ftruncate(trace->fd, (off_t)trace->size) < 0)
        return -1;
    trace->torn = false;
    return 0;
}

/* All of it or nothing. */
static int put(struct trace *trace, const char *bytes, size_t len, struct error *err)
{
    if (mend(trace) < 0)
        return error_sys(err, "take back a part of a line of the trace");

    ssize_t done = write(trace->fd, bytes, len);

    if (done == (ssize_t)len) {
        trace->size += len;
        return 0;
    }
    if (done >= 0)
        errno = ENOSPC; /* what a short write to a file means */
    error_sys(err, "write to the trace of the sandbox");
    trace->torn = true;
    (void)mend(trace); /* or else before the next line */
    return -1;
}

/* `first` stands before the line: nothing, or the newline that a torn one lacks. */
static int add(struct trace *trace, const char *first, const char *kind, struct node *data, struct error *err)
{
    autotext struct text json = TEXT_NONE, whole = TEXT_NONE;
    struct trace_line line = { .seq = trace->seq + 1, .mono_us = clock_us(), .prev = trace->hash };

    clock_gettime(CLOCK_REALTIME, &line.time);
    line.kind = (char *)(uintptr_t)kind; /* only read */
    if (data)
        line.data = *data;
    trace_line_write(&line, &json);
    if (data)
        *data = line.data;
    if (json.len > TRACE_LINE_MAX)
        return error_set(err, ERROR_REFUSED, "a line of the trace would be longer than 1 MiB (%s)", kind);
    text_addf(&whole, "%s", first);
    text_add_bytes(&whole, json.data, json.len);
    text_add(&whole, "\n");
    if (put(trace, whole.data, whole.len, err) < 0)
        return -1;
    trace_hash(json.data, json.len, trace->hash);
    trace->seq++;
    return 0;
}

int trace_add(struct trace *trace, const char *kind, struct node *data, struct error *err)
{
    return add(trace, "", kind, data, err);
}

/* Says that there is something that is no record, from the end of the last one on.  Its own newline, if it has
 * one, belongs to it as little as to a whole line. */
static int add_gap(struct trace *trace, uint64_t torn, bool ended, struct error *err)
{
    autonode struct node data = { .kind = NODE_MAP };
    autofree char *bytes = text_format("%" PRIu64, torn);

    node_add(&data, "torn", NODE_NUMBER, bytes);
    node_add(&data, "why", NODE_STRING, "torn");
    if (add(trace, ended ? "" : "\n", TRACE_GAP, &data, err) < 0)
        return error_while(err, "go on after a torn end of the trace");
    return 0;
}

/* Finds where to go on in a file that has something in it. */
static int resume(int dir, struct trace *trace, struct error *err)
{
    struct last last;
    char byte;

    if (find_last(dir, trace->fd, trace->size, &last, err) < 0)
        return -1;
    if (pread(trace->fd, &byte, 1, (off_t)trace->size - 1) != 1)
        return error_sys(err, "read the end of the trace");

    bool ended = byte == '\n';
    uint64_t end = trace->size - ended, whole = last.at + last.len;

    trace->seq = last.seq;
    if (hash_range(trace->fd, last.at, end - last.at, trace->hash) < 0)
        return error_sys(err, "read the end of the trace");
    if (end > whole)
        return add_gap(trace, last.seq ? end - whole - 1 : end, ended, err);
    return ended ? 0 : put(trace, "\n", 1, err); /* nothing of the line is missing but its end */
}

int trace_open(int dir, struct trace *out, struct error *err)
{
    struct trace trace = TRACE_NONE;
    autoclose int fd =
        openat(dir, TRACE_FILE, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open the trace of the sandbox");
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_INVALID, "the trace of the sandbox is no regular file");
    trace.fd = fd;
    trace.size = (uint64_t)status.st_size;
    memcpy(trace.hash, TRACE_NO_PREV, SHA256_TEXT);
    if (trace.size && resume(dir, &trace, err) < 0)
        return -1;
    (void)steal_fd(&fd);
    *out = trace;
    return 0;
}

int trace_sync(const struct trace *trace, struct error *err)
{
    return fdatasync(trace->fd) < 0 ? error_sys(err, "write the trace of the sandbox to the disk") : 0;
}

void trace_close(struct trace *trace)
{
    if (trace->fd >= 0)
        close(trace->fd);
    *trace = TRACE_NONE;
}
