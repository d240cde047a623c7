#include "keeper/report.h"

#include "base/array.h"
#include "base/delivery.h"
#include "base/error.h"
#include "base/map.h"
#include "base/own.h"
#include "base/text.h"
#include "keeper/explain.h"
#include "keeper/result.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const argv[] = { "make", "te\033st", NULL };
static struct finding finding = { "read", (char[]){ "/a\n" }, (char[]){ "absent" }, (char[]){ "--read /a" },
                                  2 };
static const struct findings findings = { &finding, 1, 1, 0 };
static const struct result ended = { .exit_code = 3,
                                     .wall_us = 1234567,
                                     .usage = { .user_us = 900000, .peak_kib = 2048 } };

static struct report sample(void)
{
    return (struct report){ .id = "abc",
                            .argv = argv,
                            .started = { 1700000000, 5000000 },
                            .ended = { 1700000001, 0 },
                            .result = &ended,
                            .changes = "were discarded (--rm)",
                            .findings = &findings };
}

static void json_has_it_all_in_a_fixed_order(void **state)
{
    autotext struct text text = TEXT_NONE;
    struct report report = sample();

    (void)state;
    report_json(&report, &text);
    assert_string_equal(
        text_string(&text),
        "{\"id\":\"abc\",\"spec_hash\":null,\"argv\":[\"make\",\"te\\u001bst\"],\"workspace\":null,\"workspace_"
        "mode\":null,\"image\":"
        "null,"
        "\"user\":null,\"started\":\"2023-11-14T22:13:20.005Z\",\"ended\":\"2023-11-14T22:13:21.000Z\","
        "\"exit_code\":3,\"reason\":\"exited\",\"signal\":0,\"timed_out\":false,\"core\":false,\"error\":null,"
        "\"usage\":{\"wall_us\":1234567,\"user_us\":900000,\"system_us\":0,\"cpu_from\":null,"
        "\"peak_kib\":2048,\"memory_from\":null,\"written_bytes\":0,\"processes\":null,\"processes_from\":null}"
        ","
        "\"limit\":null,\"limits\":{},"
        "\"changes\":\"were discarded "
        "(--rm)\",\"set_aside\":[],\"not_set_aside\":[],\"kept\":false,\"next\":[],\"enforced\":[],\"network\":"
        "{\"lacking\":null,\"record\":null,\"replay\":null,\"audit_policy\":null,\"requests\":[],\"requests_"
        "left_out\":0,\"cached\":0,\"budget\":{"
        "}},"
        "\"findings\":[{\"how\":\"read\","
        "\"subject\":\"/"
        "a\\n\","
        "\"why\":\"absent\",\"grant\":\"--read /a\",\"count\":2}],\"findings_left_out\":0}\n");
}

static int write_to(const struct report *report, const char *path, struct error *err)
{
    autodelivery struct delivery place = DELIVERY_NONE;

    return delivery_open(path, &place, err) < 0 ? -1 : report_write(report, &place, err);
}

