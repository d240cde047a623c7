#include "store/output.h"

#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "store/output_read.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The linker puts this between the code and libc: at the end of a file somebody else has the turn, once. */
static struct output *writes_then;
static const char *written_then;
static size_t written_len;
ssize_t __real_pread(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at);
ssize_t __real_pread64(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t at);

static ssize_t then_write(ssize_t got)
{
    struct output *output = writes_then;

    if (got == 0 && output) {
        writes_then = NULL;
        output_add(output, OUTPUT_STDOUT, written_then, written_len);
    }
    return got;
}

ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
    return then_write(__real_pread(fd, to, len, at));
}

ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t at)
{
    return then_write(__real_pread64(fd, to, len, at));
}

/* What came out, stream by stream, and what was said besides. */
struct seen {
    struct text streams[2];
    struct output_count left_out;
    size_t gaps, torn_times;
    uint64_t torn;
    uint64_t last_us;
    int stop_after; /* events; 0: never */
    int events;
};

static void forget(struct seen *seen)
{
    text_free(&seen->streams[0]);
    text_free(&seen->streams[1]);
    *seen = (struct seen){ 0 };
}

#define autoseen __attribute__((cleanup(forget)))

static int see(void *owner, const struct output_event *event)
{
    struct seen *seen = owner;

    switch (event->kind) {
    case OUTPUT_BYTES:
        assert_true(event->len > 0 && event->len <= OUTPUT_CHUNK && event->time_us >= seen->last_us);
        seen->last_us = event->time_us;
        text_add_bytes(&seen->streams[event->stream - 1], event->bytes, event->len);
        break;
    case OUTPUT_GAP:
        seen->gaps++;
        seen->left_out.bytes[0] += event->left_out.bytes[0];
        seen->left_out.bytes[1] += event->left_out.bytes[1];
        break;
    case OUTPUT_TORN:
        seen->torn_times++;
        seen->torn += event->len;
        break;
    }
    return seen->stop_after && ++seen->events >= seen->stop_after ? 5 : 0;
}

static struct output open_it(const struct unit_scratch *scratch, uint64_t step)
{
    struct output output = OUTPUT_NONE;
    struct error err;

    if (output_open(scratch->dir, step, &output, &err) < 0)
        fail_msg("%s", err.text);
    return output;
}

static void close_it(struct output *output)
{
    struct error err;

    if (output_close(output, &err) < 0)
        fail_msg("%s", err.text);
}

static void read_it(const struct unit_scratch *scratch, uint64_t step, struct seen *seen)
{
    struct error err;

    forget(seen);
    if (output_read(scratch->dir, step, see, seen, &err) < 0)
        fail_msg("%s", err.text);
}

/* Bytes that tell where they are from. */
static char *pattern(size_t len)
{
    char *bytes = memory_resize(NULL, len + 1);
    uint32_t value = 1;

    for (size_t i = 0; i < len; i++) {
        value = value * 1664525 + 1013904223;
        bytes[i] = (char)(value >> 24);
    }
    return bytes;
}

