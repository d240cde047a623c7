#include "changes/autorun.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/fingerprint.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void found_are(const struct unit_scratch *scratch, const char *want)
{
    struct autorun found = AUTORUN_NONE;
    struct error err = { 0 };
    autotext struct text shown = TEXT_NONE;

    if (autorun_find(scratch->dir, &found, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < found.len; i++) {
        text_addf(&shown, "%s%s", i ? " " : "", found.items[i].path);
        assert_ptr_equal(autorun_at(&found, found.items[i].path), &found.items[i]);
    }
    assert_string_equal(text_string(&shown), want);
    assert_null(autorun_at(&found, "no/such/path"));
    autorun_free(&found);
}

static void files_are_found_at_any_depth_and_directories_whole(void **state)
{
    static const char *const directories[] = { ".git", ".git/hooks", "src", "src/deep", "src/deep/.vscode" };
    static const char *const files[] = { ".git/config",     ".git/hooks/pre-commit",       "src/main.c",
                                         "src/deep/.envrc", "src/deep/.vscode/tasks.json", "README" };
    const struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(directories); i++)
        unit_scratch_dir(scratch, directories[i], 0755);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        unit_scratch_file(scratch, files[i], "");
    found_are(scratch, ".git src/deep/.envrc src/deep/.vscode");
}

static void links_bare_repositories_and_set_id_files_count(void **state)
{
    const struct unit_scratch *scratch = *state;

    unit_scratch_dir(scratch, "bare", 0755);
    unit_scratch_dir(scratch, "bare/objects", 0755);
    unit_scratch_dir(scratch, "bare/refs", 0755);
    unit_scratch_file(scratch, "bare/HEAD", "");
    unit_scratch_file(scratch, "suid", "");
    assert_int_equal(fchmodat(scratch->dir, "suid", 04755, 0), 0);
    assert_int_equal(symlinkat(".git/hooks", scratch->dir, "trick"), 0);
    assert_int_equal(symlinkat("suid", scratch->dir, "harmless"), 0);
    found_are(scratch, "bare suid trick");
}

static void what_cannot_be_looked_into_counts(void **state)
{
    const struct unit_scratch *scratch = *state;
    autoclose int at = openat(scratch->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct autorun found = AUTORUN_NONE;
    struct error err = { 0 };

    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);

        int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        close(at);
        at = below;
    }
    assert_int_equal(autorun_find(scratch->dir, &found, &err), 0);
    assert_int_equal(found.len, 1);
    assert_true(strlen(found.items[0].path) > 256);
    autorun_free(&found);
}

static uint64_t print_of(const struct unit_scratch *scratch)
{
    struct error err = { 0 };
    uint64_t sum = 0;

    if (fingerprint_tree(scratch->dir, &sum, &err) < 0)
        fail_msg("%s", err.text);
    return sum;
}

static void a_fingerprint_tells_every_change_but_those_of_git(void **state)
{
    const struct unit_scratch *scratch = *state;

    unit_scratch_dir(scratch, "d", 0755);
    unit_scratch_dir(scratch, ".git", 0755);
    unit_scratch_file(scratch, "d/f", "one");

    uint64_t before = print_of(scratch), now;

    assert_int_equal(print_of(scratch), before);
    unit_scratch_file(scratch, ".git/index", "x");
    assert_int_equal(print_of(scratch), before);
    unit_scratch_file(scratch, "d/g", "");
    now = print_of(scratch);
    assert_int_not_equal(now, before);
    assert_int_equal(unlinkat(scratch->dir, "d/g", 0), 0);
    assert_int_equal(print_of(scratch), before);
    assert_int_equal(fchmodat(scratch->dir, "d/f", 0640, 0), 0);
    assert_int_not_equal(print_of(scratch), before);
    now = print_of(scratch);
    assert_int_equal(renameat(scratch->dir, "d/f", scratch->dir, "d/h"), 0);
    assert_int_not_equal(print_of(scratch), now);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(files_are_found_at_any_depth_and_directories_whole),
        ON_SCRATCH(links_bare_repositories_and_set_id_files_count),
        ON_SCRATCH(what_cannot_be_looked_into_counts),
        ON_SCRATCH(a_fingerprint_tells_every_change_but_those_of_git),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
