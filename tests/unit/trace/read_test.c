#include "trace/read.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "tests/unit/trace/world.h"

enum { LINES = 6 };

/* The lines of a whole trace, put together in another order. */
struct pieces {
    struct text whole;
    const char *lines[LINES];
    size_t lens[LINES]; /* with the newline */
};

static void cut_up(const struct unit_scratch *scratch, struct pieces *pieces)
{
    world_make(scratch, LINES);
    world_bytes(scratch, &pieces->whole);

    const char *at = pieces->whole.data;

    for (size_t i = 0; i < LINES; i++) {
        pieces->lines[i] = at;
        pieces->lens[i] = strcspn(at, "\n") + 1;
        at += pieces->lens[i];
    }
}

/* `order` has a digit for each line, from 1. */
static void put_together(const struct unit_scratch *scratch, const struct pieces *pieces, const char *order)
{
    autotext struct text bytes = TEXT_NONE;

    for (; *order; order++)
        text_add_bytes(&bytes, pieces->lines[*order - '1'], pieces->lens[*order - '1']);
    world_replace(scratch, text_string(&bytes), bytes.len);
}

static void lines_that_are_missing_moved_or_doubled_are_found(void **state)
{
    static const struct {
        const char *order;
        enum trace_break how;
        uint64_t line;
        size_t verified; /* how many records from the first on */
    } cases[] = {
        { "123456", TRACE_WHOLE, 0, 6 },       { "23456", TRACE_MISSING, 1, 0 },
        { "12456", TRACE_MISSING, 3, 1 },      { "16", TRACE_MISSING, 2, 0 },
        { "124356", TRACE_MISSING, 3, 1 },     { "213456", TRACE_MISSING, 1, 0 },
        { "1123456", TRACE_DUPLICATED, 2, 0 }, { "123345", TRACE_DUPLICATED, 4, 2 },
        { "1234566", TRACE_DUPLICATED, 7, 5 }, { "1234563", TRACE_REORDERED, 7, 5 },
        { "12323456", TRACE_REORDERED, 4, 2 },
    };
    struct unit_scratch *scratch = *state;
    struct pieces pieces = { 0 };

    cut_up(scratch, &pieces);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        put_together(scratch, &pieces, cases[i].order);

        struct world_seen seen = world_read(scratch);
        autofree char *says = trace_found_says(&seen.found);

        if (seen.found.how != cases[i].how || seen.found.broken != cases[i].line)
            fail_msg("%s: %s at line %u", cases[i].order, trace_break_name(seen.found.how),
                     (unsigned)seen.found.broken);
        assert_int_equal(seen.len, strlen(cases[i].order));
        assert_int_equal(says != NULL, cases[i].how != TRACE_WHOLE);
        for (size_t n = 0; n < seen.len; n++)
            if (seen.verified[n] != (n < cases[i].verified))
                fail_msg("%s: record %zu is %sverified", cases[i].order, n + 1, seen.verified[n] ? "" : "not ");
    }
    text_free(&pieces.whole);
}

/* Which line a byte is in, from 1. */
static uint64_t line_of(const struct pieces *pieces, size_t at)
{
    uint64_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += pieces->whole.data[i] == '\n';
    return line;
}

/* Every byte but the last line's, which nothing comes after: of that the hash, kept elsewhere, is another one.
 */
static void any_byte_that_is_changed_is_found(void **state)
{
    static const char others[] = { 1, '\n' ^ 'x', 32, (char)0x80 };
    struct unit_scratch *scratch = *state;
    struct pieces pieces = { 0 };
    struct world_seen seen;
    char hash[SHA256_TEXT];

    cut_up(scratch, &pieces);
    memcpy(hash, world_read(scratch).found.hash, sizeof hash);
    for (size_t at = 0; at < pieces.whole.len; at++) {
        uint64_t line = line_of(&pieces, at);

        pieces.whole.data[at] ^= others[at % ARRAY_LEN(others)];
        world_replace(scratch, pieces.whole.data, pieces.whole.len);
        pieces.whole.data[at] ^= others[at % ARRAY_LEN(others)];
        seen = world_read(scratch);
        if (line == LINES)
            assert_string_not_equal(seen.found.hash, hash);
        if (line < LINES &&
            (seen.found.how == TRACE_WHOLE || seen.found.broken < line || seen.found.broken > line + 1))
            fail_msg("byte %zu of line %u: %s at line %u", at, (unsigned)line, trace_break_name(seen.found.how),
                     (unsigned)seen.found.broken);
        for (size_t n = 0; line < LINES && n < seen.len; n++)
            assert_true(!seen.verified[n] || seen.seqs[n] < line);
    }
    text_free(&pieces.whole);
}

static void what_is_cut_off_is_found_unless_whole_lines_are(void **state)
{
    struct unit_scratch *scratch = *state;
    struct pieces pieces = { 0 };
    struct world_seen seen;
    char hash[SHA256_TEXT];

    cut_up(scratch, &pieces);
    memcpy(hash, world_read(scratch).found.hash, sizeof hash);
    for (size_t len = 0; len < pieces.whole.len; len++) {
        bool whole = len == 0 || pieces.whole.data[len - 1] == '\n';

        world_replace(scratch, pieces.whole.data, len);
        seen = world_read(scratch);
        assert_int_equal(seen.found.how, whole ? TRACE_WHOLE : TRACE_TRUNCATED);
        assert_int_equal(seen.found.broken, whole ? 0 : line_of(&pieces, len));
        assert_string_not_equal(seen.found.hash, hash);
    }
    text_free(&pieces.whole);
}

