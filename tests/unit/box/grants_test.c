#include "box/grants.h"

#include "base/own.h"
#include "base/text.h"
#include "box/workspace.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void add(struct world *world)
{
    if (grants_add(&world->spec, &world->host, &world->trees, &world->err) < 0)
        fail_msg("%s", world->err.text);
}

static void add_workspace(struct world *world, const char *directory)
{
    struct workspace workspace;

    free(world->spec.directory);
    world->spec.directory = text_copy(world_path(world, directory));
    if (workspace_find(&world->spec, &world->host, &workspace, &world->trees, &world->err) < 0)
        fail_msg("%s", world->err.text);
    workspace_free(&workspace);
}

static void grant(struct strings *list, const char *path)
{
    strings_free(list);
    strings_add(list, path);
}

static void add_volume(struct world *world, const char *source, const char *target, enum tree_mode mode)
{
    *array_add(&world->spec.volumes) = (struct volume){ text_copy(source), text_copy(target), mode };
}

static void expect_refused(struct world *world, const char *path, const char *why)
{
    grant(&world->spec.read, path);
    trees_free(&world->trees);
    if (grants_add(&world->spec, &world->host, &world->trees, &world->err) == 0)
        fail_msg("%s was granted", path);
    assert_contains(world->err.text, why);
    assert_contains(world->err.text, "files.read");
}

/* --- tool roots and caches ---------------------------------------------------------------------- */

static void tools_and_caches_are_added_when_they_are_wanted(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/.cargo/bin home/.rustup home/.pyenv home/.cache/pip home/.npm/_cacache "
                     "home/.m2/repository && "
                     "touch home/.m2/settings.xml");
    add(world);
    assert_null(world_tree(world, "home/.cargo"));

    world->spec.tools = true;
    add(world);
    assert_int_equal(world_tree(world, "home/.cargo")->mode, TREE_COW);
    assert_int_equal(world_tree(world, "home/.rustup")->mode, TREE_RO);
    assert_string_equal(world_tree(world, "home/.pyenv")->why, "tool root");
    assert_null(world_tree(world, "home/.cache/pip"));

    trees_free(&world->trees);
    world->spec.tools = false;
    world->spec.caches = true;
    add(world);
    assert_string_equal(world_tree(world, "home/.cache/pip")->why, "cache");
    assert_int_equal(world_tree(world, "home/.npm/_cacache")->mode, TREE_COW);
    assert_non_null(world_tree(world, "home/.m2/repository"));
    assert_null(world_tree(world, "home/.m2"));
    assert_null(world_tree(world, "home/.cargo"));
}

static void tokens_in_tool_roots_are_hidden(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/.cargo/registry home/.nvm/versions/node/v20/etc home/.local/share/uv "
                     "home/.pub-cache home/.nvm/x && "
                     "cd home && touch .cargo/credentials .cargo/credentials.toml .cargo/registry/credentials "
                     ".cargo/config.toml "
                     ".nvm/versions/node/v20/etc/npmrc .nvm/.npmrc .nvm/x/npmrc .local/share/uv/credentials "
                     ".pub-cache/credentials.json");
    world->spec.tools = world->spec.caches = true;
    add(world);

    const struct strings *cargo = &world_tree(world, "home/.cargo")->hide;
    assert_int_equal(cargo->len, 2);
    assert_true(strings_have(cargo, "credentials") && strings_have(cargo, "credentials.toml"));

    const struct strings *nvm = &world_tree(world, "home/.nvm")->hide;
    assert_int_equal(nvm->len, 2);
    assert_true(strings_have(nvm, ".npmrc") && strings_have(nvm, "versions/node/v20/etc/npmrc"));
    assert_true(strings_have(&world_tree(world, "home/.local/share/uv")->hide, "credentials"));
    assert_true(strings_have(&world_tree(world, "home/.pub-cache")->hide, "credentials.json"));
}

