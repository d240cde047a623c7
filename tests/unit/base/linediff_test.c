#include "base/array.h"
#include "base/linediff.h"
#include "base/own.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *old, const char *new, const char *hunks)
{
    autotext struct text out = TEXT_NONE;

    linediff_hunks(old, strlen(old), new, strlen(new), &out);
    assert_string_equal(text_string(&out), hunks);
}

static void samples_look_as_patches_do(void **state)
{
    (void)state;
    expect("", "", "");
    expect("a\nb\n", "a\nb\n", "");
    expect("a\nb\nc\n", "a\nX\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n");
    expect("", "a\n", "@@ -0,0 +1 @@\n+a\n");
    expect("a\n", "", "@@ -1 +0,0 @@\n-a\n");
    expect("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
    expect("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "@@ -6,3 +6,4 @@\n 6\n 7\n 8\n+9\n");
    expect("x\n1\n2\n3\n4\n5\n6\ny\n", "1\n2\n3\n4\n5\n6\n",
           "@@ -1,8 +1,6 @@\n-x\n 1\n 2\n 3\n 4\n 5\n 6\n-y\n");
    expect("x\n1\n2\n3\n4\n5\n6\n7\ny\n", "1\n2\n3\n4\n5\n6\n7\n",
           "@@ -1,4 +1,3 @@\n-x\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-y\n");
}

/* --- an oracle: the patch, applied, gives the new text, and no shorter one does --- */

static const char *line_end(const char *at)
{
    const char *end = strchr(at, '\n');

    return end + 1;
}

/* Text of the test has a newline at the end of each line but, maybe, the last. */
static void apply(const char *old, const char *patch, struct text *out)
{
    size_t line = 1, start;

    while (*patch) {
        start = strtoul(strchr(patch, '-') + 1, NULL, 10);
        if (strstr(patch, "-0,0") == strchr(patch, '-'))
            start = 1;
        else if (strchr(patch, ',') && strtoul(strchr(patch, ',') + 1, NULL, 10) == 0 &&
                 strchr(patch, ',') < strchr(patch, '+'))
            start++;
        for (; line < start; line++) {
            text_add_bytes(out, old, (size_t)(line_end(old) - old));
            old = line_end(old);
        }
        for (patch = line_end(patch); *patch && *patch != '@'; patch = line_end(patch)) {
            size_t len = (size_t)(line_end(patch) - patch) - 1;
            bool bare = strncmp(line_end(patch), "\\ No", 4) == 0;

            if (*patch == '\\')
                continue;
            if (*patch != '-')
                text_add_bytes(out, patch + 1, len - bare);
            if (*patch == '+')
                continue;
            assert_memory_equal(old, patch + 1, len - bare);
            old += len - bare;
            line++;
        }
    }
    text_add(out, old);
}

static size_t shortest(char *const *a, size_t n, char *const *b, size_t m)
{
    size_t table[48][48] = { 0 };

    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t more = table[i - 1][j] > table[i][j - 1] ? table[i - 1][j] : table[i][j - 1];

            table[i][j] = strcmp(a[i - 1], b[j - 1]) == 0 ? table[i - 1][j - 1] + 1 : more;
        }
    return n + m - 2 * table[n][m];
}

static void make(struct strings *lines, struct text *text, unsigned *seed)
{
    static const char *const words[] = { "a", "b", "c", "", "dd", "{", "}" };
    size_t count = (size_t)rand_r(seed) % 40;

    for (size_t i = 0; i < count; i++) {
        bool bare = i + 1 == count && rand_r(seed) % 4 == 0;
        const char *word = words[(size_t)rand_r(seed) % ARRAY_LEN(words)];

        strings_take(lines, text_format("%s%s", bare ? "z" : word, bare ? "" : "\n"));
        text_add(text, lines->items[lines->len - 1]);
    }
}

static void patches_lead_to_the_new_text_and_are_shortest(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed < 4000; seed++) {
        autostrings struct strings a = STRINGS_NONE, b = STRINGS_NONE;
        autotext struct text old = TEXT_NONE, new = TEXT_NONE, patch = TEXT_NONE, got = TEXT_NONE;
        unsigned random = seed;

        make(&a, &old, &random);
        make(&b, &new, &random);
        linediff_hunks(text_string(&old), old.len, text_string(&new), new.len, &patch);
        apply(text_string(&old), text_string(&patch), &got);
        assert_string_equal(text_string(&got), text_string(&new));

        struct linediff_count count = linediff_count(text_string(&old), old.len, text_string(&new), new.len);
        assert_int_equal(count.removed + count.added, shortest(a.items, a.len, b.items, b.len));
    }
}

static void large_texts_without_anything_in_common_end_soon(void **state)
{
    autotext struct text old = TEXT_NONE, new = TEXT_NONE;
    struct linediff_count count;

    (void)state;
    for (int i = 0; i < 50000; i++) {
        text_addf(&old, "old %d\n", i);
        text_addf(&new, "new %d\n", i);
    }
    count = linediff_count(text_string(&old), old.len, text_string(&new), new.len);
    assert_int_equal(count.removed, 50000);
    assert_int_equal(count.added, 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_look_as_patches_do),
        cmocka_unit_test(patches_lead_to_the_new_text_and_are_shortest),
        cmocka_unit_test(large_texts_without_anything_in_common_end_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