static void what_is_no_record_is_found(void **state)
{
    static const struct {
        const char *line;
        enum trace_break how;
    } cases[] = {
        { "", TRACE_UNREADABLE },
        { "x", TRACE_UNREADABLE },
        { "{}", TRACE_UNREADABLE },
        { "[1]", TRACE_UNREADABLE },
        { "{\"data\":[],\"kind\":\"a\",\"mono_us\":1,\"prev\":\"" TRACE_NO_PREV
          "\",\"seq\":1,\"time\":\"2026-01-31T12:00:00.000Z\"}",
          TRACE_UNREADABLE },
        { "{\"data\":{},\"kind\":\"a\",\"mono_us\":1,\"prev\":\"00\",\"seq\":1,"
          "\"time\":\"2026-01-31T12:00:00.000Z\"}",
          TRACE_UNREADABLE },
        { "{\"data\":{},\"kind\":\"a\",\"mono_us\":1,\"prev\":\"" TRACE_NO_PREV
          "\",\"seq\":0,\"time\":\"2026-01-31T12:00:00.000Z\"}",
          TRACE_UNREADABLE },
        { "{\"data\":{},\"kind\":\"a\",\"mono_us\":1,\"prev\":\"" TRACE_NO_PREV
          "\",\"seq\":9007199254740992,\"time\":\"2026-01-31T12:00:00.000Z\"}",
          TRACE_UNREADABLE },
        { "{\"data\":{},\"kind\":\"a\",\"mono_us\":1,\"prev\":\"" TRACE_NO_PREV
          "\",\"seq\":1,\"time\":\"yesterday\"}",
          TRACE_UNREADABLE },
        { "{\"data\":{},\"kind\":\"a\",\"mono_us\":1,\"prev\":\"" TRACE_NO_PREV
          "\",\"seq\":1,\"time\":\"2026-01-31T12:00:00.000Z\"}",
          TRACE_REORDERED }, /* the first line, at the end of others */
    };
    struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autotext struct text bytes = TEXT_NONE;

        world_make(scratch, 2);
        world_bytes(scratch, &bytes);
        text_addf(&bytes, "%s\n", cases[i].line);
        world_replace(scratch, bytes.data, bytes.len);

        struct world_seen seen = world_read(scratch);

        if (seen.found.how != cases[i].how || seen.found.broken != 3)
            fail_msg("%s: %s at line %u", cases[i].line, trace_break_name(seen.found.how),
                     (unsigned)seen.found.broken);
        assert_true(seen.len >= 2);
    }
}

/* A gap vouches for what it was written behind, and for nothing else. */
static void a_gap_that_does_not_fit_hides_nothing(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text bytes = TEXT_NONE;
    struct trace trace = TRACE_NONE;
    struct error err;

    world_make(scratch, 2);
    world_bytes(scratch, &bytes);
    text_add(&bytes, "torn");
    world_replace(scratch, bytes.data, bytes.len);
    assert_int_equal(trace_open(scratch->dir, &trace, &err), 0);
    world_add(&trace, "after", 0);
    trace_close(&trace);
    assert_int_equal(world_read(scratch).found.how, TRACE_WHOLE);
    world_bytes(scratch, &bytes);

    size_t whole = (size_t)(strstr(bytes.data, "torn\n") - bytes.data);

    for (size_t at = 0; at < whole + 5; at++) {
        bytes.data[at] ^= 1;
        world_replace(scratch, bytes.data, bytes.len);
        bytes.data[at] ^= 1;
        assert_int_not_equal(world_read(scratch).found.how, TRACE_WHOLE);
    }
}

/* --- following --- */

static int count(void *owner, const struct trace_line *line, bool verified)
{
    uint64_t *last = owner;

    assert_true(verified);
    assert_int_equal(line->seq, *last + 1);
    *last = line->seq;
    return 0;
}

static void a_reader_goes_on_when_the_file_has_grown(void **state)
{
    struct unit_scratch *scratch = *state;
    autotracereader struct trace_reader reader = TRACE_READER_NONE;
    autotext struct text bytes = TEXT_NONE;
    struct error err;
    uint64_t last = 0;

    world_make(scratch, 4);
    world_bytes(scratch, &bytes);
    world_replace(scratch, "", 0);
    assert_int_equal(trace_reader_open(scratch->dir, &reader, &err), 0);
    for (size_t len = 0; len <= bytes.len; len++) {
        world_replace(scratch, bytes.data, len);
        assert_int_equal(trace_reader_advance(&reader, count, &last, &err), 0);
        assert_int_equal(last, reader.found.lines);
    }
    trace_reader_end(&reader);
    assert_int_equal(last, 4);
    assert_int_equal(reader.found.how, TRACE_WHOLE);
}

static int stop(void *owner, const struct trace_line *line, bool verified)
{
    (void)owner, (void)verified;
    return line->seq == 2 ? 7 : 0;
}

static void a_visitor_can_stop_and_a_missing_trace_is_told_apart(void **state)
{
    struct unit_scratch *scratch = *state;
    struct trace_found found;
    struct error err;

    assert_int_equal(trace_read(scratch->dir, stop, NULL, &found, &err), -1);
    assert_int_equal(err.kind, ERROR_MISSING);
    world_make(scratch, 5);
    assert_int_equal(trace_read(scratch->dir, stop, NULL, &found, &err), 7);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(lines_that_are_missing_moved_or_doubled_are_found),
        WITH_SCRATCH(any_byte_that_is_changed_is_found),
        WITH_SCRATCH(what_is_cut_off_is_found_unless_whole_lines_are),
        WITH_SCRATCH(what_is_no_record_is_found),
        WITH_SCRATCH(a_gap_that_does_not_fit_hides_nothing),
        WITH_SCRATCH(a_reader_goes_on_when_the_file_has_grown),
        WITH_SCRATCH(a_visitor_can_stop_and_a_missing_trace_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
