#include "box/workspace.h"

#include "base/own.h"
#include "base/text.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

#include <sys/stat.h>
#include <unistd.h>

#define GIT "git -c init.defaultBranch=main "

/* What workspace_find() says about this directory; the world's trees are replaced. */
static int find(struct world *world, const char *directory, struct workspace *out)
{
    free(world->spec.directory);
    world->spec.directory = text_copy(directory);
    trees_free(&world->trees);
    return workspace_find(&world->spec, &world->host, out, &world->trees, &world->err);
}

static void expect_root(struct world *world, const char *directory, const char *root)
{
    struct workspace workspace;

    if (find(world, world_path(world, directory), &workspace) < 0)
        fail_msg("%s: %s", directory, world->err.text);
    assert_string_equal(workspace.root, world_path(world, root));
    assert_string_equal(workspace.cwd, world_path(world, directory));
    assert_non_null(world_tree(world, root));
    workspace_free(&workspace);
}

static void expect_refused(struct world *world, const char *path, const char *why)
{
    struct workspace workspace;

    if (find(world, path, &workspace) == 0)
        fail_msg("%s was taken", path);
    assert_int_equal(world->err.kind, ERROR_REFUSED);
    assert_contains(world->err.text, why);
    assert_contains(world->err.text, "mkdir");
    assert_int_equal(world->trees.len, 0);
}

static void a_directory_without_git_is_the_workspace(void **state)
{
    struct world *world = *state;
    struct stat found;

    world_run(world, "mkdir -p home/a/b");
    expect_root(world, "home/a/b", "home/a/b");
    assert_int_equal(world->trees.len, 1);
    assert_int_equal(stat(world_path(world, "home/a/b"), &found), 0);
    assert_int_equal(world->trees.items[0].inode, found.st_ino);
    assert_int_equal(world->trees.items[0].device, found.st_dev);
    assert_int_equal(world->trees.items[0].mode, TREE_COW);
}

static void the_git_top_level_is_the_workspace(void **state)
{
    struct world *world = *state;

    world_run(world, GIT "init home/p && mkdir -p home/p/a/b home/p/.git/x");
    expect_root(world, "home/p", "home/p");
    expect_root(world, "home/p/a/b", "home/p");
    expect_root(world, "home/p/.git/x", "home/p");
}

static void a_link_to_the_directory_is_resolved(void **state)
{
    struct world *world = *state;
    struct workspace workspace;

    world_run(world, "mkdir home/real && ln -s real home/link");
    assert_int_equal(find(world, world_path(world, "home/link"), &workspace), 0);
    assert_string_equal(workspace.root, world_path(world, "home/real"));
    workspace_free(&workspace);
}

static void an_empty_dot_git_does_not_count(void **state)
{
    struct world *world = *state;

    world_run(world, GIT "init home/p && mkdir -p home/p/a/.git home/p/b && echo 1 >home/p/b/.gitx");
    expect_root(world, "home/p/a", "home/p");
    expect_root(world, "home/p/b", "home/p");
}

static void any_byte_may_stand_in_a_path(void **state)
{
    static const char *const names[] = { "a:b", "a,b", "a\\b", "a\nb",    "\xff\xfe",
                                         "a b", " ",   "-x",   "\x1b[2J", "%s" };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        autofree char *name = text_format("home/%s", names[i]);
        autofree char *below = text_format("%s/sub", name);

        assert_int_equal(mkdir(world_path(world, name), 0700), 0);
        world_run(world, "cd '%s' && mkdir sub && " GIT "init .", name);
        expect_root(world, below, name);
    }
}

static void what_is_no_directory_gets_an_error_that_says_so(void **state)
{
    struct world *world = *state;
    struct workspace workspace;

    world_run(world, "touch home/file; ln -s loop home/loop; mkdir home/gone");
    assert_int_equal(find(world, world_path(world, "home/none"), &workspace), -1);
    assert_int_equal(world->err.kind, ERROR_MISSING);
    assert_contains(world->err.text, "no directory");
    assert_int_equal(find(world, world_path(world, "home/file"), &workspace), -1);
    assert_int_equal(world->err.kind, ERROR_INVALID);
    assert_contains(world->err.text, "is a file");
    assert_int_equal(find(world, world_path(world, "home/file/x"), &workspace), -1);
    assert_contains(world->err.text, "a part of");
    assert_int_equal(find(world, world_path(world, "home/loop"), &workspace), -1);
    assert_contains(world->err.text, "circle");
    assert_int_equal(find(world, "/proc/self/cwd", &workspace), -1);
    assert_int_equal(find(world, "", &workspace), -1);
}

