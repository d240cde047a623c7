/* 10,000 random policies, judged once more by a plain model: each pattern as a regular expression over
 * whole paths, and a path is hidden if it or something around it matches any of them. */
#include "box/hide.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLICIES = 10000, PATTERNS_MAX = 4, PATHS = 4 + 4 * 4 + 4 * 4 * 4 };

static const char *const directories[] = { "a", "ab", ".e", "b*" };
static const char *const files[] = { "a", "a.b", ".e", "[c]" };

struct model_path {
    char text[24];
    bool directory;
};

static size_t list_paths(struct model_path *out)
{
    size_t len = 0;

    for (size_t i = 0; i < 4; i++) {
        snprintf(out[len].text, sizeof out->text, "%s", directories[i]);
        out[len++].directory = true;
        for (size_t j = 0; j < 4; j++) {
            snprintf(out[len].text, sizeof out->text, "%s/%s", directories[i], directories[j]);
            out[len++].directory = true;
            for (size_t k = 0; k < 4; k++)
                snprintf(out[len++].text, sizeof out->text, "%s/%s/%s", directories[i], directories[j],
                         files[k]);
        }
    }
    return len;
}

static unsigned dice(unsigned *seed, unsigned sides)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % sides;
}

/* --- a random pattern, and the same as a regular expression --- */

static const struct piece {
    const char *glob, *regex;
} pieces[] = {
    { "a", "a" },     { "b", "b" },       { ".", "[.]" },      { "e", "e" },         { "*", "[^/]*" },
    { "?", "[^/]" },  { "[ab]", "[ab]" }, { "[!a]", "[^a/]" }, { "[a-c]", "[a-c]" }, { "\\*", "[*]" },
    { "\\[", "\\[" }, { "\\a", "a" },     { "**", "[^/]*" },
};

static void add_component(unsigned *seed, struct text *glob, struct text *regex)
{
    unsigned len = 1 + dice(seed, 3);
    size_t before = glob->len;

    if (dice(seed, 6) == 0) {
        text_add(glob, "**");
        text_add(regex, "(/[^/]+)*");
        return;
    }
    text_add(regex, "/");
    for (unsigned i = 0; i < len; i++) {
        const struct piece *piece = &pieces[dice(seed, ARRAY_LEN(pieces))];

        text_add(glob, piece->glob);
        text_add(regex, piece->regex);
    }
    if (strcmp(text_string(glob) + before, "**") == 0) { /* alone they stand for components */
        text_add(glob, "a");
        text_add(regex, "a");
    }
}

struct model_pattern {
    char *glob;
    regex_t regex;
    bool only_directories;
};

static void make_pattern(unsigned *seed, struct model_pattern *out)
{
    autotext struct text glob = TEXT_NONE, body = TEXT_NONE, regex = TEXT_NONE;
    unsigned components = 1 + dice(seed, 3);
    bool leading = dice(seed, 4) == 0;

    text_add(&glob, leading ? "/" : "");
    for (unsigned i = 0; i < components; i++) {
        text_add(&glob, i == 0 ? "" : dice(seed, 8) ? "/" : "//");
        add_component(seed, &glob, &body);
    }
    bool anywhere = components == 1 && !leading;

    out->only_directories = dice(seed, 5) == 0;
    text_add(&glob, out->only_directories ? "/" : "");
    if (anywhere && strncmp(text_string(&glob), "**", 2) == 0 && text_string(&body)[0] == '(')
        text_add(&regex, "^.+$"); /* any name at all */
    else
        text_addf(&regex, "^%s%s$", anywhere ? "(/[^/]+)*" : "", text_string(&body));
    assert_int_equal(regcomp(&out->regex, text_string(&regex), REG_EXTENDED | REG_NOSUB), 0);
    out->glob = text_steal(&glob);
}

/* --- both verdicts --- */

static bool model_matches(const struct model_pattern *pattern, const char *path, size_t len, bool directory)
{
    autofree char *part = text_format("/%.*s", (int)len, path);

    return (directory || !pattern->only_directories) && regexec(&pattern->regex, part, 0, NULL, 0) == 0;
}

static bool model_hides(const struct model_pattern *patterns, size_t count, const struct model_path *path)
{
    for (size_t len = 1; len <= strlen(path->text); len++) {
        char end = path->text[len];

        if (end != '/' && end != '\0')
            continue;
        for (size_t i = 0; i < count; i++)
            if (model_matches(&patterns[i], path->text, len, end == '/' || path->directory))
                return true;
    }
    return false;
}

static bool is_below(const struct strings *found, const char *path)
{
    for (size_t i = 0; i < found->len; i++) {
        size_t len = strlen(found->items[i]);

        if (strncmp(path, found->items[i], len) == 0 && (path[len] == '/' || path[len] == '\0'))
            return true;
    }
    return false;
}

static void find(int dir, const struct model_pattern *patterns, size_t count, bool backwards,
                 struct strings *found)
{
    autostrings struct strings list = STRINGS_NONE;
    struct error err;

    for (size_t i = 0; i < count; i++)
        strings_add(&list, patterns[backwards ? count - 1 - i : i].glob);
    if (hide_find(dir, &list, found, &err) < 0)
        fail_msg("%s: %s", patterns[0].glob, err.text);
}

static size_t compare(int dir, const struct model_path *paths, size_t len, unsigned *seed)
{
    struct model_pattern patterns[PATTERNS_MAX];
    size_t count = 1 + dice(seed, PATTERNS_MAX), hidden = 0;
    autostrings struct strings found = STRINGS_NONE, again = STRINGS_NONE;
    autotext struct text all = TEXT_NONE;

    for (size_t i = 0; i < count; i++) {
        make_pattern(seed, &patterns[i]);
        text_addf(&all, " %s", patterns[i].glob);
    }
    find(dir, patterns, count, false, &found);
    find(dir, patterns, count, true, &again);
    assert_int_equal(found.len, again.len); /* no order counts */
    for (size_t i = 0; i < found.len; i++)
        assert_string_equal(found.items[i], again.items[i]);
    for (size_t i = 0; i < len; i++) {
        bool want = model_hides(patterns, count, &paths[i]);

        hidden += want;
        if (is_below(&found, paths[i].text) != want)
            fail_msg("%s is%s hidden by %s", paths[i].text, want ? " not" : "", text_string(&all));
    }
    for (size_t i = 0; i < count; i++) {
        regfree(&patterns[i].regex);
        free(patterns[i].glob);
    }
    return hidden;
}

static void random_policies_hide_what_the_model_says(void **state)
{
    struct world *world = *state;
    struct model_path paths[PATHS] = { 0 };
    size_t len = list_paths(paths), hidden = 0;
    unsigned seed = 1;

    world_run(world, "for d in a ab .e 'b*'; do for e in a ab .e 'b*'; do mkdir -p \"tree/$d/$e\"; "
                     "for f in a a.b .e '[c]'; do : >\"tree/$d/$e/$f\"; done; done; done");
    autoclose int dir = open(world_path(world, "tree"), O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < POLICIES; i++)
        hidden += compare(dir, paths, len, &seed);
    /* Neither verdict is rare, or the comparison would say little. */
    assert_in_range(hidden * 100 / (POLICIES * len), 20, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_policies_hide_what_the_model_says, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
