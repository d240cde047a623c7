#include "git/own.h"

#include "changes/changes.h"
#include "tests/support/unit.h"

static void what_git_writes_is_told_from_what_steers_it(void **state)
{
    static const struct {
        const char *path, *from;
        enum change_kind kind;
        enum side_type old, new;
        enum git_own want;
    } rows[] = {
        { "a", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_NOT_OWN },
        { ".gitignore", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_NOT_OWN },
        { ".git/index", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STATE },
        { ".git/refs/heads/a/b", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_OWN_STATE },
        { ".git/refs/heads/b", ".git/refs/heads/a", CHANGE_RENAMED, SIDE_FILE, SIDE_FILE, GIT_OWN_STATE },
        { ".git/objects/ab", NULL, CHANGE_REMOVED, SIDE_DIRECTORY, SIDE_NONE, GIT_OWN_STATE },
        { ".git/modules/a/b/index", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STATE },
        { ".git/worktrees/a/HEAD", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STATE },
        { ".git/hooks/a.sample", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_OWN_STATE },
        { ".git/config", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STEERS },
        { ".GIT/config", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STEERS },
        { "sub/.git/config", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_OWN_STEERS },
        { ".git/hooks/pre-commit", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_OWN_STEERS },
        { ".git/hooks", NULL, CHANGE_RETYPED, SIDE_DIRECTORY, SIDE_LINK, GIT_OWN_STEERS },
        { ".git/objects/info/alternates", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_OWN_STEERS },
        { ".git/modules/a/config", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STEERS },
        { ".git/worktrees/a/gitdir", NULL, CHANGE_CHANGED, SIDE_FILE, SIDE_FILE, GIT_OWN_STEERS },
        { ".git/new-in-a-later-git", NULL, CHANGE_ADDED, SIDE_NONE, SIDE_FILE, GIT_OWN_STEERS },
        { ".git", NULL, CHANGE_RETYPED, SIDE_DIRECTORY, SIDE_FILE, GIT_OWN_STEERS },
        { ".git", NULL, CHANGE_REMOVED, SIDE_DIRECTORY, SIDE_NONE, GIT_OWN_STEERS },
        { "out", ".git/config", CHANGE_RENAMED, SIDE_FILE, SIDE_FILE, GIT_OWN_STEERS },
        { "out", ".git", CHANGE_RENAMED, SIDE_DIRECTORY, SIDE_DIRECTORY, GIT_OWN_STEERS },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[64], from[64];
        struct change change = { .path = path,
                                 .from = rows[i].from ? from : NULL,
                                 .kind = rows[i].kind,
                                 .old.type = rows[i].old,
                                 .new.type = rows[i].new };

        strcpy(path, rows[i].path);
        strcpy(from, rows[i].from ? rows[i].from : "");
        if (git_own_change(&change) != rows[i].want)
            fail_msg("row %zu, %s", i, path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_git_writes_is_told_from_what_steers_it) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
