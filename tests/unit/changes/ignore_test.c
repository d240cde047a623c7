#include "changes/ignore.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/excludes.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool matches(const char *pattern, const char *text)
{
    uint64_t left = IGNORE_STEPS_MAX;

    return ignore_match(pattern, text, &left);
}

static void patterns_match_as_git_says(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } rows[] = {
        { "a", "a", true },
        { "*", "a/b", false },
        { "**", "a/b", true },
        { "a/**", "a/b/c", true },
        { "a/**", "a", false },
        { "**/a", "a", true },
        { "**/a", "x/y/a", true },
        { "a/**/b", "a/b", true },
        { "a/**/b", "a/x/y/b", true },
        { "a/**/b", "a/x/yb", false },
        { "a/*/b", "a/x/y/b", false },
        { "a**b", "axxb", true },
        { "a**b", "ax/xb", false },
        { "?", "/", false },
        { "[a-c]x", "bx", true },
        { "[!a-c]x", "bx", false },
        { "[^a]", "b", true },
        { "[]]", "]", true },
        { "[]-a]", "^", true },
        { "[[:digit:]]*", "7z", true },
        { "[[:nonsense:]]", "n", false },
        { "[[:]", ":", true },
        { "[a", "a", false },
        { "a\\*", "a*", true },
        { "a\\*", "ab", false },
        { "a\\", "a", false },
        { "a[/]b", "a/b", false },
        { "*a*b*c", "xxaybzc", true },
        { "*/**/*.c", "d/e/f.c", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (matches(rows[i].pattern, rows[i].text) != rows[i].match)
            fail_msg("%s and %s", rows[i].pattern, rows[i].text);
}

/* A pattern with many stars must not take for ever. */
static void no_pattern_takes_long(void **state)
{
    char pattern[401], text[4001];

    (void)state;
    for (size_t i = 0; i < 200; i++)
        memcpy(pattern + 2 * i, "*a", 2);
    pattern[400] = '\0';
    memset(text, 'a', 4000);
    text[3999] = 'b';
    text[4000] = '\0';
    assert_false(matches(pattern, text));
    for (size_t i = 0; i < 100; i++)
        memcpy(pattern + 4 * i, "**/a", 4);
    for (size_t i = 1; i < 4000; i += 2)
        text[i] = '/';
    assert_false(matches(pattern, text));
}

/* Rules that are written to take long, in a file as large as it may be. */
static void a_file_of_rules_is_followed_only_so_far(void **state)
{
    static const char *const lines[] = { "*a*a*a*a*a*a*a*a*a*a*b", "**/*a*a/**/*a*a/**/b",
                                         "*[[:[:[:[:[:[:[:[:x]b", "*[aaaaaaaaaaaaaaaaaaaa]b",
                                         "**/**********/**/b" };
    autofree char *path = memory_zero(4000);

    (void)state;
    for (size_t i = 0; i < 3999; i++)
        path[i] = i % 40 == 39 ? '/' : 'a';
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct ignore_rules rules = IGNORE_RULES_NONE;
        autotext struct text file = TEXT_NONE;
        uint64_t began = clock_us();

        text_add(&file, "!seen\n");
        for (size_t n = 0; n < IGNORE_RULES_MAX - 10; n++)
            text_addf(&file, "%s\n", lines[i]);
        ignore_parse(&rules, text_string(&file), file.len);
        assert_true(rules.len > 10000);
        for (unsigned n = 0; n < 1000 && ignore_ask(&rules, path, false) != IGNORE_TOO_LONG; n++)
            assert_true(n < 999);
        assert_int_equal(rules.steps, IGNORE_STEPS_MAX);
        assert_int_equal(ignore_ask(&rules, "seen", false), IGNORE_TOO_LONG);
        assert_true(clock_us() - began < 20 * 1000 * 1000ULL);
        ignore_rules_free(&rules);
    }
}

/* --- against git --- */

static unsigned long seed = 1;

static unsigned pick(unsigned below)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(seed >> 33) % below;
}

static const char *one_of(const char *const *words, size_t len)
{
    return words[pick((unsigned)len)];
}

/* Where a `**` follows plain letters older versions of git compare two pointers that have nothing to do
 * with each other, so such patterns are left out. */
static void add_pattern(struct text *out)
{
    static const char *const parts[] = { "a",    "b",    "ab",          "c.o", "*",   "?",  "*.o",
                                         "[ab]", "[!a]", "a*",          "/",   "/",   "/",  "**/",
                                         "/**",  "/**/", "[[:alpha:]]", "\\a", "[a-", "*b*" };

    if (pick(4) == 0)
        text_add(out, "!");
    for (unsigned i = 0, count = 1 + pick(4); i < count; i++) {
        const char *part = one_of(parts, sizeof parts / sizeof *parts);

        if (part[0] == '*' && part[1] == '*' && out->len && out->data[out->len - 1] != '\n' &&
            out->data[out->len - 1] != '!' && out->data[out->len - 1] != '/')
            text_add(out, "/");
        text_add(out, part);
    }
    if (pick(8) == 0)
        text_add(out, " ");
    if (pick(8) == 0)
        text_add(out, "\\ ");
    if (pick(6) == 0)
        text_add(out, "/");
    text_add(out, pick(10) ? "\n" : "\r\n");
}