static void both_streams_come_back_exactly(void **state)
{
    struct unit_scratch *scratch = *state;
    struct output output = open_it(scratch, 7);
    autoseen struct seen seen = { 0 };
    struct stat status;

    assert_int_equal(fstatat(scratch->dir, "output/7.0", &status, 0), -1);
    output_add(&output, OUTPUT_STDOUT, "one\0\xff\n", 6);
    output_add(&output, OUTPUT_STDERR, "", 0);
    output_add(&output, OUTPUT_STDERR, "\033]0;t\a", 6);
    output_add(&output, OUTPUT_STDOUT, "two", 3);
    assert_int_equal(output.seen.bytes[0], 9);
    assert_int_equal(output_kept(&output).bytes[0], 9);
    assert_int_equal(output_kept(&output).bytes[1], 6);
    close_it(&output);
    assert_int_equal(fstatat(scratch->dir, "output", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(fstatat(scratch->dir, "output/7.0", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    read_it(scratch, 7, &seen);
    assert_int_equal(seen.streams[0].len, 9);
    assert_memory_equal(seen.streams[0].data, "one\0\xff\ntwo", 9);
    assert_string_equal(seen.streams[1].data, "\033]0;t\a");
    assert_int_equal(seen.gaps + seen.torn_times, 0);
    read_it(scratch, 8, &seen);
    assert_int_equal(seen.streams[0].len + seen.gaps + seen.torn_times, 0);
    output_remove(scratch->dir, 7);
    assert_int_equal(fstatat(scratch->dir, "output/7.0", &status, 0), -1);
}

static size_t disk_used(const struct unit_scratch *scratch, uint64_t step)
{
    size_t used = 0;

    for (unsigned i = 0; i < OUTPUT_SEGMENTS + 2; i++) {
        autofree char *name = text_format("output/%u.%u", (unsigned)step, i);
        struct stat status;

        used += fstatat(scratch->dir, name, &status, 0) == 0 ? (size_t)status.st_size : 0;
    }
    return used;
}

/* The beginning and the end stay; both together with what is left out are all of it. */
static void what_is_too_much_is_left_out_of_the_middle(void **state)
{
    static const struct {
        size_t total, chunk;
    } cases[] = {
        { OUTPUT_SEGMENT - 1, 4096 },
        { OUTPUT_SEGMENT, 4096 },
        { OUTPUT_SEGMENT + 1, 4096 },
        { 4 * OUTPUT_SEGMENT, 100000 },
        { 4 * OUTPUT_SEGMENT + 1, 65536 },
        { 9 * OUTPUT_SEGMENT + 77, 65537 },
        { 13 * OUTPUT_SEGMENT, 1000003 },
        { 20000, 1 },
        { 100000, 1 },
    };
    struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t total = cases[i].total;
        struct output output = open_it(scratch, i);
        autofree char *bytes = pattern(total);
        autoseen struct seen seen = { 0 };

        for (size_t at = 0; at < total; at += cases[i].chunk)
            output_add(&output, OUTPUT_STDOUT, bytes + at,
                       cases[i].chunk < total - at ? cases[i].chunk : total - at);

        struct output_count kept = output_kept(&output);

        assert_int_equal(output.seen.bytes[0], total);
        close_it(&output);
        read_it(scratch, i, &seen);
        assert_int_equal(seen.torn_times, 0);
        assert_int_equal(seen.streams[0].len, kept.bytes[0]);
        assert_int_equal(seen.streams[0].len + seen.left_out.bytes[0], total);
        assert_true(disk_used(scratch, i) <=
                    OUTPUT_SEGMENTS * (OUTPUT_SEGMENT + 48 + OUTPUT_FRAMES * sizeof(uint64_t)));

        size_t first = cases[i].chunk > 1 ? OUTPUT_SEGMENT : OUTPUT_FRAMES;
        size_t part = total < first ? total : first, rest = seen.streams[0].len - part;

        assert_memory_equal(seen.streams[0].data, bytes, part);
        if (rest)
            assert_memory_equal(seen.streams[0].data + part, bytes + total - rest, rest);
        assert_int_equal(seen.gaps > 0, total > OUTPUT_SEGMENTS * first);
        if (total > OUTPUT_SEGMENTS * first)
            assert_true(rest >= (OUTPUT_SEGMENTS - 2) * first);
    }
}

/* --- torn --- */

static void write_file(const struct unit_scratch *scratch, const char *name, const void *bytes, size_t len)
{
    autoclose int fd = openat(scratch->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, bytes, len), len);
}

static size_t read_file(const struct unit_scratch *scratch, const char *name, char *to, size_t most)
{
    autoclose int fd = openat(scratch->dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, to, most);

    assert_true(got > 0);
    return (size_t)got;
}

static void cut_at_any_byte_whole_chunks_come_back(void **state)
{
    struct unit_scratch *scratch = *state;
    struct output output = open_it(scratch, 1);
    autoseen struct seen seen = { 0 };
    char bytes[512];

    output_add(&output, OUTPUT_STDOUT, "first", 5);
    output_add(&output, OUTPUT_STDOUT, "second", 6);
    output_add(&output, OUTPUT_STDOUT, "third", 5);
    close_it(&output);

    static const size_t ends[] = { 48, 48 + 13, 48 + 13 + 14, 48 + 13 + 14 + 13 };
    static const char *const whole[] = { "", "first", "firstsecond", "firstsecondthird" };
    size_t len = read_file(scratch, "output/1.0", bytes, sizeof bytes);

    assert_int_equal(len, ends[3]);
    for (size_t cut = 0; cut <= len; cut++) {
        size_t chunks = 0, begin = 0;

        write_file(scratch, "output/1.0", bytes, cut);
        read_it(scratch, 1, &seen);
        for (size_t i = 0; i < 4; i++)
            if (cut >= ends[i]) {
                chunks = i;
                begin = ends[i];
            }
        assert_string_equal(text_string(&seen.streams[0]), whole[chunks]);
        assert_int_equal(seen.torn, cut - begin);
        assert_int_equal(seen.torn_times, cut > begin);
    }
}

static void what_makes_no_sense_is_said_and_read_no_further(void **state)
{
    static const struct {
        size_t at;
        char byte;
        const char *out;
        size_t torn;
    } cases[] = {
        { 0, 'X', "", 75 },              /* the magic */
        { 8, 9, "", 75 },                /* of another step */
        { 16, 3, "", 75 },               /* of another segment */
        { 48, 0, "", 27 },               /* no stream */
        { 48, 3, "", 27 },               /* no stream */
        { 49, 0, "", 27 },               /* no mark */
        { 61, 0, "first", 14 },          /* the same of the second chunk */
        { 63, (char)0xff, "first", 14 }, /* longer than there is */
    };
    struct unit_scratch *scratch = *state;
    struct output output = open_it(scratch, 1);
    autoseen struct seen seen = { 0 };
    char bytes[512];

    output_add(&output, OUTPUT_STDOUT, "first", 5);
    output_add(&output, OUTPUT_STDOUT, "second", 6);
    close_it(&output);

    size_t len = read_file(scratch, "output/1.0", bytes, sizeof bytes);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char old = bytes[cases[i].at];

        bytes[cases[i].at] = cases[i].byte;
        write_file(scratch, "output/1.0", bytes, len);
        bytes[cases[i].at] = old;
        read_it(scratch, 1, &seen);
        assert_string_equal(text_string(&seen.streams[0]), cases[i].out);
        assert_int_equal(seen.torn, cases[i].torn);
    }
}

static void what_is_no_file_is_not_read(void **state)
{
    struct unit_scratch *scratch = *state;
    autoseen struct seen seen = { 0 };

    unit_scratch_dir(scratch, "output", 0700);
    assert_int_equal(symlinkat("/etc/passwd", scratch->dir, "output/1.0"), 0);
    assert_int_equal(mkfifoat(scratch->dir, "output/1.1", 0600), 0);
    unit_scratch_dir(scratch, "output/1.2", 0700);
    read_it(scratch, 1, &seen);
    assert_int_equal(seen.streams[0].len + seen.torn + seen.gaps, 0);
}

/* --- no room --- */

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void what_found_no_room_is_counted_and_said(void **state)
{
    static const rlim_t rooms[] = { 0, 20, 48, 60, 100, 200 };
    struct unit_scratch *scratch = *state;

    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct output output = open_it(scratch, i);
        autofree char *bytes = pattern(300);
        autoseen struct seen seen = { 0 };
        struct error err;

        limit_file_size(rooms[i]);
        output_add(&output, OUTPUT_STDOUT, bytes, 20);
        output_add(&output, OUTPUT_STDOUT, bytes + 20, 280);
        limit_file_size(RLIM_INFINITY);
        assert_int_equal(output.seen.bytes[0], 300);

        uint64_t kept = output_kept(&output).bytes[0];

        assert_int_equal(kept, rooms[i] >= 76 ? 20 : 0);
        read_it(scratch, i, &seen);
        assert_int_equal(seen.streams[0].len, kept);
        assert_int_equal(seen.torn_times, 0);

        /* There is room again, and it is time to try. */
        output_add(&output, OUTPUT_STDERR, "at once", 7);
        output.again_us = 1;
        output_add(&output, OUTPUT_STDOUT, "later", 5);
        read_it(scratch, i, &seen);
        assert_int_equal(seen.streams[0].len, kept + 5);
        assert_int_equal(seen.left_out.bytes[0], 300 - kept);
        assert_int_equal(seen.left_out.bytes[1], 7);
        assert_int_equal(output_close(&output, &err), -1);
        assert_true(err.sys_errno == ENOSPC || err.sys_errno == EFBIG);
    }
}

