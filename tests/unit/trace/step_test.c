#include "trace/step.h"

#include "base/error.h"
#include "base/own.h"
#include "tests/unit/trace/world.h"

#include <stdio.h>
#include <stdlib.h>

static struct trace open_it(const struct unit_scratch *scratch)
{
    struct trace trace = TRACE_NONE;
    struct error err;

    if (trace_open(scratch->dir, &trace, &err) < 0)
        fail_msg("%s", err.text);
    return trace;
}

static struct steps read_it(const struct unit_scratch *scratch, bool held)
{
    struct steps steps = STEPS_NONE;
    struct error err;

    if (steps_read(scratch->dir, held, &steps, &err) < 0)
        fail_msg("%s", err.text);
    return steps;
}

static void start(struct trace *trace, uint64_t number)
{
    char *argv[] = { (char[]){ "make" }, (char[]){ "te\x1bst" }, (char[]){ "\xff" }, NULL };
    autostep struct step step = STEP_NONE;
    struct error err;

    step.number = number;
    step_set_argv(&step, argv);
    step.cwd = text_copy("/work");
    step.user = text_copy("1000");
    step_add_variable(&step, "PATH");
    step_add_variable(&step, "HOME");
    step.tty = true;
    if (step_write_started(trace, &step, &err) < 0)
        fail_msg("%s", err.text);
}

static void end(struct trace *trace, uint64_t number)
{
    autostep struct step step = STEP_NONE;
    struct error err;

    step.number = number;
    step.end.exit = number % 256;
    step.end.reason = text_copy("exited");
    step.end.wall_us = 1500;
    step.end.user_us = 70;
    step.end.stdout_bytes = 10;
    step.end.stdout_kept = 9;
    if (step_write_ended(trace, &step, &err) < 0)
        fail_msg("%s", err.text);
}

static void change(struct trace *trace, uint64_t number)
{
    autostep struct step step = STEP_NONE;
    struct error err;

    step.number = number;
    step.end.checkpoint = text_copy("c1");
    step_add_file(&step, STEP_ADDED, "a\nb");
    step_add_file(&step, STEP_REMOVED, "\xfe");
    if (step_write_changed(trace, &step, &err) < 0)
        fail_msg("%s", err.text);
}

static void a_step_comes_back_as_it_was_written(void **state)
{
    struct unit_scratch *scratch = *state;
    struct trace trace = open_it(scratch);

    start(&trace, 1);
    end(&trace, 1);
    change(&trace, 1);
    trace_close(&trace);

    autosteps struct steps steps = read_it(scratch, false);

    assert_int_equal(steps.len, 1);
    assert_int_equal(steps.odd, 0);

    const struct step *step = steps_find(&steps, 1);

    assert_non_null(step);
    assert_int_equal(step->argv.len, 3);
    assert_string_equal(step->argv.items[1], "te\x1bst");
    assert_string_equal(step->argv.items[2], "\xff");
    assert_string_equal(step->cwd, "/work");
    assert_string_equal(step->user, "1000");
    assert_string_equal(step->environment.items[1], "HOME");
    assert_true(step->tty && !step->detached && step->verified);
    assert_int_equal(step->state, STEP_IS_OVER);
    assert_int_equal(step->end.exit, 1);
    assert_true(step->end.signal == MEMBER_NO_NUMBER && step->end.peak_kib == MEMBER_NO_NUMBER);
    assert_string_equal(step->end.reason, "exited");
    assert_null(step->end.limit);
    assert_int_equal(step->end.wall_us, 1500);
    assert_int_equal(step->end.user_us, 70);
    assert_int_equal(step->end.stdout_bytes, 10);
    assert_int_equal(step->end.stdout_kept, 9);
    assert_int_equal(step->end.added, 1);
    assert_int_equal(step->end.removed, 1);
    assert_int_equal(step->end.files.len, 2);
    assert_int_equal(step->end.files.items[1].how, STEP_REMOVED);
    assert_string_equal(step->end.files.items[1].path, "\xfe");
    assert_string_equal(step->end.checkpoint, "c1");
    assert_null(step->end.no_checkpoint);
    assert_true(step->started.tv_sec > 1600000000 && step->ended.tv_sec >= step->started.tv_sec);

    autonode struct node node = NODE_NONE;
    autotext struct text json = TEXT_NONE;

    step_node(step, &node);
    node_write_json(&node, &json);
    assert_contains(json.data, "\"argv\":[\"make\",\"te\\u001bst\",{\"=hex\":\"ff\"}]");
    assert_contains(json.data, "\"state\":\"over\"");
    assert_null(steps_find(&steps, 2));
}

