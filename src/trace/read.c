#include "trace/read.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A record's `prev` is the hash of all that lies between the beginning of the record before and the newline
 * before this one.  That is the line before, unless something was torn there: then it is covered too.
 *
 * Only what comes next can vouch for a record, so each is held until then, or until the end of the file. */

enum { READ_BYTES = 64 << 10 };

static const char *const names[] = {
    [TRACE_WHOLE] = "whole",         [TRACE_CHANGED] = "changed",       [TRACE_MISSING] = "missing",
    [TRACE_REORDERED] = "reordered", [TRACE_DUPLICATED] = "duplicated", [TRACE_UNREADABLE] = "unreadable",
    [TRACE_TRUNCATED] = "truncated",
};

const char *trace_break_name(enum trace_break how)
{
    return names[how];
}

char *trace_found_says(const struct trace_found *found)
{
    static const char *const says[] = {
        [TRACE_CHANGED] = "does not continue the line before it: one of the two was changed",
        [TRACE_MISSING] = "does not continue the line before it: there were others between them",
        [TRACE_REORDERED] = "stands in the wrong place",
        [TRACE_DUPLICATED] = "is there twice",
        [TRACE_UNREADABLE] = "is no record",
        [TRACE_TRUNCATED] = "has no end",
    };

    return found->how == TRACE_WHOLE ? NULL
                                     : text_format("line %" PRIu64 " %s", found->broken, says[found->how]);
}

int trace_reader_open(int dir, struct trace_reader *out, struct error *err)
{
    autoclose int fd = openat(dir, TRACE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERROR_MISSING, "the sandbox has no trace");
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open the trace of the sandbox");
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_INVALID, "the trace of the sandbox is no regular file");
    *out = TRACE_READER_NONE;
    out->fd = steal_fd(&fd);
    memcpy(out->found.hash, TRACE_NO_PREV, SHA256_TEXT);
    return 0;
}

void trace_reader_close(struct trace_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    text_free(&reader->line);
    sha256_end(reader->since, NULL);
    trace_line_free(&reader->held);
    *reader = TRACE_READER_NONE;
}

static void set_broken(struct trace_reader *reader, enum trace_break how, uint64_t line)
{
    if (reader->found.how != TRACE_WHOLE)
        return;
    reader->found.how = how;
    reader->found.broken = line;
}

/* --- what was read of the chain --- */

static void hash_start(struct trace_reader *reader)
{
    sha256_end(reader->since, NULL);
    reader->since = sha256_new();
}

/* A newline stands between what was hashed before and what comes now. */
static void hash_loose(struct trace_reader *reader, const char *bytes, size_t len, bool begins)
{
    if (!reader->since)
        hash_start(reader);
    else if (begins)
        sha256_add(reader->since, "\n", 1);
    reader->loose += len + (begins && reader->loose_lines > 0);
    reader->loose_lines += begins;
    sha256_add(reader->since, bytes, len);
}

/* What the next record must have as `prev`. */
static void hash_next(struct trace_reader *reader, char out[SHA256_TEXT])
{
    unsigned char bytes[SHA256_BYTES];

    if (!reader->since) {
        memcpy(out, TRACE_NO_PREV, SHA256_TEXT);
        return;
    }
    sha256_end(reader->since, bytes);
    reader->since = NULL;
    sha256_text(bytes, out);
}

static enum trace_break judge_seq(const struct trace_reader *reader, const struct trace_line *line)
{
    uint64_t next = reader->found.seq + 1;

    if (line->seq > next)
        return TRACE_MISSING;
    if (line->seq == next)
        return TRACE_WHOLE;
    if (line->seq == reader->found.seq) {
        char own[SHA256_TEXT];

        trace_hash(reader->line.data, reader->line.len, own);
        if (strcmp(own, reader->last) == 0)
            return TRACE_DUPLICATED;
    }
    return TRACE_REORDERED;
}

static enum trace_break judge(const struct trace_reader *reader, const struct trace_line *line,
                              const char *prev)
{
    bool follows = strcmp(prev, line->prev) == 0;

    if (reader->loose_lines && (!follows || reader->loose != trace_line_torn(line)))
        return TRACE_UNREADABLE;

    enum trace_break how = judge_seq(reader, line);

    return how == TRACE_WHOLE && !follows ? TRACE_CHANGED : how;
}

/* --- lines --- */

