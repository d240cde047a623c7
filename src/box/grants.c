#include "box/grants.h"

#include "base/error.h"
#include "base/glob.h"
#include "base/own.h"
#include "base/text.h"
#include "box/credentials.h"
#include "box/hide.h"
#include "box/host.h"
#include "box/names.h"
#include "box/place.h"
#include "box/toolroots.h"
#include "box/tree.h"
#include "spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* --- tool roots and caches: what is not right is left out, silently ------------------------- */

/* Where the files of a tool in the home directory may lie, if its place is a link. */
static bool leads_somewhere_known(const struct host *host, const char *path)
{
    return path_within(path, host->home) || path_within(path, "/nix/store") ||
           path_within(path, "/home/linuxbrew/.linuxbrew");
}

/* A tool root must not bring in what the user would have been refused: another user's files, a
 * directory of credentials that a link leads to, the home itself, our state. */
static bool is_usable(const struct host *host, const struct place *place, const char *expected)
{
    bool ours = place->stat.st_uid == host->uid || place->stat.st_uid == 0;
    bool moved = strcmp(place->path, expected) != 0;

    if (!S_ISDIR(place->stat.st_mode) || (path_within(expected, host->home) && !ours && !moved))
        return false;
    if (moved && (!leads_somewhere_known(host, place->path) || credentials_around(host, place->path)))
        return false;
    return !path_within(host->home, place->path) && !path_within(host->state, place->path) &&
           !path_within(place->path, host->state);
}

/* Whether the trees that are there make this one superfluous or wrong: one inside the workspace
 * is visible with it, one around it would show what lies beside it. */
static bool collides(const struct trees *trees, const char *target, enum tree_mode mode)
{
    for (size_t i = 0; i < trees->len; i++) {
        const struct tree *tree = &trees->items[i];

        if (strcmp(tree->why, TREE_WHY_WORKSPACE) == 0 &&
            (path_within(target, tree->target) || path_within(tree->target, target)))
            return true;
        if (strcmp(tree->target, "/") != 0 && path_within(target, tree->target) &&
            strcmp(tree->source, tree->target) == 0 && tree->mode == mode && !tree->file)
            return true;
    }
    return false;
}

/* Whether an address in the text carries a name or password: scheme://user:password@host */
static bool has_login_in_url(const char *content)
{
    for (const char *at = content; (at = strstr(at, "://"));) {
        at += strlen("://");
        if (memchr(at, '@', strcspn(at, "/ \t\r\n\"'")))
            return true;
    }
    return false;
}

/* Whether a configuration file of a tool holds a login.  Too large to be one counts as yes. */
static bool holds_secret(int dir, const char *name)
{
    static const char *const words[] = { "token", "passw", "secret", "credential" };
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char content[8 * 1024];

    if (fd < 0)
        return errno != ENOENT;
    ssize_t len = read(fd, content, sizeof content - 1);
    if (len < 0 || len == (ssize_t)sizeof content - 1)
        return true;
    content[len] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasestr(content, words[i]))
            return true;
    return has_login_in_url(content);
}

static int hide_in_toolroot(const struct toolroot *row, const struct place *place, struct tree *tree,
                            struct error *err)
{
    autostrings struct strings patterns = STRINGS_NONE;

    for (size_t i = 0; i < TOOLROOT_HIDE_MAX && *row->hide[i]; i++)
        strings_add(&patterns, row->hide[i]);
    if (*row->suspect && holds_secret(place->fd, row->suspect))
        strings_add(&tree->hide, row->suspect);
    return hide_find(place->fd, &patterns, &tree->hide, err);
}

static int add_toolroot(const struct toolroot *row, const struct host *host, int home, struct trees *trees,
                        struct error *err)
{
    autoplace struct place place = PLACE_NONE;
    bool absolute = row->path[0] == '/';

    if ((!absolute && home < 0) || place_open(absolute ? AT_FDCWD : home, row->path, &place) < 0)
        return 0;
    autofree char *target = absolute ? text_copy(row->path) : text_format("%s/%s", host->home, row->path);

    if (!is_usable(host, &place, target) || collides(trees, target, row->mode))
        return 0;
    struct tree *tree = trees_add(trees, &place, target, row->mode,
                                  row->kind == TOOLROOT_TOOL ? TREE_WHY_TOOLS : TREE_WHY_CACHE);
    return hide_in_toolroot(row, &place, tree, err);
}

