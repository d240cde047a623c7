#include "box/workspace.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/credentials.h"
#include "box/gitlink.h"
#include "box/host.h"
#include "box/place.h"
#include "box/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

void workspace_free(struct workspace *workspace)
{
    free(workspace->root);
    free(workspace->cwd);
    *workspace = (struct workspace){ 0 };
}

static int open_start(const char *directory, struct place *out, struct error *err)
{
    if (place_open(AT_FDCWD, directory, out) < 0) {
        if (errno == ENOENT)
            return error_set(err, ERROR_MISSING,
                             "there is no directory '%.200s'; make it, or name another with -C", directory);
        if (errno == ENOTDIR)
            return error_set(err, ERROR_INVALID,
                             "a part of '%.200s' is a file, not a directory; name a directory with -C",
                             directory);
        if (errno == ELOOP)
            return error_set(err, ERROR_INVALID,
                             "'%.200s' goes through links that lead in a circle or through /proc", directory);
        return error_sys(err, "open the workspace '%.200s'", directory);
    }
    if (!S_ISDIR(out->stat.st_mode))
        return error_set(err, ERROR_INVALID,
                         "'%.200s' is a file, not a directory; name the directory it is in with -C", directory);
    return 0;
}

/* The search for the top level. */
struct search {
    const struct host *host;
    const struct place *start;
    struct place top;    /* the best found so far */
    struct place common; /* the repository of a linked work tree */
    char *module;        /* git directory of the submodule in `top`; its superproject is sought */
};

/* A work tree counts only if it and its .git belong to somebody who could change the start
 * directory anyway: the user, root, or that directory's owner.  Otherwise another user's /srv/.git
 * would decide what is visible (git ignores such repositories too). */
static bool is_trusted(const struct search *search, const struct place *at, uid_t git_owner)
{
    const uid_t trusted[] = { search->host->uid, 0, search->start->stat.st_uid };
    bool tree = false, git = false;

    for (size_t i = 0; i < ARRAY_LEN(trusted); i++) {
        tree = tree || at->stat.st_uid == trusted[i];
        git = git || git_owner == trusted[i];
    }
    return tree && git;
}

/* A place above the start that could not be a workspace itself ends the search; a home directory
 * that is a repository of dotfiles, for example. */
static bool is_refused(const struct search *search, const struct place *at)
{
    struct error ignored;

    if (strcmp(at->path, search->start->path) == 0) /* was looked at */
        return false;
    return credentials_check_workspace(search->host, at, &ignored) < 0;
}

/* Whether the submodule found before is one of this work tree. */
static bool encloses_module(const struct search *search, const struct gitlink *link)
{
    autofree char *modules = text_format("%s/modules", link->directory ? link->directory : "");

    return !search->module || (link->directory && path_within(search->module, modules));
}

/* Looks at one directory and keeps it if it is a top level; true if the search is over. */
static bool look_at(struct search *search, const struct place *at)
{
    autogitlink struct gitlink link = GITLINK_NONE;
    autoplace struct place top = PLACE_NONE;

    gitlink_read(at, &link);
    if (link.kind == GIT_NONE)
        return false;
    if (!is_trusted(search, at, link.owner) || is_refused(search, at) || !encloses_module(search, &link) ||
        place_open(at->fd, ".", &top) < 0)
        return true;

    free(search->module);
    search->module = link.kind == GIT_SUBMODULE ? steal_ptr(&link.directory) : NULL;
    if (link.kind == GIT_WORKTREE)
        place_move(&search->common, &link.common);
    place_move(&search->top, &top);
    return link.kind != GIT_SUBMODULE;
}

/* Goes up as git does: to the next `.git`, but not out of the file system it started in. */
static void find_top(struct search *search)
{
    autoplace struct place at = PLACE_NONE;

    if (place_open(search->start->fd, ".", &at) < 0)
        return;
    while (!look_at(search, &at)) {
        autoplace struct place above = PLACE_NONE;

        if (strcmp(at.path, "/") == 0 || place_open(at.fd, "..", &above) < 0 ||
            above.stat.st_dev != search->start->stat.st_dev)
            return;
        place_move(&at, &above);
    }
}

/* The git directory of a linked work tree, unless it is visible already or must not be. */
static void add_common(const struct search *search, const char *root, struct trees *trees)
{
    const struct place *common = &search->common;

    if (common->fd < 0 || path_within(common->path, root) || path_within(root, common->path) ||
        is_refused(search, common))
        return;
    trees_add(trees, common, common->path, TREE_COW, TREE_WHY_GIT);
}

/* Where the command starts: -w, counted from the directory the user is in. */
static int choose_cwd(const struct spec *spec, const char *start, char **out, struct error *err)
{
    const char *wish = spec->cwd ? spec->cwd : "";

    if (strstr(wish, "/../") || text_ends(wish, "/..") || strcmp(wish, "..") == 0 || text_starts(wish, "../"))
        return error_set(err, ERROR_INVALID,
                         "the working directory '%.200s' contains '..'; write its plain path", wish);
    if (path_within(wish, "/proc") || path_within(wish, "/dev"))
        return error_set(err, ERROR_REFUSED, "a command cannot start in '%.200s'; name a directory of files",
                         wish);
    *out = *wish == '/' ? text_copy(wish) : *wish ? text_format("%s/%s", start, wish) : text_copy(start);
    return 0;
}

int workspace_find(const struct spec *spec, const struct host *host, struct workspace *out, struct trees *trees,
                   struct error *err)
{
    autoplace struct place start = PLACE_NONE;
    struct search search = { .host = host, .start = &start, .top = PLACE_NONE, .common = PLACE_NONE };

    *out = (struct workspace){ 0 };
    if (open_start(spec->directory, &start, err) < 0 || credentials_check_workspace(host, &start, err) < 0 ||
        choose_cwd(spec, start.path, &out->cwd, err) < 0)
        return -1;
    find_top(&search);

    const struct place *top = search.top.fd < 0 ? &start : &search.top;
    out->root = text_copy(top->path);
    trees_add(trees, top, top->path, TREE_COW, TREE_WHY_WORKSPACE);
    add_common(&search, top->path, trees);

    free(search.module);
    place_close(&search.top);
    place_close(&search.common);
    return 0;
}