static void a_tools_configuration_is_hidden_only_if_it_holds_a_login(void **state)
{
    static const struct {
        const char *content;
        bool hidden;
    } cases[] = {
        { "[build]\njobs = 2\n", false },
        { "[source.x]\nregistry = \"https://mirror.internal/index\"\n", false },
        { "[registries.x]\ntoken = \"s\"\n", true },
        { "[registries.x]\nTOKEN = \"s\"\n", true },
        { "registry = \"https://me:pw@mirror.internal/index\"\n", true },
        { "registry = \"https://mirror.internal/a@b\"\n", false },
    };
    struct world *world = *state;

    world_run(world, "mkdir home/.cargo");
    world->spec.tools = true;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unit_scratch_file(world->scratch, "home/.cargo/config.toml", cases[i].content);
        trees_free(&world->trees);
        add(world);
        if (strings_have(&world_tree(world, "home/.cargo")->hide, "config.toml") != cases[i].hidden)
            fail_msg("%s", cases[i].content);
    }
}

static void a_tool_root_that_leads_elsewhere_is_left_out(void **state)
{
    struct world *world = *state;

    world_run(
        world,
        "mkdir -p outside home/.ssh home/big/pyenv && cd home && ln -s ../outside .cargo && ln -s .ssh .bun && "
        "ln -s . .deno && ln -s ../state .asdf && ln -s big/pyenv .pyenv && touch .volta && ln -s / .rbenv");
    world->spec.tools = true;
    add(world);
    assert_int_equal(world->trees.len, 1);
    assert_string_equal(world_tree(world, "home/.pyenv")->source, world_path(world, "home/big/pyenv"));
}

static void a_tool_root_of_another_user_is_left_out(void **state)
{
    struct world *world = *state;

    if (!world_can_chown(world))
        skip(); /* only root can make one */
    world_run(world, "mkdir home/.cargo home/.pyenv && chown 12345 home/.cargo");
    world->spec.tools = true;
    add(world);
    assert_null(world_tree(world, "home/.cargo"));
    assert_non_null(world_tree(world, "home/.pyenv"));
}

static void a_tool_root_around_or_in_the_workspace_is_left_out(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/.pyenv/plugins/mine home/go/bin home/.cargo");
    world->spec.tools = true;
    add_workspace(world, "home/.pyenv/plugins/mine");
    add(world);
    assert_null(world_tree(world, "home/.pyenv"));
    assert_non_null(world_tree(world, "home/.cargo"));

    trees_free(&world->trees);
    add_workspace(world, "home/go");
    add(world);
    assert_null(world_tree(world, "home/go/bin"));
}

static void trees_come_before_those_inside_them(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/p/data home/.cargo home/p-2 home/zz");
    add_workspace(world, "home/p");
    world->spec.tools = true;
    strings_add(&world->spec.read, "~/p/data");
    strings_add(&world->spec.read, "~/p-2");
    strings_add(&world->spec.write, "~/zz");
    add(world);
    assert_int_equal(world->trees.len, 5);
    for (size_t i = 0; i < world->trees.len; i++)
        for (size_t j = i + 1; j < world->trees.len; j++)
            assert_false(path_within(world->trees.items[i].target, world->trees.items[j].target));
}

/* --- what the owner names ------------------------------------------------------------------------- */

static void a_named_path_is_seen_where_it_was_named(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/d data/real && touch home/f.conf && ln -s ../data/real home/link");
    strings_add(&world->spec.read, "~/d");
    strings_add(&world->spec.read, "~/f.conf");
    strings_add(&world->spec.read, "~/./link//");
    strings_add(&world->spec.write, "data");
    add(world);
    assert_int_equal(world->trees.len, 4);
    assert_int_equal(world_tree(world, "home/d")->mode, TREE_RO);
    assert_false(world_tree(world, "home/d")->file);
    assert_true(world_tree(world, "home/f.conf")->file);
    assert_string_equal(world_tree(world, "home/link")->source, world_path(world, "data/real"));
    assert_int_equal(world_tree(world, "data")->mode, TREE_COW);
}

static void a_volume_is_seen_at_its_target(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir home/d");
    add_volume(world, world_path(world, "home/d"), "/data", TREE_RO);
    add_volume(world, "~/d", "/data2", TREE_COW);
    add(world);
    assert_int_equal(world->trees.len, 2);
    assert_string_equal(trees_at(&world->trees, "/data")->source, world_path(world, "home/d"));
    assert_int_equal(trees_at(&world->trees, "/data2")->mode, TREE_COW);
}