static int add_toolroots(const struct spec *spec, const struct host *host, struct trees *trees,
                         struct error *err)
{
    autoclose int home = strcmp(host->home, "/") == 0 ? -1 : open(host->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct names names = NAMES_NONE;
    int result = 0;

    if (home >= 0 && (spec->tools || spec->caches))
        names_read(home, &names);
    for (size_t i = 0; i < toolroots_len && result == 0; i++) {
        const struct toolroot *row = &toolroots[i];
        bool wanted = row->kind == TOOLROOT_TOOL ? spec->tools : spec->caches;

        if (!wanted || (row->path[0] != '/' && !names_may_have(&names, row->path)))
            continue;
        if (add_toolroot(row, host, home, trees, err) < 0)
            result = error_while(err, "tools in %.200s", row->path);
    }
    strings_free(&names.sorted);
    return result;
}

/* --- what the owner named: what is not right is an error ------------------------------------ */

/* The sandbox's own, which nothing may cover. */
static const char *const reserved_targets[] = { "/proc", "/sys", "/dev", "/run/cove" };

static bool has_parent_component(const char *path)
{
    return glob_compare("**/..", path) == GLOB_YES || glob_compare("**/..", path) == GLOB_BELOW;
}

/* ~ expanded, relative ones counted from the directory the user is in, "." and doubled slashes
 * removed.  Links are left as they are: the path stays the one that was named. */
static char *full_path(const struct host *host, const char *named)
{
    bool home = text_starts(named, "~/") || strcmp(named, "~") == 0;
    const char *base = home ? host->home : *named == '/' ? "" : host->cwd;
    autofree char *joined = text_format("%s/%s", base, home ? named + 1 : named);
    struct text path = TEXT_NONE;

    for (const char *at = joined + strspn(joined, "/"); *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");

        if (len != 1 || *at != '.')
            text_addf(&path, "/%.*s", (int)len, at);
        at += len;
    }
    return path.len ? text_steal(&path) : text_copy("/");
}

static int check_kind(const struct place *place, const char *named, struct error *err)
{
    mode_t type = place->stat.st_mode & S_IFMT;
    const char *what = type == S_IFSOCK  ? "a socket: whoever listens there works for the host"
                       : type == S_IFIFO ? "a pipe of the host"
                       : type == S_IFCHR ? "a device"
                       : type == S_IFBLK ? "a disk"
                                         : NULL;

    return what ? error_set(err, ERROR_REFUSED, "'%.200s' cannot be granted: it is %s", named, what) : 0;
}

static int check_target(const struct trees *trees, const struct place *source, const char *target,
                        struct error *err)
{
    const struct tree *around = trees_around(trees, target);

    if (strcmp(target, "/") == 0)
        return error_set(err, ERROR_REFUSED, "nothing can be mounted over the root; name a directory below it");
    if (has_parent_component(target))
        return error_set(err, ERROR_INVALID, "'%.200s' contains '..'; write its plain path", target);
    for (size_t i = 0; i < ARRAY_LEN(reserved_targets); i++)
        if (path_within(target, reserved_targets[i]) || path_within(reserved_targets[i], target))
            return error_set(err, ERROR_REFUSED, "nothing can be mounted at '%.200s': %s is the sandbox's own",
                             target, reserved_targets[i]);

    /* A read-only tree has to hold something to mount on. */
    if (around && around->mode == TREE_RO && strcmp(around->target, target) != 0) {
        autofree char *below = text_format("%s%s", around->source, target + strlen(around->target));
        struct stat found;

        if (stat(below, &found) < 0 || S_ISDIR(found.st_mode) != S_ISDIR(source->stat.st_mode))
            return error_set(
                err, ERROR_INVALID,
                "'%.200s' cannot be mounted on: it lies in %.100s, which is read-only, and is not there",
                target, around->target);
    }
    return 0;
}

/* What stands at the target already: the same thing once more is fine, a tool root gives way,
 * anything else is a contradiction. */
enum standing { STANDS_NOTHING, STANDS_THE_SAME, STANDS_IN_THE_WAY };

static int judge_target(const struct trees *trees, const struct place *source, const char *target,
                        enum tree_mode mode, enum standing *out, struct error *err)
{
    const struct tree *there = trees_at(trees, target);

    if (!there)
        *out = STANDS_NOTHING;
    else if (there->device == source->stat.st_dev && there->inode == source->stat.st_ino && there->mode == mode)
        *out = STANDS_THE_SAME;
    else if (strcmp(there->why, TREE_WHY_TOOLS) == 0 || strcmp(there->why, TREE_WHY_CACHE) == 0)
        *out = STANDS_IN_THE_WAY;
    else
        return error_set(err, ERROR_INVALID, "'%.200s' is named twice: it is the %s already", target,
                         strcmp(there->why, TREE_WHY_GRANT) == 0 ? "target of another grant" : there->why);
    return 0;
}

static int open_source(const struct host *host, const char *path, const char *named, struct place *out,
                       struct error *err)
{
    if (place_open(AT_FDCWD, path, out) < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return error_set(err, ERROR_MISSING, "'%.200s' does not exist; make it, or do not grant it", named);
        if (errno == ELOOP)
            return error_set(err, ERROR_REFUSED,
                             "'%.200s' goes through links that lead in a circle or through /proc", named);
        return error_sys(err, "open '%.200s'", named);
    }
    return check_kind(out, named, err) < 0 || credentials_check_grant(host, out, err) < 0 ? -1 : 0;
}

/* `target` NULL: at the path that was named. */
static int add_grant(const struct host *host, const char *named, const char *target, enum tree_mode mode,
                     struct trees *trees, struct error *err)
{
    autofree char *path = full_path(host, named), *at = NULL;
    autoplace struct place place = PLACE_NONE;
    enum standing standing = STANDS_NOTHING;

