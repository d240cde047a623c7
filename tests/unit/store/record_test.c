#include "keeper/record.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "abcdefghijklmnopqrst"

static const char whole[] =
    "{\"applied\":null,\"argv\":[\"make\",\"te\\u001bst\",{\"=hex\":\"ff\"}],\"base\":1879048192,"
    "\"created\":\"2026-01-31T12:00:00.000Z\",\"cwd\":\"/w/d\",\"ended\":null,\"exit_code\":3,\"format\":2,"
    "\"gids\":[\"0 1879048192 65536\"],\"helpers\":false,\"id\":\"" ID
    "\",\"idle_ms\":0,\"image\":\"host\",\"keeper\":42,"
    "\"keeper_started\":12345,\"labels\":{\"a\":\"1\",\"b\":\"\"},"
    "\"layers\":[{\"device\":\"65024\",\"hide\":[\".env\"],\"inode\":\"18446744073709551615\",\"layer\":1,"
    "\"source\":\"/w\",\"target\":\"/"
    "w\",\"why\":\"workspace\"}],\"mode\":\"cow\",\"name\":\"n\",\"no_checkpoints\":false,\"paused\":false,"
    "\"reason\":\"exited\",\"services\":{},"
    "\"settled\":[\"f\"],\"shifted\":true,\"since\":null,\"spec_hash\":\"00\",\"state\":\"stopped\",\"stays\":"
    "false,\"then\":"
    "null,\"ttl_ms\":0,\"uids\":[\"0 1879048192 "
    "65536\"],"
    "\"why\":null,\"workspace\":\"/w\",\"workspace_device\":\"65024\",\"workspace_inode\":\"7\"}\n";

/* The whole record with one part replaced. */
static char *with(const char *part, const char *other)
{
    const char *at = strstr(whole, part);

    assert_non_null(at);
    return text_format("%.*s%s%s", (int)(at - whole), whole, other, at + strlen(part));
}