static void the_system_is_refused(void **state)
{
    static const char *const paths[] = { "/",           "/etc",     "/usr", "/usr/bin", "/usr/lib",
                                         "/var",        "/var/lib", "/tmp", "/proc",    "/proc/self/task",
                                         "/sys/kernel", "/dev",     "/run", "/bin",     "/boot" };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (access(paths[i], R_OK | X_OK) == 0)
            expect_refused(world, paths[i], "cannot be a workspace");
}

static void a_home_and_what_encloses_it_are_refused(void **state)
{
    struct world *world = *state;

    expect_refused(world, world_path(world, "home"), "home directory");
    expect_refused(world, world->scratch->path, "home directory");
    if (access("/root", X_OK) == 0)
        expect_refused(world, "/root", "home directory");
    expect_refused(world, "/home", "home directories");
}

static void a_place_of_credentials_is_refused(void **state)
{
    struct world *world = *state;

    world_run(world,
              "mkdir -p home/.ssh/sub home/.config/gh home/.config/nvim home/.claude/projects home/.cargo "
              "&& touch home/.cargo/credentials.toml");
    expect_refused(world, world_path(world, "home/.ssh"), ".ssh");
    expect_refused(world, world_path(world, "home/.ssh/sub"), ".ssh");
    expect_refused(world, world_path(world, "home/.config/gh"), ".config/gh");
    expect_refused(world, world_path(world, "home/.config"), "GitHub tokens");
    expect_refused(world, world_path(world, "home/.claude/projects"), ".claude");
    expect_refused(world, world_path(world, "home/.cargo"), "cargo tokens");
    expect_root(world, "home/.config/nvim", "home/.config/nvim");
}

static void a_directory_that_looks_like_a_home_is_refused(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p other/.ssh bob/.aws && touch other/.ssh/id_rsa bob/.aws/credentials");
    expect_refused(world, world_path(world, "other"), "SSH keys");
    expect_refused(world, world_path(world, "bob"), "AWS keys");
}

static void an_ordinary_project_with_tool_settings_is_taken(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p home/p/.claude home/p/.docker home/p/.config home/p/.cargo home/p/.ssh && "
                     "touch home/p/.npmrc home/p/.env home/p/.cargo/config.toml home/p/.ssh/config");
    expect_root(world, "home/p", "home/p");
}

static void our_own_state_is_refused(void **state)
{
    struct world *world = *state;

    world_run(world, "mkdir -p state/sandboxes/x; mkdir -p q/state");
    expect_refused(world, world_path(world, "state"), "state");
    expect_refused(world, world_path(world, "state/sandboxes/x"), "state");
    free(world->host.state);
    world->host.state = text_copy(world_path(world, "q/state"));
    expect_refused(world, world_path(world, "q"), "state");
}

static void a_repository_of_dotfiles_does_not_make_the_home_the_workspace(void **state)
{
    struct world *world = *state;

    world_run(world, GIT "init home && mkdir -p home/p/q");
    expect_root(world, "home/p/q", "home/p/q");
}

static void a_git_of_another_user_above_is_ignored(void **state)
{
    struct world *world = *state;

    if (!world_can_chown(world))
        skip(); /* only root can make one */
    world_run(world, "mkdir -p srv/mine; " GIT "init srv; chown -R 12345 srv/.git");
    expect_root(world, "srv/mine", "srv/mine");
    world_run(world, "chown -R 0 srv/.git; chown 12345 srv");
    expect_root(world, "srv/mine", "srv/mine");
    world_run(world, "chown 0 srv");
    expect_root(world, "srv/mine", "srv");
}

/* --- linked work trees -------------------------------------------------------------------------- */

static void make_worktree(struct world *world, const char *options)
{
    world_run(world,
              GIT "init home/repo && cd home/repo && " GIT "commit --allow-empty -m 1 && " GIT
                  "worktree add %s",
              options);
}

static void a_linked_work_tree_brings_the_git_directory_of_its_repository(void **state)
{
    struct world *world = *state;

    make_worktree(world, "../wt");
    world_run(world, "mkdir home/wt/sub");
    expect_root(world, "home/wt/sub", "home/wt");
    assert_int_equal(world->trees.len, 2);
    assert_string_equal(world_tree(world, "home/repo/.git")->why, "git");
    assert_int_equal(world_tree(world, "home/repo/.git")->mode, TREE_COW);
}

static void a_work_tree_of_a_bare_repository_brings_it(void **state)
{
    struct world *world = *state;

    make_worktree(world, "../first");
    world_run(world, GIT "clone --bare home/repo home/p.git && cd home/p.git && " GIT "worktree add ../p main");
    expect_root(world, "home/p", "home/p");
    assert_non_null(world_tree(world, "home/p.git"));
}

