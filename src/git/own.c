#include "git/own.h"

#include "base/array.h"
#include "base/glob.h"
#include "base/text.h"
#include "changes/changes.h"

#include <string.h>
#include <strings.h>

/* Only what is listed is folded away; a file that a later git invents is shown. */
static const char *const state[] = { "HEAD",
                                     "index",
                                     "index.lock",
                                     "sharedindex.*",
                                     "packed-refs",
                                     "ORIG_HEAD",
                                     "FETCH_HEAD",
                                     "MERGE_HEAD",
                                     "MERGE_MODE",
                                     "MERGE_MSG",
                                     "MERGE_RR",
                                     "AUTO_MERGE",
                                     "CHERRY_PICK_HEAD",
                                     "REVERT_HEAD",
                                     "REBASE_HEAD",
                                     "COMMIT_EDITMSG",
                                     "SQUASH_MSG",
                                     "TAG_EDITMSG",
                                     "description",
                                     "gc.log",
                                     "gc.pid",
                                     "hooks/*.sample",
                                     "info/refs",
                                     "logs/**",
                                     "refs/**",
                                     "objects/[0-9a-f][0-9a-f]/*",
                                     "objects/pack/*",
                                     "objects/info/packs",
                                     "objects/info/commit-graph",
                                     "objects/info/commit-graphs/*" };

static bool is_state(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(state); i++) {
        enum glob_place place = glob_compare(state[i], path);

        if (place == GLOB_YES || (place == GLOB_BELOW && text_ends(state[i], "/**")))
            return true;
    }
    return false;
}

/* A submodule's or linked work tree's own directory: a name with any number of slashes, then the same
 * files again. */
enum git_own git_own_below(const char *path)
{
    if (is_state(path))
        return GIT_OWN_STATE;
    if (text_starts(path, "modules/") || text_starts(path, "worktrees/"))
        for (const char *slash = strchr(path, '/'); (slash = strchr(slash + 1, '/'));)
            if (is_state(slash + 1))
                return GIT_OWN_STATE;
    return GIT_OWN_STEERS;
}

/* What stands behind the first component called .git: "" for .git itself, NULL if there is none.  Other
 * spellings of the name are the watch-list's. */
static const char *below_git(const char *path)
{
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");

        if (len == 4 && strncasecmp(at, ".git", 4) == 0)
            return at + len + (at[len] == '/');
        at += len + (at[len] == '/');
    }
    return NULL;
}

static bool is_directory(const struct change *change)
{
    return (change->old.type == SIDE_DIRECTORY || change->old.type == SIDE_NONE) &&
           (change->new.type == SIDE_DIRECTORY || change->new.type == SIDE_NONE);
}

/* A directory alone steers nothing, unless it is the repository. */
enum git_own git_own_change(const struct change *change)
{
    const char *here = below_git(change->path), *there = change->from ? below_git(change->from) : NULL;

    if (!here && !there)
        return GIT_NOT_OWN;
    if (!here)
        return GIT_OWN_STEERS;
    if (is_directory(change))
        return *here || change->kind != CHANGE_REMOVED ? GIT_OWN_STATE : GIT_OWN_STEERS;
    return there && git_own_below(there) == GIT_OWN_STEERS ? GIT_OWN_STEERS : git_own_below(here);
}

const char *git_own_reason(const struct change *change)
{
    const char *below = below_git(change->path);

    if (below && !*below)
        return "it tells git where the repository is; if you want that, change it yourself";
    return "git's own files never come home as files: commits come as a branch, and what steers git you change "
           "yourself (git config, or a copy made by hand)";
}