static void the_file_is_whole_and_private(void **state)
{
    char dir[] = "/tmp/report-test-XXXXXX";
    struct report report = sample();
    struct error err;
    struct stat info;

    (void)state;
    assert_non_null(mkdtemp(dir));
    autofree char *path = text_format("%s/report.json", dir);
    assert_int_equal(write_to(&report, path, &err), 0);
    assert_int_equal(write_to(&report, path, &err), 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_true(info.st_size > 100);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
    assert_int_equal(write_to(&report, path, &err), -1);
    assert_contains(err.text, "No such file");
}

static void a_device_is_written_to_not_replaced(void **state)
{
    struct report report = sample();
    struct error err;
    struct stat info;

    (void)state;
    assert_int_equal(write_to(&report, "/dev/null", &err), 0);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(write_to(&report, "/dev/full", &err), -1);
}

/* By who runs between the two. */
static void what_is_put_in_its_way_leads_it_nowhere(void **state)
{
    char dir[] = "/tmp/report-test-XXXXXX";
    struct report report = sample();
    autodelivery struct delivery place = DELIVERY_NONE;
    struct error err;
    struct stat info;

    (void)state;
    assert_non_null(mkdtemp(dir));
    autofree char *first = text_format("%s/first", dir), *second = text_format("%s/second", dir),
                  *link = text_format("%s/link", dir), *path = text_format("%s/link/report", dir),
                  *there = text_format("%s/first/report", dir), *mine = text_format("%s/mine", dir);

    assert_true(mkdir(first, 0700) == 0 && mkdir(second, 0700) == 0 && symlink("first", link) == 0);
    assert_int_equal(delivery_open(path, &place, &err), 0);
    assert_true(unlink(link) == 0 && symlink("second", link) == 0 && symlink("../mine", there) == 0);
    assert_int_equal(delivery_put_new(&place, "", 0, &err), -1); /* over nothing */
    assert_int_equal(report_write(&report, &place, &err), 0);
    assert_int_equal(lstat(mine, &info), -1);
    assert_true(lstat(there, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 100);
    assert_true(unlink(there) == 0 && unlink(link) == 0);
    assert_true(rmdir(first) == 0 && rmdir(second) == 0 && rmdir(dir) == 0);
}

static void what_was_a_link_before_is_written_to_where_it_led(void **state)
{
    char dir[] = "/tmp/report-test-XXXXXX";
    struct report report = sample();
    autodelivery struct delivery place = DELIVERY_NONE;
    struct error err;
    struct stat info;

    (void)state;
    assert_non_null(mkdtemp(dir));
    autofree char *target = text_format("%s/target", dir), *other = text_format("%s/other", dir),
                  *path = text_format("%s/report", dir);

    assert_true(mknod(target, S_IFREG | 0600, 0) == 0 && mknod(other, S_IFREG | 0600, 0) == 0);
    assert_true(symlink("target", path) == 0 && delivery_open(path, &place, &err) == 0);
    assert_true(unlink(path) == 0 && symlink("other", path) == 0);
    assert_int_equal(report_write(&report, &place, &err), 0);
    assert_true(stat(target, &info) == 0 && info.st_size > 100);
    assert_true(stat(other, &info) == 0 && info.st_size == 0);
    assert_true(unlink(target) == 0 && unlink(other) == 0 && unlink(path) == 0 && rmdir(dir) == 0);
}

static void the_summary_is_short_and_inert(void **state)
{
    autotext struct text text = TEXT_NONE;
    struct report report = sample();

    (void)state;
    report_summary(&report, false, &text);
    assert_string_equal(text_string(&text), "cove: make 'te\\x1bst'\n"
                                            "  exit 3 after 1.23 s (CPU 900.0 ms, peak 2048 KiB)\n"
                                            "  changes were discarded (--rm)\n"
                                            "  asked for and not given:\n"
                                            "    read    /a\\x0a: absent (2 x); --read /a\n");
}

static void a_kept_sandbox_is_told_with_the_next_commands(void **state)
{
    autotext struct text text = TEXT_NONE, json = TEXT_NONE;
    struct report report = sample();

    (void)state;
    report.id = "abcdefghijklmnopqrst";
    report.changes = "are kept";
    report.kept = true;
    report_summary(&report, false, &text);
    assert_contains(
        text_string(&text),
        "  changes are kept: cove diff abcdefghijkl, cove apply abcdefghijkl, cove rm abcdefghijkl\n");
    report_json(&report, &json);
    assert_contains(text_string(&json), "\"kept\":true,\"next\":[\"cove diff abcdefghijklmnopqrst\",");
}

static void our_own_lines_are_folded_at_commas_and_others_are_not(void **state)
{
    autotext struct text text = TEXT_NONE;
    struct report report = sample();

    (void)state;
    report.id = "abcdefghijklmnopqrst";
    report.changes = "are kept";
    report.kept = true;
    report.width = 40;
    report_summary(&report, false, &text);
    assert_contains(text_string(&text), "  exit 3 after 1.23 s (CPU 900.0 ms,\n"
                                        "    peak 2048 KiB)\n"
                                        "  changes are kept: cove diff abcdefghijkl,\n"
                                        "    cove apply abcdefghijkl,\n"
                                        "    cove rm abcdefghijkl\n");
    assert_contains(text_string(&text), "    read    /a\\x0a: absent (2 x); --read /a\n");
}

static void every_reason_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    for (int reason = RESULT_EXITED; reason <= RESULT_FAILED; reason++) {
        autotext struct text text = TEXT_NONE;
        struct result result = { .reason = (enum result_reason)reason, .signal = 15 };
        struct report report = { .result = &result };

        report_summary(&report, true, &text);
        assert_contains(text_string(&text), " after 0.0 ms");
        assert_string_not_equal(result_reason_name(result.reason), "unknown");
    }
}

static void a_map_counts_and_keeps_its_bound(void **state)
{
    automap struct map map = MAP_NONE;
    const struct map_entry *entry;
    size_t at = 0, seen = 0;
    char key[32];

    (void)state;
    map.most = 1000;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 1500; i++) {
            snprintf(key, sizeof key, "key %d", i);
            assert_int_equal(map_add(&map, key, 2), i < 1000 ? 2 * (round + 1) : 0);
        }
    assert_int_equal(map.refused, 1500);
    assert_int_equal(map_get(&map, "key 999"), 6);
    assert_int_equal(map_get(&map, "key 1000"), 0);
    while ((entry = map_next(&map, &at)))
        seen += entry->count == 6;
    assert_int_equal(seen, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_it_all_in_a_fixed_order),
        cmocka_unit_test(the_file_is_whole_and_private),
        cmocka_unit_test(a_device_is_written_to_not_replaced),
        cmocka_unit_test(what_is_put_in_its_way_leads_it_nowhere),
        cmocka_unit_test(what_was_a_link_before_is_written_to_where_it_led),
        cmocka_unit_test(the_summary_is_short_and_inert),
        cmocka_unit_test(a_kept_sandbox_is_told_with_the_next_commands),
        cmocka_unit_test(our_own_lines_are_folded_at_commas_and_others_are_not),
        cmocka_unit_test(every_reason_has_a_name_and_a_sentence),
        cmocka_unit_test(a_map_counts_and_keeps_its_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