static void a_work_tree_is_found_with_relative_pointers(void **state)
{
    struct world *world = *state;

    make_worktree(world, "../wt");
    world_run(world, "echo 'gitdir: ../repo/.git/worktrees/wt' >home/wt/.git && "
                     "echo ../../../../wt/.git >home/repo/.git/worktrees/wt/gitdir");
    expect_root(world, "home/wt", "home/wt");
    assert_non_null(world_tree(world, "home/repo/.git"));
}

static void a_work_tree_may_have_a_newline_in_its_path(void **state)
{
    struct world *world = *state;

    make_worktree(world, "-b other '../w\nt'");
    expect_root(world, "home/w\nt", "home/w\nt");
    assert_non_null(world_tree(world, "home/repo/.git"));
}

static void a_forged_pointer_to_a_private_repository_adds_nothing(void **state)
{
    struct world *world = *state;

    make_worktree(world, "../wt");
    world_run(world, "mkdir home/evil && cp home/wt/.git home/evil/.git");
    expect_root(world, "home/evil", "home/evil");
    assert_int_equal(world->trees.len, 1);

    world_run(world, "echo 'gitdir: %s/home/repo/.git' >home/evil/.git", world->scratch->path);
    expect_root(world, "home/evil", "home/evil");
    assert_int_equal(world->trees.len, 1);
}

/* Everything the tarball can hold agrees with itself, and points at the victim. */
static void a_forged_git_directory_cannot_name_another_one_as_its_common(void **state)
{
    struct world *world = *state;

    make_worktree(world, "../wt");
    world_run(world,
              "mkdir -p home/evil/x/.g/worktrees/n && cd home/evil/x && echo 'gitdir: .g/worktrees/n' >.git && "
              "echo ref: refs/heads/main >.g/worktrees/n/HEAD && echo '%s/home/repo/.git' "
              ">.g/worktrees/n/commondir && "
              "echo \"$PWD/.git\" >.g/worktrees/n/gitdir",
              world->scratch->path);
    expect_root(world, "home/evil/x", "home/evil/x");
    assert_int_equal(world->trees.len, 1);

    world_run(
        world,
        "cd home/evil/x && rm -r .g && ln -s '%s/home/repo/.git' .g && echo 'gitdir: .g/worktrees/wt' >.git",
        world->scratch->path);
    expect_root(world, "home/evil/x", "home/evil/x");
    assert_int_equal(world->trees.len, 1);
}

static void a_broken_git_file_does_no_harm(void **state)
{
    static const char *const commands[] = {
        "printf ''",
        "printf 'gitdir: '",
        "printf 'gitdir: \\n'",
        "printf 'gitdir: /nonexistent\\n'",
        "printf 'gitdir: /proc/self/root\\n'",
        "printf 'gitdir: /dev/zero\\n'",
        "printf 'gitdir: .\\n'",
        "printf 'gitdir: \\0/etc\\n'",
        "printf 'nonsense\\n'",
        "head -c 1000000 /dev/zero",
        "printf 'gitdir: '; head -c 100000 /dev/zero | tr '\\0' a",
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        world_run(world, "mkdir -p home/p/sub && { %s; } >home/p/.git", commands[i]);
        expect_root(world, "home/p/sub", "home/p");
        assert_int_equal(world->trees.len, 1);
    }
    world_run(world, "rm home/p/.git && mkfifo home/p/.git");
    expect_root(world, "home/p/sub", "home/p/sub");
    world_run(world, "rm home/p/.git && ln -s /dev/zero home/p/.git");
    expect_root(world, "home/p/sub", "home/p/sub");
    world_run(world, "rm home/p/.git && ln -s .git home/p/.git");
    expect_root(world, "home/p/sub", "home/p/sub");
}

/* --- submodules ---------------------------------------------------------------------------------- */

static void make_submodules(struct world *world)
{
    world_run(world, "set -e; for r in inner middle top; do " GIT "init $r; (cd $r && " GIT
                     "commit --allow-empty -m 1); done\n"
                     "(cd middle && " GIT "submodule add ../inner lib/inner && " GIT "commit -am 2)\n"
                     "(cd top && " GIT "submodule add ../middle mid && " GIT "commit -am 2 && " GIT
                     "submodule update --init --recursive)\n"
                     "mv top home/top; mkdir home/top/mid/lib/inner/sub");
}

static void a_submodule_leads_to_its_superproject(void **state)
{
    struct world *world = *state;

    make_submodules(world);
    expect_root(world, "home/top/mid", "home/top");
    expect_root(world, "home/top/mid/lib/inner/sub", "home/top");
    assert_int_equal(world->trees.len, 1);
}