/* s1: step 1 starts, e1: it ends, c1: what it changed, k: a keeper begins.  States by number: r running, o
 * over, l lost, - none. */
static void steps_that_never_ended_are_lost(void **state)
{
    static const struct {
        const char *events, *held, *not_held;
        uint64_t odd;
    } cases[] = {
        { "", "---", "---", 0 },       { "s1", "r--", "l--", 0 },
        { "s1s2e2", "ro-", "lo-", 0 }, { "s1s2s3e3e1e2", "ooo", "ooo", 0 },
        { "s1ks2", "lr-", "ll-", 0 },  { "s1ks2e2", "lo-", "lo-", 0 },
        { "s1ke1", "l--", "l--", 1 },  { "e1", "---", "---", 1 },
        { "s1e1e1", "o--", "o--", 1 }, { "s2s1", "-r-", "-l-", 1 },
        { "s1s1", "r--", "l--", 1 },   { "s1x2y3e1", "o--", "o--", 2 },
        { "s1e1c1", "o--", "o--", 0 }, { "s1c1e1c1c1", "o--", "o--", 2 },
    };
    static const char letters[] = { [STEP_IS_RUNNING] = 'r', [STEP_IS_OVER] = 'o', [STEP_IS_LOST] = 'l' };
    struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        world_make(scratch, 0);

        struct trace trace = open_it(scratch);

        for (const char *at = cases[i].events; *at; at += *at == 'k' ? 1 : 2) {
            struct error err;
            uint64_t number = (uint64_t)(at[1] - '0');

            if (*at == 's')
                start(&trace, number);
            else if (*at == 'e')
                end(&trace, number);
            else if (*at == 'c')
                change(&trace, number);
            else
                assert_int_equal(trace_add(&trace,
                                           *at == 'k'   ? STEP_KEEPER
                                           : *at == 'x' ? STEP_STARTED
                                                        : STEP_ENDED,
                                           NULL, &err),
                                 0);
        }
        trace_close(&trace);
        for (int held = 0; held < 2; held++) {
            autosteps struct steps steps = read_it(scratch, held);

            for (uint64_t n = 1; n <= 3; n++) {
                const struct step *step = steps_find(&steps, n);
                char letter = (char)(step ? letters[step->state] : '-');

                if (letter != (held ? cases[i].held : cases[i].not_held)[n - 1])
                    fail_msg("%s: step %u is %c", cases[i].events, (unsigned)n, letter);
            }
            assert_int_equal(steps.odd, cases[i].odd);
        }
    }
}

static void a_step_after_a_break_is_not_verified(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text bytes = TEXT_NONE;
    struct trace trace = open_it(scratch);

    for (uint64_t i = 1; i <= 3; i++) {
        start(&trace, i);
        end(&trace, i);
    }
    trace_close(&trace);
    world_bytes(scratch, &bytes);

    char *exit = strstr(bytes.data, "\"exit\":2");

    assert_non_null(exit);
    exit[7] = '0';
    world_replace(scratch, bytes.data, bytes.len);

    autosteps struct steps steps = read_it(scratch, false);

    assert_int_equal(steps.found.how, TRACE_CHANGED);
    assert_int_equal(steps.len, 3);
    assert_true(steps.items[0].verified && !steps.items[1].verified && !steps.items[2].verified);
    assert_int_equal(steps.items[1].end.exit, 0);
}

/* Whatever the bytes, a line of a step has room in the trace. */
static void the_worst_that_a_step_can_be_has_room(void **state)
{
    static const char *const worst[] = { "\x01", "\xff", "", "x", "\xc3\xbc" };
    enum { WORDS = 3000 };
    struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(worst); i++) {
        autostep struct step step = STEP_NONE;
        autotext struct text word = TEXT_NONE;
        autofree char **argv = memory_zero((WORDS + 1) * sizeof *argv);
        struct trace trace = open_it(scratch);
        struct error err;
        char empty[] = "";

        for (size_t n = 0; n < 200; n++)
            text_add(&word, worst[i]);
        for (size_t n = 0; n < WORDS; n++)
            argv[n] = word.data ? word.data : empty;
        step.number = i + 1;
        step_set_argv(&step, argv);
        step.end.reason = text_copy("exited");
        for (size_t n = 0; n < WORDS; n++) {
            step_add_variable(&step, text_string(&word));
            step_add_file(&step, STEP_CHANGED, text_string(&word));
        }
        if (step_write_started(&trace, &step, &err) < 0 || step_write_ended(&trace, &step, &err) < 0 ||
            step_write_changed(&trace, &step, &err) < 0)
            fail_msg("%zu: %s", i, err.text);
        assert_int_equal(step.end.changed, WORDS);
        assert_int_equal(step.end.files.len + step.end.files_left_out, WORDS);
        assert_int_equal(step.environment.len + step.environment_left_out, WORDS);
        if (word.len == 0)
            assert_int_equal(step.argv_left_out, 0);
        else
            assert_true(step.argv_left_out > 0);
        trace_close(&trace);
    }
}