static int give_held(struct trace_reader *reader, trace_visit *visit, void *owner, bool verified)
{
    int result = reader->has_held ? visit(owner, &reader->held, verified) : 0;

    trace_line_free(&reader->held);
    reader->has_held = false;
    return result;
}

/* Takes the record that reader->line holds; `line` is taken over. */
static int take_record(struct trace_reader *reader, struct trace_line *line, trace_visit *visit, void *owner)
{
    struct trace_found *found = &reader->found;
    bool before = found->how == TRACE_WHOLE;
    char prev[SHA256_TEXT];

    hash_next(reader, prev);

    enum trace_break how = judge(reader, line, prev);

    if (how != TRACE_WHOLE)
        set_broken(reader, how, found->lines - (how == TRACE_UNREADABLE ? reader->loose_lines : 0));
    else
        found->torn += reader->loose;

    int result = give_held(reader, visit, owner, before && how == TRACE_WHOLE);

    reader->held = *line;
    reader->has_held = true;
    found->records++;
    found->seq = line->seq;
    reader->loose = reader->loose_lines = 0;
    hash_start(reader);
    sha256_add(reader->since, reader->line.data, reader->line.len);
    trace_hash(reader->line.data, reader->line.len, reader->last);
    return result;
}

/* The line has its newline, which is not part of reader->line. */
static int end_line(struct trace_reader *reader, trace_visit *visit, void *owner)
{
    struct trace_line line = TRACE_LINE_NONE;
    size_t len = reader->line.len;
    int result = 0;

    reader->found.lines++;
    if (!reader->too_long && trace_line_read(text_string(&reader->line), len, &line)) {
        reader->found.at = reader->at - len;
        reader->found.len = len;
        result = take_record(reader, &line, visit, owner);
    } else {
        hash_loose(reader, text_string(&reader->line), len, !reader->too_long);
    }
    text_clear(&reader->line);
    reader->too_long = false;
    return result;
}

/* A line that is too long can be no record, so its bytes need not be kept. */
static void add_bytes(struct trace_reader *reader, const char *bytes, size_t len)
{
    text_add_bytes(&reader->line, bytes, len);
    reader->at += len;
    if (reader->line.len <= TRACE_LINE_MAX)
        return;
    hash_loose(reader, reader->line.data, reader->line.len, !reader->too_long);
    reader->too_long = true;
    text_clear(&reader->line);
}

static int take_bytes(struct trace_reader *reader, const char *bytes, size_t len, trace_visit *visit,
                      void *owner)
{
    const char *end = bytes + len, *newline;
    int result = 0;

    while (!result && (newline = memchr(bytes, '\n', (size_t)(end - bytes)))) {
        add_bytes(reader, bytes, (size_t)(newline - bytes));
        result = end_line(reader, visit, owner);
        reader->at++;
        bytes = newline + 1;
    }
    if (!result && bytes < end)
        add_bytes(reader, bytes, (size_t)(end - bytes));
    return result;
}

int trace_reader_advance(struct trace_reader *reader, trace_visit *visit, void *owner, struct error *err)
{
    autofree char *buffer = memory_resize(NULL, READ_BYTES);
    ssize_t got = 0;
    int result = 0;

    while (!result && (got = pread(reader->fd, buffer, READ_BYTES, (off_t)reader->at)) > 0)
        result = take_bytes(reader, buffer, (size_t)got, visit, owner);
    if (got < 0)
        return error_sys(err, "read the trace of the sandbox");
    return result ? result : give_held(reader, visit, owner, reader->found.how == TRACE_WHOLE);
}

void trace_reader_end(struct trace_reader *reader)
{
    struct trace_found *found = &reader->found;

    if (reader->loose_lines > reader->too_long)
        set_broken(reader, TRACE_UNREADABLE, found->lines + 1 - (reader->loose_lines - reader->too_long));
    if (reader->line.len || reader->too_long)
        set_broken(reader, TRACE_TRUNCATED, found->lines + 1);
    hash_next(reader, found->hash);
}

int trace_read(int dir, trace_visit *visit, void *owner, struct trace_found *found, struct error *err)
{
    autotracereader struct trace_reader reader = TRACE_READER_NONE;

    if (trace_reader_open(dir, &reader, err) < 0)
        return -1;

    int result = trace_reader_advance(&reader, visit, owner, err);

    if (!result)
        trace_reader_end(&reader);
    *found = reader.found;
    return result;
}