static void a_submodule_in_a_linked_work_tree_leads_to_it(void **state)
{
    struct world *world = *state;

    make_submodules(world);
    world_run(world, "cd home/top && " GIT "worktree add ../wt HEAD && cd ../wt && " GIT
                     "submodule update --init mid");
    expect_root(world, "home/wt/mid", "home/wt");
    assert_non_null(world_tree(world, "home/top/.git"));
}

static void a_forged_submodule_does_not_lead_to_what_is_around_it(void **state)
{
    struct world *world = *state;

    make_submodules(world);
    /* Another directory of the superproject claims to be its submodule. */
    world_run(world, "mkdir home/top/evil && echo 'gitdir: ../.git/modules/mid' >home/top/evil/.git");
    expect_root(world, "home/top/evil", "home/top/evil");
    /* A directory elsewhere does. */
    world_run(world, "mkdir home/evil && echo 'gitdir: ../top/.git/modules/mid' >home/evil/.git");
    expect_root(world, "home/evil", "home/evil");
    assert_int_equal(world->trees.len, 1);
    /* It brings its own git directory, which agrees, but the repository around it does not know it. */
    world_run(world, "cp -r home/top/.git/modules/mid home/own && mkdir -p home/top/evil/g/modules && "
                     "mv home/own home/top/evil/g/modules/n && " GIT
                     "config -f home/top/evil/g/modules/n/config core.worktree ../../.. && "
                     "echo 'gitdir: g/modules/n' >home/top/evil/.git");
    expect_root(world, "home/top/evil", "home/top/evil");
}

/* --- where the command starts ---------------------------------------------------------------------- */

static void the_command_starts_where_it_was_asked_to(void **state)
{
    struct world *world = *state;
    struct workspace workspace;

    world_run(world, "mkdir -p home/p/sub");
    world->spec.cwd = text_copy("sub");
    assert_int_equal(find(world, world_path(world, "home/p"), &workspace), 0);
    assert_string_equal(workspace.cwd, world_path(world, "home/p/sub"));
    workspace_free(&workspace);

    free(world->spec.cwd);
    world->spec.cwd = text_copy("/tmp");
    assert_int_equal(find(world, world_path(world, "home/p"), &workspace), 0);
    assert_string_equal(workspace.cwd, "/tmp");
    workspace_free(&workspace);
}

static void the_command_cannot_start_in_proc_or_above(void **state)
{
    static const char *const paths[] = { "/proc/self/fd/7", "/proc/1/cwd", "/dev/fd/3", "..",
                                         "a/../../b",       "/x/.." };
    struct world *world = *state;
    struct workspace workspace;

    world_run(world, "mkdir home/p");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        free(world->spec.cwd);
        world->spec.cwd = text_copy(paths[i]);
        assert_int_equal(find(world, world_path(world, "home/p"), &workspace), -1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_directory_without_git_is_the_workspace),
        TEST(the_git_top_level_is_the_workspace),
        TEST(a_link_to_the_directory_is_resolved),
        TEST(an_empty_dot_git_does_not_count),
        TEST(any_byte_may_stand_in_a_path),
        TEST(what_is_no_directory_gets_an_error_that_says_so),
        TEST(the_system_is_refused),
        TEST(a_home_and_what_encloses_it_are_refused),
        TEST(a_place_of_credentials_is_refused),
        TEST(a_directory_that_looks_like_a_home_is_refused),
        TEST(an_ordinary_project_with_tool_settings_is_taken),
        TEST(our_own_state_is_refused),
        TEST(a_repository_of_dotfiles_does_not_make_the_home_the_workspace),
        TEST(a_git_of_another_user_above_is_ignored),
        TEST(a_linked_work_tree_brings_the_git_directory_of_its_repository),
        TEST(a_work_tree_of_a_bare_repository_brings_it),
        TEST(a_work_tree_is_found_with_relative_pointers),
        TEST(a_work_tree_may_have_a_newline_in_its_path),
        TEST(a_forged_pointer_to_a_private_repository_adds_nothing),
        TEST(a_forged_git_directory_cannot_name_another_one_as_its_common),
        TEST(a_broken_git_file_does_no_harm),
        TEST(a_submodule_leads_to_its_superproject),
        TEST(a_submodule_in_a_linked_work_tree_leads_to_it),
        TEST(a_forged_submodule_does_not_lead_to_what_is_around_it),
        TEST(the_command_starts_where_it_was_asked_to),
        TEST(the_command_cannot_start_in_proc_or_above),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
