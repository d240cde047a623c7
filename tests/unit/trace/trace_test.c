#include "trace/trace.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "tests/unit/trace/world.h"
#include "trace/line.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The linker puts this between the code and libc: what opening costs is what it reads. */
static uint64_t bytes_read;
ssize_t __real_pread(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at);
ssize_t __real_pread64(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t at);

ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
    ssize_t got = __real_pread(fd, to, len, at);

    bytes_read += got > 0 ? (uint64_t)got : 0;
    return got;
}

ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t at)
{
    ssize_t got = __real_pread64(fd, to, len, at);

    bytes_read += got > 0 ? (uint64_t)got : 0;
    return got;
}

static struct trace open_it(const struct unit_scratch *scratch)
{
    struct trace trace = TRACE_NONE;
    struct error err;

    if (trace_open(scratch->dir, &trace, &err) < 0)
        fail_msg("%s", err.text);
    return trace;
}

static void a_trace_is_made_private_and_its_lines_have_one_form(void **state)
{
    struct unit_scratch *scratch = *state;
    struct trace trace = open_it(scratch);
    autotext struct text bytes = TEXT_NONE;
    autotraceline struct trace_line line = TRACE_LINE_NONE;
    struct stat status;
    struct error err;

    assert_int_equal(trace.seq, 0);
    assert_string_equal(trace.hash, TRACE_NO_PREV);
    assert_int_equal(trace_add(&trace, "sandbox.created", NULL, &err), 0);
    assert_int_equal(trace_sync(&trace, &err), 0);
    assert_int_equal(fstat(trace.fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    world_bytes(scratch, &bytes);
    assert_int_equal(bytes.data[bytes.len - 1], '\n');
    assert_true(trace_line_read(bytes.data, bytes.len - 1, &line));
    assert_int_equal(line.seq, 1);
    assert_string_equal(line.prev, TRACE_NO_PREV);
    assert_string_equal(line.kind, "sandbox.created");
    assert_true(line.mono_us > 0 && line.time.tv_sec > 1600000000);
    assert_memory_equal(bytes.data, "{\"data\":{},\"kind\":\"sandbox.created\",\"mono_us\":", 44);

    autotext struct text again = TEXT_NONE;

    trace_line_write(&line, &again);
    assert_int_equal(again.len, bytes.len - 1);
    assert_memory_equal(again.data, bytes.data, again.len);
    trace_close(&trace);
}

static void bytes_that_are_no_utf8_survive(void **state)
{
    struct unit_scratch *scratch = *state;
    struct trace trace = open_it(scratch);
    autonode struct node data = { .kind = NODE_MAP };
    autotext struct text bytes = TEXT_NONE;
    autotraceline struct trace_line line = TRACE_LINE_NONE;
    struct error err;

    node_add(&data, "b", NODE_STRING, "\xff\x1b\n");
    node_add(&data, "a", NODE_STRING, "\n\"\\\x7f\xc3\xbc");
    assert_int_equal(trace_add(&trace, "test", &data, &err), 0);
    assert_int_equal(data.len, 2);
    world_bytes(scratch, &bytes);
    assert_int_equal(strlen(bytes.data), bytes.len);
    assert_ptr_equal(strchr(bytes.data, '\n'), bytes.data + bytes.len - 1);
    assert_true(trace_line_read(bytes.data, bytes.len - 1, &line));
    assert_string_equal(node_get(&line.data, "b")->text, "\xff\x1b\n");
    assert_string_equal(node_get(&line.data, "a")->text, "\n\"\\\x7f\xc3\xbc");
    trace_close(&trace);
}

static void a_trace_goes_on_where_it_was(void **state)
{
    struct unit_scratch *scratch = *state;

    for (unsigned i = 1; i <= 5; i++) {
        struct trace trace = open_it(scratch);

        assert_int_equal(trace.seq, i - 1);
        world_add(&trace, "test", i);
        trace_close(&trace);
    }

    struct world_seen seen = world_read(scratch);

    assert_int_equal(seen.found.how, TRACE_WHOLE);
    assert_int_equal(seen.len, 5);

    struct trace trace = open_it(scratch);

    assert_int_equal(seen.found.seq, trace.seq);
    assert_string_equal(seen.found.hash, trace.hash);
    trace_close(&trace);
}

static void what_is_no_file_is_refused(void **state)
{
    struct unit_scratch *scratch = *state;
    struct trace trace;
    struct error err;

    assert_int_equal(symlinkat("elsewhere", scratch->dir, TRACE_FILE), 0);
    assert_int_equal(trace_open(scratch->dir, &trace, &err), -1);
    assert_int_equal(faccessat(scratch->dir, "elsewhere", F_OK, 0), -1);
    assert_int_equal(unlinkat(scratch->dir, TRACE_FILE, 0), 0);
    assert_int_equal(mkfifoat(scratch->dir, TRACE_FILE, 0600), 0);
    assert_int_equal(trace_open(scratch->dir, &trace, &err), -1);
    assert_int_equal(err.kind, ERROR_INVALID);
}

/* --- torn ends --- */

/* Goes on after whatever is there, and reads: nothing is broken, and no whole record is lost. */
static void go_on(const struct unit_scratch *scratch, size_t at, unsigned whole, size_t torn)
{
    struct trace trace = open_it(scratch);

    world_add(&trace, "after", 0);
    trace_close(&trace);

    struct world_seen seen = world_read(scratch);

    if (seen.found.how != TRACE_WHOLE || seen.found.torn != torn)
        fail_msg("cut at %zu: %s at line %u, %u bytes torn", at, trace_break_name(seen.found.how),
                 (unsigned)seen.found.broken, (unsigned)seen.found.torn);
    assert_int_equal(seen.len, whole + (torn > 0) + 1);
    for (size_t i = 0; i < seen.len; i++) {
        assert_int_equal(seen.seqs[i], i + 1);
        assert_true(seen.verified[i]);
    }
    assert_string_equal(seen.kinds[seen.len - 1], "after");
    if (torn)
        assert_string_equal(seen.kinds[whole], TRACE_GAP);
}

/* How many lines are whole in the first `len` bytes, a last one without its newline as well, and how many bytes
 * are behind them. */
static unsigned count_whole(const struct text *bytes, size_t len, size_t *torn)
{
    unsigned whole = 0;
    size_t begin = 0;

    for (size_t i = 0; i < len; i++)
        if (bytes->data[i] == '\n') {
            whole++;
            begin = i + 1;
        }
    *torn = len - begin;
    if (*torn && bytes->data[len] == '\n') {
        *torn = 0;
        whole++;
    }
    return whole;
}

static void cut_at_any_byte_a_trace_goes_on_and_says_so(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text bytes = TEXT_NONE;

    world_make(scratch, 3);
    world_bytes(scratch, &bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        size_t torn;
        unsigned whole = count_whole(&bytes, len, &torn);

        world_replace(scratch, bytes.data, len);
        go_on(scratch, len, whole, torn);
    }
}

/* A second crash while the first one was written down. */
static void cut_again_within_the_gap_it_goes_on_too(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text bytes = TEXT_NONE;

    world_make(scratch, 2);
    world_bytes(scratch, &bytes);

    size_t first = bytes.len - 40, before = strcspn(bytes.data, "\n") + 1;

    world_replace(scratch, bytes.data, first);

    struct trace trace = open_it(scratch);

    trace_close(&trace);
    world_bytes(scratch, &bytes);
    for (size_t len = first; len < bytes.len - 1; len++) {
        /* A newline alone at the end belongs to no line. */
        size_t torn = len - before - (len == first + 1);

        world_replace(scratch, bytes.data, len);
        go_on(scratch, len, 1, torn);
    }
}

static void what_a_power_cut_leaves_is_counted_and_covered(void **state)
{
    static const struct {
        size_t len;
        char byte;
    } tails[] = { { 1, 0 },       { 4096, 0 },       { 100000, 0 },   { 3 << 20, 0 },  { 1, '\n' },
                  { 5000, '\n' }, { 3 << 20, '\n' }, { 200000, 'x' }, { 3 << 20, '{' } };
    struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        autotext struct text bytes = TEXT_NONE;

        world_make(scratch, 2);
        world_bytes(scratch, &bytes);

        size_t whole = bytes.len;

        for (size_t n = 0; n < tails[i].len; n++)
            text_add_bytes(&bytes, &tails[i].byte, 1);
        world_replace(scratch, bytes.data, bytes.len);

        struct trace trace = open_it(scratch);

        world_add(&trace, "after", 0);
        trace_close(&trace);

        struct world_seen seen = world_read(scratch);

        assert_int_equal(seen.found.how, TRACE_WHOLE);
        assert_int_equal(seen.found.torn, tails[i].len - (tails[i].byte == '\n'));
        assert_int_equal(seen.len, 4);

        /* And nobody may change it afterwards. */
        world_bytes(scratch, &bytes);
        bytes.data[whole + tails[i].len / 2] = 'y';
        world_replace(scratch, bytes.data, bytes.len);
        seen = world_read(scratch);
        assert_int_not_equal(seen.found.how, TRACE_WHOLE);
        assert_false(seen.verified[3]);
    }
}

/* --- no room --- */

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_line_that_has_no_room_leaves_nothing_behind(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text before = TEXT_NONE, after = TEXT_NONE;
    struct trace trace = open_it(scratch);
    struct error err;

    signal(SIGXFSZ, SIG_IGN);
    world_add(&trace, "test", 1);
    world_bytes(scratch, &before);
    for (size_t room = 0; room < before.len; room += 7) {
        limit_file_size(before.len + room);

        int result = trace_add(&trace, "test", NULL, &err);

        limit_file_size(RLIM_INFINITY);
        assert_int_equal(result, -1);
        assert_true(err.kind == ERROR_SYSTEM && (err.sys_errno == ENOSPC || err.sys_errno == EFBIG));
        world_bytes(scratch, &after);
        assert_int_equal(after.len, before.len);
        assert_memory_equal(after.data, before.data, before.len);
        if (room + 20 > before.len)
            break;
    }
    world_add(&trace, "test", 2);
    trace_close(&trace);

    struct world_seen seen = world_read(scratch);

    assert_int_equal(seen.found.how, TRACE_WHOLE);
    assert_int_equal(seen.len, 2);
}

static void a_gap_that_has_no_room_leaves_the_torn_end_as_it_is(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text before = TEXT_NONE, after = TEXT_NONE;
    struct trace trace;
    struct error err;

    signal(SIGXFSZ, SIG_IGN);
    world_make(scratch, 2);
    world_bytes(scratch, &before);
    world_replace(scratch, before.data, before.len - 30);
    limit_file_size(before.len);

    int result = trace_open(scratch->dir, &trace, &err);

    limit_file_size(RLIM_INFINITY);
    assert_int_equal(result, -1);
    assert_contains(err.text, "torn end of the trace");
    world_bytes(scratch, &after);
    assert_int_equal(after.len, before.len - 30);
    assert_memory_equal(after.data, before.data, after.len);
}

static void a_line_that_is_too_long_is_refused(void **state)
{
    struct unit_scratch *scratch = *state;
    autonode struct node data = { .kind = NODE_MAP };
    autotext struct text long_text = TEXT_NONE;
    struct trace trace = open_it(scratch);
    struct error err;

    while (long_text.len < TRACE_LINE_MAX)
        text_add(&long_text, "0123456789abcdef");
    node_add(&data, "text", NODE_STRING, long_text.data);
    assert_int_equal(trace_add(&trace, "test", &data, &err), -1);
    assert_int_equal(err.kind, ERROR_REFUSED);

    /* The longest that there is, read back by its own writer. */
    text_cut(&long_text, TRACE_LINE_MAX - 200);
    node_get(&data, "text")->text[TRACE_LINE_MAX - 200] = '\0';
    assert_int_equal(trace_add(&trace, "test", &data, &err), 0);
    trace_close(&trace);
    trace = open_it(scratch);
    assert_int_equal(trace.seq, 1);
    world_add(&trace, "test", 2);
    trace_close(&trace);
    assert_int_equal(world_read(scratch).found.how, TRACE_WHOLE);
}

/* --- cost --- */

static void opening_reads_as_much_of_a_long_trace_as_of_a_short_one(void **state)
{
    enum { LONG = 100000 };
    struct unit_scratch *scratch = *state;
    struct trace trace = open_it(scratch);
    uint64_t cost[2];

    for (unsigned i = 1; i <= LONG; i++) {
        world_add(&trace, "step.ended", i);
        if (i != 1000 && i != LONG)
            continue;

        struct trace again;

        bytes_read = 0;
        again = open_it(scratch);
        cost[i == LONG] = bytes_read;
        assert_int_equal(again.seq, i);
        assert_string_equal(again.hash, trace.hash);
        trace_close(&again);
    }
    assert_true(trace.size > 10 << 20);
    assert_true(cost[0] > 0 && cost[1] < 2 * cost[0]);
    assert_true(cost[1] < 128 << 10);
    trace_close(&trace);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(a_trace_is_made_private_and_its_lines_have_one_form),
        WITH_SCRATCH(bytes_that_are_no_utf8_survive),
        WITH_SCRATCH(a_trace_goes_on_where_it_was),
        WITH_SCRATCH(what_is_no_file_is_refused),
        WITH_SCRATCH(cut_at_any_byte_a_trace_goes_on_and_says_so),
        WITH_SCRATCH(cut_again_within_the_gap_it_goes_on_too),
        WITH_SCRATCH(what_a_power_cut_leaves_is_counted_and_covered),
        WITH_SCRATCH(a_line_that_has_no_room_leaves_nothing_behind),
        WITH_SCRATCH(a_gap_that_has_no_room_leaves_the_torn_end_as_it_is),
        WITH_SCRATCH(a_line_that_is_too_long_is_refused),
        WITH_SCRATCH(opening_reads_as_much_of_a_long_trace_as_of_a_short_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
