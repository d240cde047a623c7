#include "box/hide.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

#include <fcntl.h>
#include <unistd.h>

/* Checks what the patterns (separated by blanks) find below `tree`; `want` likewise. */
static void expect(struct world *world, const char *patterns, const char *want)
{
    autostrings struct strings list = STRINGS_NONE, found = STRINGS_NONE;
    autotext struct text got = TEXT_NONE;
    autofree char *copy = text_copy(patterns);
    autoclose int dir = open(world_path(world, "tree"), O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (char *at = strtok(copy, " "); at; at = strtok(NULL, " "))
        strings_add(&list, at);
    if (hide_find(dir, &list, &found, &world->err) < 0)
        fail_msg("%s: %s", patterns, world->err.text);
    for (size_t i = 0; i < found.len; i++)
        text_addf(&got, "%s%s", i ? " " : "", found.items[i]);
    assert_string_equal(text_string(&got), want);
}

static void without_a_slash_a_pattern_matches_at_any_depth(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p tree/a/b && touch tree/.env tree/a/.env tree/a/b/x.pem tree/a/b/.environment");
    expect(world, ".env", ".env a/.env");
    expect(world, ".env *.pem", ".env a/.env a/b/x.pem");
    expect(world, "*.PEM", "");
    expect(world, "", "");
}

static void with_a_slash_a_pattern_counts_from_the_tree(void **state)
{
    struct world *world = *state;

    world_run(world,
              "mkdir -p tree/a/b tree/b tree/x/a && touch tree/a/k tree/a/b/k tree/b/k tree/k tree/x/a/k");
    expect(world, "/k", "k");
    expect(world, "a/k", "a/k");
    expect(world, "*/k", "a/k b/k");
    expect(world, "a/**/k", "a/b/k a/k");
    expect(world, "**/b/k", "a/b/k b/k");
    expect(world, "/**", "a b k x");
    expect(world, "**/**", "a b k x");
    expect(world, "a/**", "a");
}

static void a_slash_at_the_end_means_directories(void **state)
{
    struct world *world = *state;

    world_run(
        world,
        "mkdir -p tree/secret tree/a/secret && touch tree/secret/x tree/b && touch tree/a/c && ln -s a tree/l");
    expect(world, "secret/", "a/secret secret");
    expect(world, "b/", "");
    expect(world, "l/", "");
    expect(world, "/a/", "a");
}

static void a_hidden_directory_is_not_looked_into(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p tree/secret/.env && touch tree/secret/a.pem");
    expect(world, "secret .env *.pem", "secret");
}

static void links_are_not_followed_but_hidden_by_name(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p tree/a outside && touch outside/.env && ln -s ../outside tree/o && ln -s "
                     "nowhere tree/a/.env && "
                     "ln -s . tree/a/loop");
    expect(world, ".env", "a/.env");
}

static void any_file_type_and_name_is_found(void **state)
{
    struct world *world = *state;

    world_run(
        world,
        "mkdir tree && cd tree && mkfifo x.pem && mkdir y.pem && touch 'z\n.pem' \"$(printf '\\377.pem')\"");
    expect(world, "*.pem", "x.pem y.pem z\n.pem \xff.pem");
}

static void a_directory_that_cannot_be_read_is_hidden_whole(void **state)
{
    struct world *world = *state;

    uid_t uid = geteuid();

    world_run(world,
              "mkdir -p tree/closed/a && touch tree/closed/.env && chmod 0 tree/closed && chmod 755 . tree");
    assert_int_equal(seteuid(uid == 0 ? 65534 : uid), 0); /* root reads everything */
    expect(world, ".env", "closed");
    expect(world, "/other", "");
    assert_int_equal(seteuid(uid), 0);
}

static void objects_of_git_are_left_alone(void **state)
{
    struct world *world = *state;

    world_run(world,
              "mkdir -p tree/.git/objects/ab tree/objects && touch tree/.git/objects/ab/x.pem tree/.git/y.pem "
              "tree/objects/z.pem");
    expect(world, "*.pem", ".git/y.pem objects/z.pem");
}

static void too_deep_a_tree_is_an_error_and_not_a_gap(void **state)
{
    struct world *world = *state;
    autostrings struct strings patterns = STRINGS_NONE, found = STRINGS_NONE;

    world_run(world, "mkdir tree && cd tree && for i in $(seq 300); do mkdir d && cd d; done; touch .env");
    autoclose int dir = open(world_path(world, "tree"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    strings_add(&patterns, ".env");
    assert_int_equal(hide_find(dir, &patterns, &found, &world->err), -1);
    assert_contains(world->err.text, "too deep");
}

static void a_pattern_that_means_nothing_is_refused(void **state)
{
    static const char *const patterns[] = { "", "/", "//", "!a" };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        assert_int_equal(hide_check_pattern(patterns[i], &world->err), -1);
    assert_int_equal(hide_check_pattern("\\!a", &world->err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_slash_a_pattern_matches_at_any_depth),
        TEST(with_a_slash_a_pattern_counts_from_the_tree),
        TEST(a_slash_at_the_end_means_directories),
        TEST(a_hidden_directory_is_not_looked_into),
        TEST(links_are_not_followed_but_hidden_by_name),
        TEST(any_file_type_and_name_is_found),
        TEST(a_directory_that_cannot_be_read_is_hidden_whole),
        TEST(objects_of_git_are_left_alone),
        TEST(too_deep_a_tree_is_an_error_and_not_a_gap),
        TEST(a_pattern_that_means_nothing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