static void the_host_is_refused(void **state)
{
    struct world *world = *state;

    expect_refused(world, "/", "whole machine");
    expect_refused(world, "/proc", "kernel");
    expect_refused(world, "/proc/self", "proc");
    expect_refused(world, "/proc/1/root", "");
    expect_refused(world, "/sys/kernel", "kernel");
    expect_refused(world, "/dev/null", "device");
    expect_refused(world, "/dev", "devices");
    expect_refused(world, "/run", "sockets");
    expect_refused(world, "/etc", "configuration");
    expect_refused(world, "/home", "home directories");
    expect_refused(world, "~", "home directory");
    expect_refused(world, world->scratch->path, "home directory");
    expect_refused(world, world->host.state, "state");
    world_run(world, "mkdir -p state/a && ln -s ../state/a home/innocent && ln -s /proc home/p");
    expect_refused(world, "~/innocent", "state");
    expect_refused(world, "~/p", "kernel");
    expect_refused(world, "~/missing", "does not exist");
}

static void sockets_and_pipes_are_refused(void **state)
{
    struct world *world = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strncpy(address.sun_path, world_path(world, "home/docker.sock"), sizeof address.sun_path - 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    world_run(world, "mkfifo home/pipe && ln -s docker.sock home/plain");
    expect_refused(world, "~/docker.sock", "socket");
    expect_refused(world, "~/plain", "socket");
    expect_refused(world, "~/pipe", "pipe");
}

static void directories_of_credentials_are_refused_and_named_files_are_not(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/.ssh/keys home/.config/gh home/.config/tool home/.claude && "
                     "touch home/.netrc home/.ssh/known_hosts home/.config/tool.conf");
    expect_refused(world, "~/.ssh", "credentials");
    expect_refused(world, "~/.ssh/keys", "credentials");
    expect_refused(world, "~/.config", "GitHub tokens");
    expect_refused(world, "~/.claude", "credentials");
    grant(&world->spec.read, "~/.ssh/known_hosts");
    strings_add(&world->spec.read, "~/.netrc");
    strings_add(&world->spec.read, "~/.config/tool.conf");
    strings_add(&world->spec.read, "~/.config/tool");
    trees_free(&world->trees);
    add(world);
    assert_int_equal(world->trees.len, 4);
}

static void a_target_must_be_free_and_not_the_sandboxs_own(void **state)
{
    static const char *const targets[] = { "/",      "/proc", "/proc/x",     "/sys/x",
                                           "/dev/x", "/run",  "/run/cove/x", "/a/../proc" };
    struct world *world = *state;

    world_run(world, "mkdir home/d home/e");
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        add_volume(world, "~/d", targets[i], TREE_RO);
        if (grants_add(&world->spec, &world->host, &world->trees, &world->err) == 0)
            fail_msg("%s", targets[i]);
        free(world->spec.volumes.items[0].source);
        free(world->spec.volumes.items[0].target);
        world->spec.volumes.len = 0;
    }
    add_volume(world, "~/d", "/x", TREE_RO);
    add_volume(world, "~/d", "/x", TREE_RO);
    add(world);
    assert_int_equal(world->trees.len, 1);
    add_volume(world, "~/e", "/x", TREE_RO);
    assert_int_equal(grants_add(&world->spec, &world->host, &world->trees, &world->err), -1);
    assert_contains(world->err.text, "twice");
}

static void a_grant_takes_the_place_of_a_tool_root(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir home/.rustup");
    world->spec.tools = true;
    strings_add(&world->spec.write, "~/.rustup");
    add(world);
    assert_int_equal(world->trees.len, 1);
    assert_string_equal(world_tree(world, "home/.rustup")->why, "granted");
    assert_int_equal(world_tree(world, "home/.rustup")->mode, TREE_COW);
}

