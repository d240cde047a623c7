#include "box/private_dir.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
    LINKS_MAX = 40,      /* as the kernel's own limit */
    OVERFLOW_ID = 65534, /* how an owner shows that has no name in our user namespace */
};

/* /proc/self/ns/user of the first user namespace: a fixed number in every kernel since 3.8. */
static const ino_t INITIAL_USER_NAMESPACE = 0xEFFFFFFDU;

bool private_dir_initial_namespace(void)
{
    struct stat found;

    return stat("/proc/self/ns/user", &found) == 0 && found.st_ino == INITIAL_USER_NAMESPACE;
}

/* How far the walk has come. */
struct walk {
    int fd;           /* the directory we are in */
    struct text path; /* its name, "" for the root */
    char *rest;       /* what is still to be walked */
    int links;
    bool make;
};

static void walk_end(struct walk *walk)
{
    own_close(&walk->fd);
    text_free(&walk->path);
    free(walk->rest);
}

/* Root's own ids show as the overflow id in a user namespace that does not map them. */
static bool is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0 || (owner == OVERFLOW_ID && !private_dir_initial_namespace());
}

/* A group that has the number of its only user is that user's own (umask 002 systems). */
static bool group_is_own(gid_t group)
{
    return group == 0 || (group == getegid() && (uid_t)group == geteuid());
}

static int check_step(const struct stat *found, const char *above, const char *name, struct error *err)
{
    bool others_write =
        (found->st_mode & S_IWOTH) || ((found->st_mode & S_IWGRP) && !group_is_own(found->st_gid));

    if (!is_trusted(found->st_uid))
        return error_set(err, ERROR_REFUSED,
                         "%.200s/%.100s belongs to another user (uid %u), who could replace it", above, name,
                         (unsigned)found->st_uid);
    if (S_ISLNK(found->st_mode))
        return 0;
    if (!S_ISDIR(found->st_mode))
        return error_set(err, ERROR_REFUSED, "%.200s/%.100s is not a directory", above, name);
    if (others_write && !(found->st_mode & S_ISVTX))
        return error_set(err, ERROR_REFUSED, "other users can write to %.200s/%.100s; close it (chmod go-w)",
                         above, name);
    return 0;
}

static void append_component(struct text *path, const char *name)
{
    if (strcmp(name, "..") != 0) {
        text_addf(path, "/%s", name);
        return;
    }
    char *slash = path->len ? strrchr(path->data, '/') : NULL;
    if (slash) {
        *slash = '\0';
        path->len = (size_t)(slash - path->data);
    }
}

static int walk_to_root(struct walk *walk, struct error *err)
{
    own_close(&walk->fd);
    text_clear(&walk->path);
    walk->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return walk->fd < 0 ? error_sys(err, "open /") : 0;
}

static int follow_link(struct walk *walk, int link, struct error *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(link, "", target, sizeof target - 1);

    if (len < 0)
        return error_sys(err, "read a link below %.200s", text_string(&walk->path));
    if (++walk->links > LINKS_MAX)
        return error_set(err, ERROR_REFUSED, "too many symbolic links below %.200s", text_string(&walk->path));
    target[len] = '\0';

    char *rest = text_format("%s/%s", target, walk->rest);
    free(walk->rest);
    walk->rest = rest;
    return target[0] == '/' ? walk_to_root(walk, err) : 0;
}

/* Goes one component further.  1: it does not exist (and was not to be made). */
static int walk_step(struct walk *walk, const char *name, struct error *err)
{
    const char *above = text_string(&walk->path);
    autoclose int next = -1;
    struct stat found;

    next = openat(walk->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOENT) {
        if (!walk->make)
            return 1;
        if (mkdirat(walk->fd, name, 0700) < 0 && errno != EEXIST)
            return error_sys(err, "make %.200s/%.100s", above, name);
        next = openat(walk->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    }
    if (next < 0 || fstat(next, &found) < 0)
        return error_sys(err, "open %.200s/%.100s", above, name);
    if (check_step(&found, above, name, err) < 0)
        return -1;
    if (S_ISLNK(found.st_mode))
        return follow_link(walk, next, err);
    append_component(&walk->path, name);
    own_close(&walk->fd);
    walk->fd = steal_fd(&next);
    return 0;
}

/* Takes the first component off the rest; NULL if there is none.  The caller frees. */
static char *take_component(struct walk *walk)
{
    char *at = walk->rest + strspn(walk->rest, "/");
    size_t len = strcspn(at, "/");
    char *name = len ? text_format("%.*s", (int)len, at) : NULL;

    memmove(walk->rest, at + len, strlen(at + len) + 1);
    return name;
}

static int walk_all(struct walk *walk, struct error *err)
{
    int missing = 0;

    if (walk_to_root(walk, err) < 0)
        return -1;
    for (char *name; (name = take_component(walk)); free(name)) {
        if (strcmp(name, ".") == 0)
            continue;
        if (missing && strcmp(name, "..") == 0)
            missing = error_set(err, ERROR_INVALID, "'..' below %.200s, which does not exist",
                                text_string(&walk->path));
        else if (missing || (missing = walk_step(walk, name, err)) == 1)
            append_component(&walk->path, name);
        if (missing < 0) {
            free(name);
            return -1;
        }
    }
    return 0;
}

char *private_dir_find(const char *path, struct error *err)
{
    struct walk walk = { .fd = -1, .rest = text_copy(path) };
    char *found = NULL;

    if (walk_all(&walk, err) == 0)
        found = walk.path.len ? text_steal(&walk.path) : text_copy("/");
    walk_end(&walk);
    return found;
}

static int check_ours(const struct stat *found, const char *path, struct error *err)
{
    if (found->st_uid != geteuid())
        return error_set(err, ERROR_REFUSED, "%.200s belongs to another user (uid %u)", path,
                         (unsigned)found->st_uid);
    if (found->st_mode & 077)
        return error_set(err, ERROR_REFUSED, "%.200s is open to other users; close it: chmod 700 %.200s", path,
                         path);
    return 0;
}

int private_dir_make(const char *path, struct error *err)
{
    struct stat found;

    /* The usual case: it is there, and the way to it was walked when it was looked for. */
    if (lstat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return check_ours(&found, path, err);

    struct walk walk = { .fd = -1, .rest = text_copy(path), .make = true };
    int result = walk_all(&walk, err);

    if (result == 0 && fstat(walk.fd, &found) < 0)
        result = error_sys(err, "look at %.200s", path);
    if (result == 0)
        result = check_ours(&found, path, err);
    walk_end(&walk);
    return result;
}