static void write_rules(struct world *world, const char *path, unsigned most)
{
    autofree char *full = text_copy(unit_scratch_path(world->scratch, path));
    autotext struct text rules = TEXT_NONE;
    FILE *file = fopen(full, "w");

    for (unsigned i = 0, count = 1 + pick(most); i < count; i++)
        add_pattern(&rules);
    assert_non_null(file);
    fputs(text_string(&rules), file);
    fclose(file);
}

/* A file, with the directories around it; nothing if one of them is a file. */
static void make_file(struct world *world, const char *path)
{
    autofree char *full = text_format("%s/base/%s", world->scratch->path, path);

    for (char *slash = full + strlen(world->scratch->path) + 6; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }

    FILE *file = fopen(full, "w");

    if (file)
        fclose(file);
}

static void make_tree(struct world *world)
{
    static const char *const names[] = { "a", "b", "ab", "c.o", "ba", "x" };
    autostrings struct strings paths = STRINGS_NONE;

    world_run(world, "rm -rf base/* base/.gitignore base/.git/info/exclude");
    for (int i = 0; i < 120; i++) {
        autotext struct text path = TEXT_NONE;

        for (unsigned depth = 1 + pick(4); depth > 0; depth--)
            text_addf(&path, "%s%s", path.len ? "/" : "", one_of(names, sizeof names / sizeof *names));
        strings_add(&paths, text_string(&path));
    }
    strings_sort(&paths);
    for (size_t i = paths.len; i-- > 0;) /* the longer ones first, so that there are directories */
        make_file(world, paths.items[i]);
    write_rules(world, "base/.gitignore", 6);
    if (pick(2))
        write_rules(world, "base/.git/info/exclude", 3);
    for (int i = 0; i < 3; i++) {
        autofree char *path = text_format("base/%s", one_of(names, sizeof names / sizeof *names));
        struct stat status;

        if (stat(unit_scratch_path(world->scratch, path), &status) == 0 && S_ISDIR(status.st_mode)) {
            autofree char *file = text_format("%s/.gitignore", path);

            write_rules(world, file, 3);
        }
    }
}

static size_t compare_with_git(struct world *world, struct excludes *excludes, int seed_of_tree)
{
    size_t asked = 0;
    char line[4096];
    FILE *file;

    world_run(world, "cd base && find . -mindepth 1 -path ./.git -prune -o -print | sed 's,^[.]/,,' | LC_ALL=C "
                     "sort >../paths; "
                     "git check-ignore --no-index -v -n --stdin <../paths >../answers; true");
    file = fopen(unit_scratch_path(world->scratch, "answers"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *tab = strchr(line, '\t'), *pattern = strchr(line, ':');
        struct excludes_answer answer;
        struct stat status;
        autofree char *full = NULL;

        assert_true(tab && pattern);
        line[strcspn(line, "\n")] = '\0';
        *tab = '\0';
        pattern = strchr(pattern + 1, ':') + 1;
        full = text_format("base/%s", tab + 1);
        assert_int_equal(lstat(unit_scratch_path(world->scratch, full), &status), 0);
        excludes_ask(excludes, tab + 1, S_ISDIR(status.st_mode), &answer);
        if (answer.ignored != (*pattern && *pattern != '!'))
            fail_msg("tree %d: %s is%s ignored, git says '%s'", seed_of_tree, tab + 1,
                     answer.ignored ? "" : " not", line);
        asked++;
    }
    fclose(file);
    return asked;
}

static void trees_are_ignored_as_git_says(void **state)
{
    struct world *world = *state;
    const char *wish = getenv("COVE_IGNORE_TREES"); /* for a longer run */
    int trees = wish ? atoi(wish) : 80;
    size_t asked = 0;

    seed = (unsigned long)trees;
    if (system("git --version >/dev/null 2>&1") != 0)
        skip();
    world_run(world, "git init -q base");
    for (int i = 0; i < trees; i++) {
        struct excludes excludes = { 0 };

        make_tree(world);

        autoclose int base =
            open(unit_scratch_path(world->scratch, "base"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        excludes.base = base;
        asked += compare_with_git(world, &excludes, i);
        excludes_free(&excludes);
    }
    assert_true(asked > (size_t)trees * 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_git_says),
        cmocka_unit_test(no_pattern_takes_long),
        cmocka_unit_test(a_file_of_rules_is_followed_only_so_far),
        cmocka_unit_test_setup_teardown(trees_are_ignored_as_git_says, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