static void a_target_in_a_read_only_tree_must_be_there(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/d/there home/e");
    strings_add(&world->spec.read, "~/d");
    add_volume(world, "~/e", "~/d/there", TREE_RO);
    add(world);
    assert_int_equal(world->trees.len, 2);
    add_volume(world, "~/e", "~/d/absent", TREE_RO);
    trees_free(&world->trees);
    assert_int_equal(grants_add(&world->spec, &world->host, &world->trees, &world->err), -1);
    assert_contains(world->err.text, "read-only");
}

/* What is asked gives the same answer as what is done, and adds nothing. */
static void what_could_be_granted_can_be_asked(void **state)
{
    static const struct {
        const char *name;
        int read, write;
    } cases[] = {
        { "home/d", 0, -1 },      /* the same once more; written it would be named twice */
        { "home/d/there", 0, 0 }, /* in another grant */
        { "home/.rustup", 0, 0 }, /* a tool root gives way */
        { "home/e/absent", -1, -1 }, { "home", -1, -1 }, { "home/.ssh", -1, -1 }, { "home/.ssh/id_a", 0, 0 },
    };
    struct world *world = *state;

    world_run(world, "mkdir -p home/d/there home/e home/.rustup home/.ssh && touch home/.ssh/id_a");
    world->spec.tools = true;
    strings_add(&world->spec.read, "~/d");
    add(world);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = world_path(world, cases[i].name);

        assert_int_equal(grants_check(&world->host, &world->trees, path, TREE_RO, &world->err), cases[i].read);
        assert_int_equal(grants_check(&world->host, &world->trees, path, TREE_COW, &world->err),
                         cases[i].write);
    }
    assert_int_equal(world->trees.len, 2);
}

/* --- hiding ------------------------------------------------------------------------------------------ */

static void patterns_hide_in_workspace_and_grants_but_not_in_tools(void **state)
{
    struct world *world = *state;

    world_run(
        world,
        "mkdir -p home/p/a home/d home/.pyenv && touch home/p/a/.env home/d/x.pem home/.pyenv/cacert.pem");
    add_workspace(world, "home/p");
    world->spec.tools = true;
    strings_add(&world->spec.read, "~/d");
    strings_add(&world->spec.hide, ".env");
    strings_add(&world->spec.hide, "*.pem");
    add(world);
    assert_int_equal(grants_hide(&world->spec, &world->host, &world->trees, &world->err), 0);
    assert_true(strings_have(&world_tree(world, "home/p")->hide, "a/.env"));
    assert_true(strings_have(&world_tree(world, "home/d")->hide, "x.pem"));
    assert_int_equal(world_tree(world, "home/.pyenv")->hide.len, 0);
}

static void a_file_cannot_be_granted_and_hidden(void **state)
{
    struct world *world = *state;

    world_run(world, "touch home/x.pem");
    strings_add(&world->spec.read, "~/x.pem");
    strings_add(&world->spec.hide, "*.pem");
    add(world);
    assert_int_equal(grants_hide(&world->spec, &world->host, &world->trees, &world->err), -1);
    assert_contains(world->err.text, "files.hide");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tools_and_caches_are_added_when_they_are_wanted),
        TEST(tokens_in_tool_roots_are_hidden),
        TEST(a_tools_configuration_is_hidden_only_if_it_holds_a_login),
        TEST(a_tool_root_that_leads_elsewhere_is_left_out),
        TEST(a_tool_root_of_another_user_is_left_out),
        TEST(a_tool_root_around_or_in_the_workspace_is_left_out),
        TEST(trees_come_before_those_inside_them),
        TEST(a_named_path_is_seen_where_it_was_named),
        TEST(a_volume_is_seen_at_its_target),
        TEST(the_host_is_refused),
        TEST(sockets_and_pipes_are_refused),
        TEST(directories_of_credentials_are_refused_and_named_files_are_not),
        TEST(a_target_must_be_free_and_not_the_sandboxs_own),
        TEST(a_grant_takes_the_place_of_a_tool_root),
        TEST(a_target_in_a_read_only_tree_must_be_there),
        TEST(what_could_be_granted_can_be_asked),
        TEST(patterns_hide_in_workspace_and_grants_but_not_in_tools),
        TEST(a_file_cannot_be_granted_and_hidden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
