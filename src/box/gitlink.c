#include "box/gitlink.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/gitconfig.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum {
    POINTER_MAX = PATH_MAX + 16, /* "gitdir: ", a path, a line end */
    CONFIG_MAX = 64 * 1024,      /* a submodule's config is a few hundred bytes */
};

void gitlink_free(struct gitlink *link)
{
    free(link->directory);
    place_close(&link->common);
    *link = GITLINK_NONE;
}

/* A file that holds one path behind `prefix`.  git takes off the line end and nothing else: a
 * newline inside the path belongs to it. */
static char *read_pointer(int dir, const char *name, const char *prefix)
{
    autofree char *content = file_text(dir, name, POINTER_MAX);

    if (!content || !text_starts(content, prefix))
        return NULL;
    size_t len = strlen(content);
    while (len && (content[len - 1] == '\n' || content[len - 1] == '\r'))
        content[--len] = '\0';
    return len > strlen(prefix) ? text_copy(content + strlen(prefix)) : NULL;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool has(int dir, const char *name)
{
    struct stat found;

    return fstatat(dir, name, &found, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What git itself asks of a git directory. */
static bool is_git_directory(int dir)
{
    return has(dir, "HEAD") && has(dir, "objects") && has(dir, "refs");
}

/* COMMON/worktrees/NAME, whose file `gitdir` names the very .git file that led here.  COMMON is
 * taken from where NAME lies, not from the file `commondir`: a forged one could name any
 * repository. */
static bool verify_worktree(const struct place *git, const struct stat *pointer, struct place *common)
{
    autofree char *back = read_pointer(git->fd, "gitdir", "");
    autoplace struct place named = PLACE_NONE, above = PLACE_NONE;
    const char *name = strrchr(git->path, '/');

    if (!back || place_open(git->fd, back, &named) < 0 || !same_file(&named.stat, pointer))
        return false;
    if (place_open(git->fd, "../..", &above) < 0 || !is_git_directory(above.fd))
        return false;
    /* Whoever may write into somebody else's directory could dress it up as a repository. */
    if (above.stat.st_uid != pointer->st_uid || (above.stat.st_mode & S_IWOTH))
        return false;

    autofree char *expected = text_format("%s/worktrees%s", above.path, name);
    if (strcmp(expected, git->path) != 0)
        return false;
    place_move(common, &above);
    return true;
}

/* SUPER/modules/NAME, whose core.worktree is this directory. */
static bool verify_submodule(const struct place *git, const struct place *tree)
{
    static const char *const files[] = { "config", "config.worktree" };

    if (!strstr(git->path, "/modules/") || !is_git_directory(git->fd))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        autofree char *config = file_text(git->fd, files[i], CONFIG_MAX);
        autofree char *back = config ? gitconfig_value(config, "core", "worktree") : NULL;
        autoplace struct place named = PLACE_NONE;

        if (back && place_open(git->fd, back, &named) == 0)
            return same_file(&named.stat, &tree->stat);
    }
    return false;
}

static void read_file(const struct place *tree, const struct stat *pointer, struct gitlink *out)
{
    autofree char *path = read_pointer(tree->fd, ".git", "gitdir: ");
    autoplace struct place git = PLACE_NONE;

    out->kind = GIT_BROKEN;
    if (!path || place_open(tree->fd, path, &git) < 0 || !S_ISDIR(git.stat.st_mode))
        return;
    if (verify_worktree(&git, pointer, &out->common))
        out->kind = GIT_WORKTREE;
    else if (verify_submodule(&git, tree))
        out->kind = GIT_SUBMODULE;
    if (out->kind != GIT_BROKEN)
        out->directory = text_copy(git.path);
}

/* A link named .git marks a top level as git sees it; where it leads is not added. */
static void read_directory(const struct place *tree, struct gitlink *out)
{
    autoplace struct place git = PLACE_NONE;

    if (place_open(tree->fd, ".git", &git) < 0 || !S_ISDIR(git.stat.st_mode) || !is_git_directory(git.fd))
        return;
    out->kind = GIT_TOP;
    out->directory = text_copy(git.path);
}

void gitlink_read(const struct place *tree, struct gitlink *out)
{
    struct stat found;

    *out = GITLINK_NONE;
    if (fstatat(tree->fd, ".git", &found, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    out->owner = found.st_uid;
    if (S_ISREG(found.st_mode))
        read_file(tree, &found, out);
    else if (S_ISDIR(found.st_mode) || S_ISLNK(found.st_mode))
        read_directory(tree, out);
}