/* --- following --- */

static void a_cursor_goes_on_when_there_is_more(void **state)
{
    struct unit_scratch *scratch = *state;
    autooutputcursor struct output_cursor cursor = OUTPUT_CURSOR_NONE;
    autoseen struct seen seen = { 0 };
    autofree char *bytes = pattern(3 * OUTPUT_SEGMENT);
    struct error err;
    size_t total = 0;

    assert_int_equal(output_cursor_open(scratch->dir, 4, &cursor, &err), 0);
    assert_int_equal(output_cursor_advance(&cursor, see, &seen, &err), 0);

    struct output output = open_it(scratch, 4);

    while (total < 3 * OUTPUT_SEGMENT) {
        size_t part = 3 * OUTPUT_SEGMENT - total < 77777 ? 3 * OUTPUT_SEGMENT - total : 77777;

        output_add(&output, OUTPUT_STDERR, bytes + total, part);
        total += part;
        assert_int_equal(output_cursor_advance(&cursor, see, &seen, &err), 0);
        assert_int_equal(seen.streams[1].len, total);
    }
    close_it(&output);
    assert_int_equal(output_cursor_end(&cursor, see, &seen, &err), 0);
    assert_memory_equal(seen.streams[1].data, bytes, total);
    assert_int_equal(seen.gaps + seen.torn_times, 0);
}

