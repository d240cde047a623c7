#include "keeper/files_cp.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "inside/tree_read.h"
#include "keeper/files.h"
#include "keeper/files_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A path taken apart by the way it is written. */
struct named {
    char *path;       /* without slashes behind it */
    const char *name; /* its last component; NULL if that is no name: ".", "..", "/" */
    bool slash;       /* it must be a directory */
    bool contents;    /* what is in it is meant */
};

#define autonamed __attribute__((cleanup(named_free)))

static void named_free(struct named *named)
{
    free(named->path);
}

static void cut_slashes(char *path, bool *out_cut)
{
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--) {
        path[len - 1] = '\0';
        *out_cut = true;
    }
}

static struct named take_apart(const char *path)
{
    struct named named = { .path = text_copy(path) };

    cut_slashes(named.path, &named.slash);
    if (text_ends(named.path, "/.") && strlen(named.path) > 2) {
        named.path[strlen(named.path) - 2] = '\0';
        cut_slashes(named.path, &named.slash);
        named.slash = named.contents = true;
    }

    const char *slash = strrchr(named.path, '/'), *last = slash ? slash + 1 : named.path;

    named.name = tree_is_name(last, strlen(last)) ? last : NULL;
    named.contents = named.contents || !named.name;
    return named;
}

static int wrong(struct error *err, int number, const char *path)
{
    errno = number;
    return error_sys(err, "%.300s", path);
}

/* The directory that it lies in, as its owner wrote it: links on the way are his own. */
static int open_parent(const struct named *named, struct error *err)
{
    size_t len = (size_t)(named->name - named->path);
    autofree char *parent = text_format("%.*s", len ? (int)len : 1, len ? named->path : ".");
    int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open %.300s", parent) : fd;
}

/* --- out of the sandbox --- */

/* What lies at a path of the host: its type, 0 for nothing; a link is an error. */
static int look_at_target(const struct named *target, mode_t *out_type, struct error *err)
{
    struct stat status;

    *out_type = 0;
    if (fstatat(AT_FDCWD, target->path, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "%.300s", target->path);
    if (S_ISLNK(status.st_mode)) {
        error_set(err, ERROR_REFUSED, "%.300s is a link, and a copy does not follow one", target->path);
        return error_hint(err, "name what it leads to");
    }
    *out_type = status.st_mode & S_IFMT;
    return 0;
}

/* The directory that the copy goes into, and the name that it gets there; NULL: only what is in it. */
static int choose_target(const struct named *source, bool is_directory, const struct named *target,
                         const char **as, struct error *err)
{
    mode_t type = S_IFDIR;

    if (target->name && look_at_target(target, &type, err) < 0)
        return -1;
    if (type == S_IFDIR) {
        int fd = open(target->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (target->name ? O_NOFOLLOW : 0));

        *as = source->contents && is_directory ? NULL : source->name;
        return fd < 0 ? error_sys(err, "open %.300s", target->path) : fd;
    }
    if (type && (is_directory || target->slash))
        return wrong(err, ENOTDIR, target->path);
    if (!type && target->slash && !is_directory)
        return wrong(err, ENOENT, target->path);
    *as = target->name;
    return open_parent(target, err);
}

int files_cp_out(struct files *files, const char *source, const char *target, bool follow, int stream,
                 struct files_copy *copy, struct error *err)
{
    autonamed struct named from = take_apart(source), to = take_apart(target);
    bool through = follow || from.slash;
    struct files_info info;
    const char *as = NULL;

    if (files_stat(files, from.path, through, &info, err) < 0)
        return -1;

    bool is_directory = S_ISDIR(info.mode);

    if (from.slash && !is_directory)
        return wrong(err, ENOTDIR, from.path);
    if (strcmp(target, "-") == 0)
        return files_fetch_tar(files, from.path, through, from.contents, stream, copy, err);

    autoclose int dir = choose_target(&from, is_directory, &to, &as, err);

    if (dir < 0)
        return -1;
    return files_fetch(files, from.path, through, dir, as, copy, err);
}

/* --- into the sandbox --- */

struct source {
    int dir;
    char *name; /* in there, "." is the directory itself */
    bool is_directory;
};

#define autosource __attribute__((cleanup(source_close)))

static void source_close(struct source *source)
{
    own_close(&source->dir);
    free(source->name);
}

static int open_source(const struct named *named, bool follow, struct source *out, struct error *err)
{
    autofree char *real = follow ? realpath(named->path, NULL) : text_copy(named->path);
    struct stat status;

    if (!real)
        return error_sys(err, "%.300s", named->path);

    autonamed struct named whole = take_apart(real);

    out->name = text_copy(whole.name ? whole.name : ".");
    if (whole.name)
        out->dir = open_parent(&whole, err);
    else if ((out->dir = open(whole.path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        error_sys(err, "open %.300s", whole.path);
    if (out->dir < 0)
        return -1;
    if (fstatat(out->dir, out->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "%.300s", named->path);
    out->is_directory = S_ISDIR(status.st_mode);
    return named->slash && !out->is_directory ? wrong(err, ENOTDIR, named->path) : 0;
}

/* 1: it is a directory, 0: something else, or nothing (*out_there). */
static int look_inside(struct files *files, const struct named *target, bool *out_there, struct error *err)
{
    struct files_info info;

    *out_there = false;
    if (files_stat(files, target->path, true, &info, err) < 0)
        return err->sys_errno == ENOENT ? 0 : -1;
    *out_there = true;
    return S_ISDIR(info.mode) ? 1 : 0;
}

static int store(struct files *files, const struct named *from, const struct source *source,
                 const struct named *to, struct files_copy *copy, struct error *err)
{
    bool there;
    int is_directory = look_inside(files, to, &there, err);

    if (is_directory < 0)
        return -1;
    if (is_directory && from->contents && source->is_directory)
        return files_store(files, source->dir, source->name, to->path, true, copy, err);
    if (is_directory) {
        autofree char *path = text_format("%s%s%s", to->path, text_ends(to->path, "/") ? "" : "/", from->name);

        return files_store(files, source->dir, source->name, path, false, copy, err);
    }
    if (there && (source->is_directory || to->slash))
        return wrong(err, ENOTDIR, to->path);
    if (!there && to->slash && !source->is_directory)
        return wrong(err, ENOENT, to->path);
    return files_store(files, source->dir, source->name, to->path, false, copy, err);
}

int files_cp_in(struct files *files, const char *source, const char *target, bool follow, int stream,
                struct files_copy *copy, struct error *err)
{
    autonamed struct named from = take_apart(source), to = take_apart(target);
    autosource struct source opened = { .dir = -1 };

    if (strcmp(source, "-") == 0)
        return files_store_tar(files, stream, to.path, copy, err);
    if (open_source(&from, follow || from.slash, &opened, err) < 0)
        return -1;
    return store(files, &from, &opened, &to, copy, err);
}