    if (open_source(host, path, named, &place, err) < 0)
        return -1;
    at = target ? full_path(host, target) : text_copy(has_parent_component(path) ? place.path : path);
    if (judge_target(trees, &place, at, mode, &standing, err) < 0)
        return -1;
    if (standing == STANDS_THE_SAME)
        return 0;
    if (standing == STANDS_IN_THE_WAY)
        trees_remove(trees, trees_at(trees, at));
    if (check_target(trees, &place, at, err) < 0)
        return -1;
    trees_add(trees, &place, at, mode, TREE_WHY_GRANT);
    return 0;
}

int grants_check(const struct host *host, const struct trees *trees, const char *path, enum tree_mode mode,
                 struct error *err)
{
    autoplace struct place place = PLACE_NONE;
    enum standing standing = STANDS_NOTHING;

    if (open_source(host, path, path, &place, err) < 0 ||
        judge_target(trees, &place, path, mode, &standing, err) < 0)
        return -1;
    return check_target(trees, &place, path, err);
}

static int add_list(const struct host *host, const struct strings *paths, enum tree_mode mode, const char *key,
                    struct trees *trees, struct error *err)
{
    for (size_t i = 0; i < paths->len; i++)
        if (add_grant(host, paths->items[i], NULL, mode, trees, err) < 0)
            return error_while(err, "%s", key);
    return 0;
}

int grants_add(const struct spec *spec, const struct host *host, struct trees *trees, struct error *err)
{
    if (add_toolroots(spec, host, trees, err) < 0 ||
        add_list(host, &spec->read, TREE_RO, "--read (files.read)", trees, err) < 0 ||
        add_list(host, &spec->write, TREE_COW, "--write (files.write)", trees, err) < 0)
        return -1;
    for (size_t i = 0; i < spec->volumes.len; i++) {
        const struct volume *volume = &spec->volumes.items[i];

        if (add_grant(host, volume->source, volume->target, volume->mode, trees, err) < 0)
            return error_while(err, "-v (volumes)");
    }
    trees_sort(trees);
    return 0;
}

/* --- hiding --------------------------------------------------------------------------------- */

/* A file cannot be both: whoever wrote the two lines has to say which one is meant. */
static int check_hidden_file(const struct spec *spec, const struct tree *tree, struct error *err)
{
    for (size_t i = 0; i < spec->hide.len; i++)
        if (!strchr(spec->hide.items[i], '/') &&
            glob_match(spec->hide.items[i], strrchr(tree->source, '/') + 1))
            return error_set(err, ERROR_INVALID,
                             "%.200s is granted, but files.hide has '%.100s'; remove one of them", tree->source,
                             spec->hide.items[i]);
    return 0;
}

/* The image's, the tools' and git's own files are not the user's: `*.pem` must not take the
 * certificates away from every Python. */
static bool is_users(const struct tree *tree)
{
    return strcmp(tree->why, TREE_WHY_WORKSPACE) == 0 || strcmp(tree->why, TREE_WHY_GRANT) == 0;
}

/* A path that a person would write names the file it names; all else is a pattern of the tree. */
static char *pattern_for(const struct host *host, const struct tree *tree, const char *pattern)
{
    autofree char *path = text_starts(pattern, "~/")   ? text_format("%s/%s", host->home, pattern + 2)
                          : text_starts(pattern, "./") ? text_format("%s/%s", host->cwd, pattern + 2)
                                                       : text_copy(pattern);

    if (path_within(path, tree->source) && strlen(path) > strlen(tree->source) + 1)
        return text_copy(path + strlen(tree->source));
    return steal_ptr(&path);
}

static int hide_in_tree(const struct spec *spec, const struct host *host, struct tree *tree, struct error *err)
{
    autostrings struct strings patterns = STRINGS_NONE;
    autoclose int fd = open(tree->source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open %.200s", tree->source);
    for (size_t i = 0; i < spec->hide.len; i++) {
        if (hide_check_pattern(spec->hide.items[i], err) < 0)
            return -1;
        strings_take(&patterns, pattern_for(host, tree, spec->hide.items[i]));
    }
    if (hide_find(fd, &patterns, &tree->hide, err) < 0)
        return error_while(err, "hide files in %.200s", tree->source);
    return 0;
}

int grants_hide(const struct spec *spec, const struct host *host, struct trees *trees, struct error *err)
{
    for (size_t i = 0; spec->hide.len && i < trees->len; i++) {
        struct tree *tree = &trees->items[i];

        if (!is_users(tree))
            continue;
        if ((tree->file ? check_hidden_file(spec, tree, err) : hide_in_tree(spec, host, tree, err)) < 0)
            return -1;
    }
    return 0;
}
