#include "box/environment.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

static struct strings build(struct world *world, const char *const *variables)
{
    struct strings out = STRINGS_NONE;
    static char *list[32];
    size_t len = 0;

    for (; variables[len]; len++)
        list[len] = text_copy(variables[len]);
    list[len] = NULL;
    world->host.environ = list;
    environment_build(&world->spec, &world->host, &out);
    while (len)
        free(list[--len]);
    return out;
}

/* The environment, one variable a line; valid until the next call. */
static const char *shown(struct world *world, const char *const *variables)
{
    static struct text out;
    autostrings struct strings entries = build(world, variables);

    text_clear(&out);
    for (size_t i = 0; i < entries.len; i++)
        text_addf(&out, "%s\n", entries.items[i]);
    return text_string(&out);
}

#define SHOWN(world, ...) shown(world, (const char *const[]){ __VA_ARGS__, NULL })

static void set_user(struct world *world, uid_t uid, bool root, const char *name, const char *home,
                     const char *wish)
{
    world->host.uid = uid;
    world->host.root = root;
    free(world->host.name);
    free(world->host.home);
    free(world->spec.user);
    world->host.name = text_copy(name);
    world->host.home = text_copy(home);
    world->spec.user = wish ? text_copy(wish) : NULL;
}

static void only_the_table_passes(void **state)
{
    struct world *world = *state;

    set_user(world, 1000, false, "me", "/home/me", NULL);
    assert_string_equal(SHOWN(world, "TERM=xterm", "LANG=C.UTF-8", "SSH_AUTH_SOCK=/tmp/x",
                              "DBUS_SESSION_BUS_ADDRESS=unix:", "XDG_RUNTIME_DIR=/run/user/1000", "DISPLAY=:0",
                              "GPG_AGENT_INFO=x", "LD_PRELOAD=/x.so", "LC_MY_TOKEN=s", "GITHUB_TOKEN=s",
                              "AWS_SECRET_ACCESS_KEY=s", "http_proxy=http://u:p@h", "TMPDIR=/x",
                              "NOTIFY_SOCKET=/x", "LISTEN_FDS=1", "container=docker", "COVE_HOME=/x",
                              "BASH_ENV=/x", "PATH=/bin", "HOME=/evil", "USER=evil", "SHELL=/evil",
                              "NODE_OPTIONS=--require x", "TERMX=1"),
                        "COVE_SANDBOX=1\nHOME=/home/me\nLANG=C.UTF-8\nLOGNAME=me\nPATH=/bin\nSHELL=/bin/"
                        "bash\nTERM=xterm\nUSER=me\n");
}

static void the_search_path_keeps_absolute_entries_once_and_in_order(void **state)
{
    static const struct {
        const char *in, *want;
    } cases[] = {
        { "PATH=/b:/a:/b", "\nPATH=/b:/a\n" },
        { "PATH=:/a::.:bin:../x:/b:", "\nPATH=/a:/b\n" },
        { "PATH=~/bin:/a", "\nPATH=/a\n" },
        { "PATH=.", "\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" },
        { "PATH=", "\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" },
        { "X=1", "\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" },
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_contains(SHOWN(world, cases[i].in), cases[i].want);
}

static void another_image_has_the_standard_path_and_shell(void **state)
{
    struct world *world = *state;

    free(world->spec.image);
    world->spec.image = text_copy("/images/debian");
    assert_contains(SHOWN(world, "PATH=/x:/bin"),
                    "\nPATH=/x:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin\n");
    assert_contains(SHOWN(world, "PATH=/x"), "\nSHELL=/bin/sh\n");
}

static void a_shell_that_is_not_there_inside_is_replaced(void **state)
{
    struct world *world = *state;

    free(world->host.shell);
    world->host.shell = text_copy("/home/me/bin/fish");
    assert_contains(SHOWN(world, "A=1"), "\nSHELL=/bin/sh\n");
    free(world->host.shell);
    world->host.shell = text_copy("/usr/bin/zsh");
    assert_contains(SHOWN(world, "A=1"), "\nSHELL=/usr/bin/zsh\n");
}

static void home_and_name_follow_the_identity_inside(void **state)
{
    static const struct {
        uid_t uid;
        bool root;
        const char *name, *home, *wish, *want_home, *want_user;
    } cases[] = {
        { 1000, false, "me", "/home/me", NULL, "HOME=/home/me\n", "USER=me\n" },
        { 1000, false, "me", "/home/me", "1000", "HOME=/home/me\n", "USER=me\n" },
        { 1000, false, "me", "/home/me", "root", "HOME=/root\n", "USER=root\n" },
        { 1000, false, "me", "/home/me", "0:0", "HOME=/root\n", "USER=root\n" },
        { 1000, false, "me", "/home/me", "33", "HOME=/tmp\n", "USER=33\n" },
        { 0, true, "root", "/root", NULL, "HOME=/root\n", "USER=root\n" },
        { 0, true, "root", "/srv/root", "root", "HOME=/srv/root\n", "USER=root\n" },
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        set_user(world, cases[i].uid, cases[i].root, cases[i].name, cases[i].home, cases[i].wish);
        assert_contains(SHOWN(world, "A=1"), cases[i].want_home);
        assert_contains(SHOWN(world, "A=1"), cases[i].want_user);
    }
}

static void what_the_owner_sets_wins_and_the_last_one_counts(void **state)
{
    struct world *world = *state;

    strings_add(&world->spec.env, "TERM=dumb");
    strings_add(&world->spec.env, "NEW=1=2\n3");
    strings_add(&world->spec.env, "PATH=rel");
    strings_add(&world->spec.env, "NEW=4");
    strings_add(&world->spec.env, "EMPTY=");
    const char *out = SHOWN(world, "TERM=xterm", "PATH=/bin");
    assert_contains(out, "\nNEW=4\n");
    assert_contains(out, "EMPTY=\n");
    assert_contains(out, "\nPATH=rel\n");
    assert_contains(out, "TERM=dumb\n");
    assert_null(strstr(out, "xterm"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_table_passes),
        TEST(the_search_path_keeps_absolute_entries_once_and_in_order),
        TEST(another_image_has_the_standard_path_and_shell),
        TEST(a_shell_that_is_not_there_inside_is_replaced),
        TEST(home_and_name_follow_the_identity_inside),
        TEST(what_the_owner_sets_wins_and_the_last_one_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