/* A frame that is being written is waited for. */
static void a_cursor_waits_for_the_rest_of_a_chunk(void **state)
{
    struct unit_scratch *scratch = *state;
    autooutputcursor struct output_cursor cursor = OUTPUT_CURSOR_NONE;
    autoseen struct seen seen = { 0 };
    struct output output = open_it(scratch, 1);
    struct error err;
    char bytes[512];

    output_add(&output, OUTPUT_STDOUT, "first", 5);
    output_add(&output, OUTPUT_STDOUT, "second", 6);
    close_it(&output);

    size_t len = read_file(scratch, "output/1.0", bytes, sizeof bytes);

    write_file(scratch, "output/1.0", bytes, 0);
    assert_int_equal(output_cursor_open(scratch->dir, 1, &cursor, &err), 0);
    for (size_t cut = 0; cut <= len; cut++) {
        write_file(scratch, "output/1.0", bytes, cut);
        assert_int_equal(output_cursor_advance(&cursor, see, &seen, &err), 0);
        assert_string_equal(text_string(&seen.streams[0]), cut < 61 ? "" : cut < len ? "first" : "firstsecond");
    }
    assert_int_equal(output_cursor_end(&cursor, see, &seen, &err), 0);
    assert_int_equal(seen.torn_times, 0);
}