static void a_word_that_does_not_fit_is_cut_between_letters(void **state)
{
    autostep struct step step = STEP_NONE;
    autotext struct text word = TEXT_NONE;
    char *argv[] = { NULL, (char[]){ "behind" }, NULL };

    (void)state;
    text_add(&word, "x");
    while (word.len < STEP_ARGV_MAX)
        text_add(&word, "\xc3\xbc");
    argv[0] = word.data;
    step_set_argv(&step, argv);
    assert_int_equal(step.argv.len, 1);
    assert_true(text_is_utf8(step.argv.items[0]));
    assert_int_equal(strlen(step.argv.items[0]) + step.argv_left_out, word.len + strlen("behind") + 1);
}

static struct step changed_of(uint64_t number)
{
    struct step step = STEP_NONE;

    step.number = number;
    step_add_file(&step, STEP_ADDED, "/w/a");
    step_add_file(&step, STEP_REMOVED, "/w/b\xff");
    step_add_file(&step, STEP_CHANGED, "/w/b\xff");
    step.end.checkpoint = text_copy("aaaaaaaaaaaaaaaaaaaa");
    return step;
}

static struct step_hashes hashes_of(uint64_t number)
{
    struct step_hashes hashes = { .number = number, .left_out = 1 };

    *array_add(&hashes.files) =
        (struct step_hash){ .path = text_copy("/w/b\xff"), .sha256 = text_copy("00ff"), .bytes = 7 };
    return hashes;
}

/* It comes after lines of later steps, and hashes only after the files. */
static void what_was_counted_later_is_joined_with_its_step(void **state)
{
    const struct unit_scratch *scratch = *state;
    struct trace trace = open_it(scratch);
    autostep struct step step = changed_of(1), again = STEP_NONE;
    struct step_hashes hashes = hashes_of(1), early = hashes_of(2), read = STEP_HASHES_NONE;
    autonode struct node node = NODE_NONE, other = NODE_NONE;
    struct error err;

    step_changed_node(&step, &node);
    assert_true(step_changed_read(&node, &again));
    assert_int_equal(again.end.files.len, 3);
    step_hashes_node(&hashes, &other);
    assert_true(step_hashes_read(&other, &read) && !step_hashes_read(&node, &early));
    assert_true(read.left_out == 1 && read.files.items[0].bytes == 7);
    step_hashes_free(&read);
    start(&trace, 1);
    end(&trace, 1);
    start(&trace, 2);
    end(&trace, 2);
    assert_int_equal(step_write_changed(&trace, &step, &err), 0);
    assert_int_equal(step_write_hashes(&trace, &hashes, &err), 0);
    step_hashes_free(&early);
    early = hashes_of(2);
    assert_int_equal(step_write_hashes(&trace, &early, &err), 0);
    step_hashes_free(&early);
    step_hashes_free(&hashes);
    trace_close(&trace);

    autosteps struct steps steps = read_it(scratch, true);
    const struct step_end *first = &steps.items[0].end, *second = &steps.items[1].end;

    assert_int_equal(steps.odd, 1);
    assert_true(steps.items[0].looked && first->added == 1 && first->hashes_left_out == 1);
    assert_null(first->files.items[0].sha256);
    assert_null(first->files.items[1].sha256); /* what was removed has none */
    assert_string_equal(first->files.items[2].sha256, "00ff");
    assert_true(!steps.items[1].looked && second->added == MEMBER_NO_NUMBER &&
                second->hashes_left_out == MEMBER_NO_NUMBER);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(a_step_comes_back_as_it_was_written),
        WITH_SCRATCH(steps_that_never_ended_are_lost),
        WITH_SCRATCH(a_step_after_a_break_is_not_verified),
        WITH_SCRATCH(the_worst_that_a_step_can_be_has_room),
        WITH_SCRATCH(what_was_counted_later_is_joined_with_its_step),
        cmocka_unit_test(a_word_that_does_not_fit_is_cut_between_letters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
