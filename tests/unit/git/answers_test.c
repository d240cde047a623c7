#include "git/answers.h"

#include "git/barepaths.h"
#include "tests/support/unit.h"

#include <sys/stat.h>

#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"
#define SIX "6666666666666666666666666666666666666666"

#define READ(bytes) (bytes), (bytes) + sizeof(bytes) - 1

static enum answer read_diff(const char *at, const char *end, struct diff_line *out)
{
    return answer_diff(&at, end, 40, out);
}

static void a_line_of_a_diff_has_two_sides_and_a_path(void **state)
{
    struct diff_line line;

    (void)state;
    assert_int_equal(read_diff(READ(":100644 100755 " ONE " " TWO " M\0a b\0"), &line), ANSWER_ONE);
    assert_int_equal(line.old_mode, S_IFREG | 0644);
    assert_int_equal(line.new_mode, S_IFREG | 0755);
    assert_string_equal(line.old_hash, ONE);
    assert_string_equal(line.new_hash, TWO);
    assert_string_equal(line.path, "a b");
    assert_int_equal(read_diff(READ(":000000 160000 " ONE " " TWO " A\0sub\0"), &line), ANSWER_ONE);
    assert_int_equal(line.old_mode, 0);
    assert_true(S_ISDIR(line.new_mode));
    assert_int_equal(read_diff(READ("::100644 100644 120000 " ONE " " TWO " " SIX " MM\0a\0"), &line),
                     ANSWER_ONE);
    assert_true(S_ISREG(line.old_mode) && S_ISLNK(line.new_mode));
    assert_string_equal(line.old_hash, ONE);
    assert_string_equal(line.new_hash, SIX);
}

static void what_is_no_diff_is_nonsense(void **state)
{
    struct diff_line line;

    (void)state;
    assert_int_equal(read_diff(READ(""), &line), ANSWER_END);
    assert_int_equal(read_diff(READ("\0a\0"), &line), ANSWER_END);
    assert_int_equal(read_diff(READ("a\0"), &line), ANSWER_NONSENSE);
    assert_int_equal(read_diff(READ(":100644 100644 " ONE " " TWO " M\0"), &line), ANSWER_NONSENSE);
    assert_int_equal(read_diff(READ(":100644 100644 " ONE " " TWO " M\0\0"), &line), ANSWER_NONSENSE);
    assert_int_equal(read_diff(READ(":100644 100644 " ONE " " TWO " M\0cut"), &line), ANSWER_NONSENSE);
    assert_int_equal(read_diff(READ(":10064 100644 " ONE " " TWO " M\0a\0"), &line), ANSWER_NONSENSE);
    assert_int_equal(read_diff(READ(":100644 100644 " ONE "1 " TWO " M\0a\0"), &line), ANSWER_NONSENSE);
    assert_int_equal(read_diff(READ("::100644 100644 " ONE " " TWO " M\0a\0"), &line), ANSWER_NONSENSE);
}

static void a_blob_ends_where_its_size_says(void **state)
{
    static const char bytes[] = ONE " blob 3\na\nb\n" TWO " blob 0\n\n";
    const char *at = bytes, *end = bytes + sizeof bytes - 1;
    struct blob blob;

    (void)state;
    assert_int_equal(answer_blob(&at, end, 40, &blob), ANSWER_ONE);
    assert_string_equal(blob.hash, ONE);
    assert_int_equal(blob.len, 3);
    assert_memory_equal(blob.bytes, "a\nb", 3);
    assert_int_equal(answer_blob(&at, end, 40, &blob), ANSWER_ONE);
    assert_int_equal(blob.len, 0);
    assert_int_equal(answer_blob(&at, end, 40, &blob), ANSWER_END);

    static const char *const bad[] = { ONE " blob 4\nabc\n", ONE " blob 3\nabcd",
                                       ONE " blob -1\n\n",   ONE " blob 18446744073709551615\n\n",
                                       ONE " tree 0\n\n",    ONE " missing\n" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at = bad[i];
        if (answer_blob(&at, bad[i] + strlen(bad[i]), 40, &blob) != ANSWER_NONSENSE)
            fail_msg("row %zu", i);
    }
}

static void a_repository_under_another_name_is_known_by_what_is_in_it(void **state)
{
    static const struct {
        const char *paths[4], *ask, *below;
    } rows[] = {
        { { "d/HEAD", "d/objects/x", "d/refs/x" }, "d/config", "config" },
        { { "HEAD", "objects/x", "refs/x" }, "hooks/x", "hooks/x" },
        { { "d/head", "d/Objects/x", "d/REFS/x" }, "d/hooks/x", "hooks/x" },
        { { "d/HEAD", "d/commondir" }, "d/a/b", "a/b" },
        { { "d/HEAD", "d/objects/x", "d/refs/x" }, "dd/config", NULL },
        { { "d/HEAD", "d/objects/x", "d/refs/x" }, "config", NULL },
        { { "d/HEAD", "e/objects/x", "d/refs/x" }, "d/config", NULL },
        { { "d/objects/x", "d/refs/x" }, "d/config", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct barepaths paths = BAREPATHS_NONE;
        const char *below;

        for (size_t p = 0; p < 4 && rows[i].paths[p]; p++)
            barepaths_add(&paths, rows[i].paths[p]);
        below = barepaths_below(&paths, rows[i].ask);
        if (!below != !rows[i].below || (below && strcmp(below, rows[i].below) != 0))
            fail_msg("row %zu: %s", i, below ? below : "none");
        barepaths_free(&paths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_a_diff_has_two_sides_and_a_path),
        cmocka_unit_test(what_is_no_diff_is_nonsense),
        cmocka_unit_test(a_blob_ends_where_its_size_says),
        cmocka_unit_test(a_repository_under_another_name_is_known_by_what_is_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