static void segments_that_go_away_under_a_cursor_are_a_gap(void **state)
{
    struct unit_scratch *scratch = *state;
    autooutputcursor struct output_cursor cursor = OUTPUT_CURSOR_NONE;
    autoseen struct seen seen = { 0 };
    enum { TOTAL = 12 * OUTPUT_SEGMENT, EARLY = OUTPUT_SEGMENT + 500 };
    autofree char *bytes = pattern(TOTAL);
    struct output output = open_it(scratch, 4);
    struct error err;

    output_add(&output, OUTPUT_STDOUT, bytes, EARLY);
    assert_int_equal(output_cursor_open(scratch->dir, 4, &cursor, &err), 0);
    assert_int_equal(output_cursor_advance(&cursor, see, &seen, &err), 0);
    assert_int_equal(seen.streams[0].len, EARLY);
    output_add(&output, OUTPUT_STDOUT, bytes + EARLY, TOTAL - EARLY);
    assert_int_equal(output_cursor_advance(&cursor, see, &seen, &err), 0);

    /* The segment that was open was read to its end, though it has no name any more. */
    assert_true(seen.gaps == 1 && seen.torn_times == 0);
    assert_int_equal(seen.streams[0].len + seen.left_out.bytes[0], TOTAL);
    assert_memory_equal(seen.streams[0].data, bytes, 2 * OUTPUT_SEGMENT);

    size_t rest = seen.streams[0].len - 2 * OUTPUT_SEGMENT;

    assert_memory_equal(seen.streams[0].data + 2 * OUTPUT_SEGMENT, bytes + TOTAL - rest, rest);
    close_it(&output);
}

/* The reader has seen the end of a segment; before it looks for the next, the rest of this one and the next
 * come. */
static void what_comes_between_two_looks_is_not_lost(void **state)
{
    struct unit_scratch *scratch = *state;
    autooutputcursor struct output_cursor cursor = OUTPUT_CURSOR_NONE;
    autoseen struct seen seen = { 0 };
    enum { TOTAL = OUTPUT_SEGMENT + 1000, EARLY = 500 };
    autofree char *bytes = pattern(TOTAL);
    struct output output = open_it(scratch, 4);
    struct error err;

    output_add(&output, OUTPUT_STDOUT, bytes, EARLY);
    assert_int_equal(output_cursor_open(scratch->dir, 4, &cursor, &err), 0);
    writes_then = &output;
    written_then = bytes + EARLY;
    written_len = TOTAL - EARLY;
    assert_int_equal(output_cursor_advance(&cursor, see, &seen, &err), 0);
    assert_null(writes_then);
    assert_int_equal(seen.gaps + seen.torn_times, 0);
    assert_int_equal(seen.streams[0].len, TOTAL);
    assert_memory_equal(seen.streams[0].data, bytes, TOTAL);
    close_it(&output);
}

static void a_visitor_can_stop(void **state)
{
    struct unit_scratch *scratch = *state;
    struct output output = open_it(scratch, 1);
    autoseen struct seen seen = { .stop_after = 2 };
    struct error err;

    for (int i = 0; i < 5; i++)
        output_add(&output, OUTPUT_STDOUT, "x", 1);
    close_it(&output);
    assert_int_equal(output_read(scratch->dir, 1, see, &seen, &err), 5);
    assert_int_equal(seen.streams[0].len, 2);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(both_streams_come_back_exactly),
        WITH_SCRATCH(what_is_too_much_is_left_out_of_the_middle),
        WITH_SCRATCH(cut_at_any_byte_whole_chunks_come_back),
        WITH_SCRATCH(what_makes_no_sense_is_said_and_read_no_further),
        WITH_SCRATCH(what_is_no_file_is_not_read),
        WITH_SCRATCH(what_found_no_room_is_counted_and_said),
        WITH_SCRATCH(a_cursor_goes_on_when_there_is_more),
        WITH_SCRATCH(a_cursor_waits_for_the_rest_of_a_chunk),
        WITH_SCRATCH(segments_that_go_away_under_a_cursor_are_a_gap),
        WITH_SCRATCH(what_comes_between_two_looks_is_not_lost),
        WITH_SCRATCH(a_visitor_can_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