static void a_record_is_read_and_written_the_same(void **state)
{
    autorecord struct record record = RECORD_NONE;
    autotext struct text json = TEXT_NONE;
    struct error err;
    struct ids ids;

    (void)state;
    if (record_read_json(whole, strlen(whole), "it", &record, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(record.id, ID);
    assert_string_equal(record.argv.items[2], "\xff");
    assert_int_equal(record.state, RECORD_STOPPED);
    assert_int_equal(record.exit_code, 3);
    assert_int_equal(record.ended.tv_sec, 0);
    assert_string_equal(record.labels.items[0], "a=1");
    assert_true(record.layers.items[0].inode == UINT64_MAX);
    record_get_ids(&record, &ids);
    assert_true(ids.shifted && ids.rows == 1 && ids.uids[0].outside == 1879048192 &&
                ids.gids[0].count == 65536);
    record_json(&record, &json);
    assert_string_equal(text_string(&json), whole);
}

static void an_older_record_is_read_too(void **state)
{
    autofree char *json = with("\"settled\":[\"f\"],", "");
    autorecord struct record record = RECORD_NONE;
    struct error err;

    (void)state;
    assert_int_equal(record_read_json(json, strlen(json), "it", &record, &err), 0);
    assert_int_equal(record.settled.len, 0);
}

static void a_workspace_that_moved_takes_what_is_in_it_along(void **state)
{
    autorecord struct record record = RECORD_NONE;
    struct error err;

    (void)state;
    assert_int_equal(record_read_json(whole, strlen(whole), "it", &record, &err), 0);
    record_move(&record, "/new/place");
    assert_string_equal(record.workspace, "/new/place");
    assert_string_equal(record.layers.items[0].source, "/new/place");
    assert_string_equal(record.layers.items[0].target, "/w");
}

static void what_is_no_record_is_one_clear_error(void **state)
{
    static const struct {
        const char *part, *other, *words;
    } cases[] = {
        { "\"format\":2", "\"format\":3", "has format '3', and this version of Cove knows only 2" },
        { "\"format\":2", "\"format\":\"1\\u001b\"", "has format '1\\x1b'" },
        { "\"format\":2,", "", "it has no `format`" },
        { "{\"applied\"", "[{\"applied\"", "this is no JSON" },
        { "\"cwd\":\"/w/d\",", "", "has no `cwd`" },
        { "\"cwd\":\"/w/d\"", "\"cwd\":null", "`cwd` must be text" },
        { "\"cwd\":\"/w/d\"", "\"cwd\":[]", "`cwd` must be text" },
        { "[\"make\"", "[1", "`argv` must be a list of texts" },
        { "\"keeper\":42", "\"keeper\":-42", "`keeper` must be a whole number" },
        { "\"keeper\":42", "\"keeper\":4.2", "`keeper` must be a whole number" },
        { "\"exit_code\":3", "\"exit_code\":\"3\"", "`exit_code` must be a whole number or null" },
        { "\"state\":\"stopped\"", "\"state\":\"gone\"", "`state` must be running, stopped or killed" },
        { "\"shifted\":true", "\"shifted\":1", "`shifted` must be true or false" },
        { "2026-01-31T", "2026-02-31T", "`created` must be a date" },
        { "\"ended\":null", "\"ended\":0", "`ended` must be a date or null" },
        { "{\"a\":\"1\"", "{\"a\":1", "`labels` must be a mapping of labels" },
        { "{\"a\":\"1\"", "{\"a b\":\"1\"", "`labels` must be a mapping of labels" },
        { "\"layer\":1,", "", "`layers` must be a list of layers" },
        { "\"inode\":\"18446744073709551615\"", "\"inode\":\"18446744073709551616\"",
          "`layers` must be a list" },
        { "\"workspace_inode\":\"7\"", "\"workspace_inode\":7",
          "`workspace_inode` must be a whole number as text" },
        { "\"name\":\"n\"", "\"name\":\"n\",\"name\":\"m\"", "this is no JSON" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        autofree char *json = with(cases[i].part, cases[i].other);
        struct record record;
        struct error err;

        if (record_read_json(json, strlen(json), "it", &record, &err) == 0)
            fail_msg("%s was taken", cases[i].other);
        assert_null(record.id); /* nothing is left of it */
        assert_contains(err.text, cases[i].words);
        assert_null(strchr(err.text, '\033'));
    }
}

static int read_here(const struct unit_scratch *scratch, struct error *err)
{
    autorecord struct record record = RECORD_NONE;

    return record_read(scratch->dir, ID, &record, err);
}

static void a_file_that_is_no_record_is_one_clear_error(void **state)
{
    struct unit_scratch *scratch = *state;
    char *huge = memory_resize(NULL, (2 << 20) + 1);
    struct error err;

    memset(huge, ' ', 2 << 20);
    huge[2 << 20] = '\0';
    assert_int_equal(read_here(scratch, &err), -1);
    assert_contains(err.text, "is no readable file");
    unit_scratch_file(scratch, "record.json", huge);
    free(huge);
    assert_int_equal(read_here(scratch, &err), -1);
    assert_contains(err.text, "record of abcdefghijkl: is no readable file of 1 MB");
    unit_scratch_file(scratch, "record.json", "");
    assert_int_equal(read_here(scratch, &err), -1);
    assert_contains(err.text, "this is no JSON");
    unit_scratch_file(scratch, "record.json", whole);
    assert_int_equal(read_here(scratch, &err), 0);

    autofree char *other = with(ID, "bbbbbbbbbbbbbbbbbbbb");

    unit_scratch_file(scratch, "record.json", other);
    assert_int_equal(read_here(scratch, &err), -1);
    assert_contains(err.text, "that of another sandbox");
}

static void nobody_waits_at_a_pipe_or_follows_a_link(void **state)
{
    struct unit_scratch *scratch = *state;
    struct error err;

    assert_int_equal(mkfifoat(scratch->dir, "record.json", 0600), 0);
    assert_int_equal(read_here(scratch, &err), -1);
    assert_int_equal(unlinkat(scratch->dir, "record.json", 0), 0);
    unit_scratch_file(scratch, "elsewhere", whole);
    assert_int_equal(symlinkat("elsewhere", scratch->dir, "record.json"), 0);
    assert_int_equal(read_here(scratch, &err), -1);
}

static void names_have_a_form(void **state)
{
    static const char *const right[] = { "a", "0", "fix-1.2_x",
                                         "a123456789012345678901234567890123456789012345678901234567890ab" };
    static const char *const wrong[] = {
        "",    "-a",  ".a",       "_a",  "A",
        "a b", "a/b", "\xc3\xa9", "a\n", "a123456789012345678901234567890123456789012345678901234567890abc"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        assert_true(record_is_name(right[i]));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(record_is_name(wrong[i]));
}

static void labels_are_unique_and_bounded(void **state)
{
    autorecord struct record record = RECORD_NONE;
    bool taken = true;

    (void)state;
    assert_true(record_add_label(&record.labels, "a=1"));
    assert_true(record_add_label(&record.labels, "b"));
    assert_true(record_add_label(&record.labels, "a=2=3"));
    assert_int_equal(record.labels.len, 2);
    assert_true(record_has_label(&record, "a") && record_has_label(&record, "a=2=3"));
    assert_true(record_has_label(&record, "b") && record_has_label(&record, "b="));
    assert_false(record_has_label(&record, "a=1") || record_has_label(&record, "c") ||
                 record_has_label(&record, "a="));
    assert_false(record_add_label(&record.labels, "=x") || record_add_label(&record.labels, "") ||
                 record_add_label(&record.labels, "a b=x"));
    for (int i = 0; i < 100; i++) {
        autofree char *label = text_format("l%d", i);

        taken = record_add_label(&record.labels, label) && taken;
    }
    assert_false(taken);
    assert_int_equal(record.labels.len, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_and_written_the_same),
        cmocka_unit_test(an_older_record_is_read_too),
        cmocka_unit_test(a_workspace_that_moved_takes_what_is_in_it_along),
        cmocka_unit_test(what_is_no_record_is_one_clear_error),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_record_is_one_clear_error, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_at_a_pipe_or_follows_a_link, unit_scratch_setup,
                                        unit_scratch_teardown),
        cmocka_unit_test(names_have_a_form),
        cmocka_unit_test(labels_are_unique_and_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
