#include "changes/autorun.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/classify.h"
#include "changes/scan.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DEPTH_MAX = 256, /* each level holds one descriptor */
    FOUND_MAX = 1 << 16,
};

struct hunt {
    struct autorun *out;
    struct text path;
    int depth;
    struct error *err;
};

void autorun_free(struct autorun *autorun)
{
    for (size_t i = 0; i < autorun->len; i++)
        free(autorun->items[i].path);
    free(autorun->items);
    *autorun = AUTORUN_NONE;
}

static int failed(const struct hunt *hunt)
{
    return error_sys(hunt->err, "look for files that act by merely being there in %.200s",
                     hunt->path.len ? text_string(&hunt->path) : "the workspace");
}

static int add(struct hunt *hunt, const struct stat *status)
{
    hunt->out->more = hunt->out->len >= FOUND_MAX;
    if (hunt->out->more)
        return 0;
    *array_add(hunt->out) =
        (struct autorun_place){ text_copy(text_string(&hunt->path)), status->st_dev, status->st_ino };
    return 0;
}

static bool is_autorun(const char *path, const struct classify_side *side)
{
    struct classify_input input = { .path = path, .path_len = strlen(path), .new = *side };
    struct classify_verdict verdict;

    classify(&input, &verdict);
    return verdict.class == CLASSIFY_AUTORUN;
}

/* Whatever is put into it. */
static bool is_autorun_directory(const char *path)
{
    autofree char *any = text_format("%s/cove-any-name", path);

    return is_autorun(any, &(struct classify_side){ .mode = S_IFREG | 0644, .cut = true });
}

static bool is_autorun_link(int dir, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir, name, target, sizeof target);

    return is_autorun(path, &(struct classify_side){ .mode = S_IFLNK | 0777,
                                                     .bytes = len < 0 ? NULL : target,
                                                     .len = len < 0 ? 0 : (size_t)len,
                                                     .cut = len < 0 || len == sizeof target });
}

static bool is_bare_repository(int dir)
{
    const char *there[CLASSIFY_TELLING];
    size_t len = 0;

    for (size_t i = 0; i < CLASSIFY_TELLING; i++)
        if (faccessat(dir, classify_telling[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            there[len++] = classify_telling[i];
    return classify_bare_repository(there, len);
}

enum { CLOSED = 1 }; /* the directory can be listed, but nothing in it looked at */

static int hunt_in(struct hunt *hunt, int dir);

static int visit_directory(struct hunt *hunt, int dir, const char *name, const struct stat *status)
{
    autoclose int fd = -1;

    if (is_autorun_directory(text_string(&hunt->path)) || hunt->depth >= DEPTH_MAX ||
        hunt->path.len >= DIRECTORY_PATH_MAX)
        return add(hunt, status);
    fd = scan_open(dir, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return add(hunt, status);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV ? 0 : failed(hunt);
    if (is_bare_repository(fd))
        return add(hunt, status);
    hunt->depth++;
    int result = hunt_in(hunt, steal_fd(&fd));
    hunt->depth--;
    return result == CLOSED ? add(hunt, status) : result;
}

static int visit(struct hunt *hunt, int dir, const char *name)
{
    const char *path = text_string(&hunt->path);
    struct stat status;

    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
        if (errno == EACCES || errno == EPERM)
            return CLOSED;
        return errno == ENOENT ? 0 : failed(hunt);
    }
    if (S_ISDIR(status.st_mode))
        return visit_directory(hunt, dir, name, &status);
    if (S_ISLNK(status.st_mode) ? is_autorun_link(dir, name, path)
                                : is_autorun(path, &(struct classify_side){ status.st_mode, NULL, 0, true }))
        return add(hunt, &status);
    return S_ISREG(status.st_mode) && (status.st_mode & (S_ISUID | S_ISGID)) ? add(hunt, &status) : 0;
}

/* Owns `dir`. */
static int hunt_in(struct hunt *hunt, int dir)
{
    autoclosedir DIR *entries = fdopendir(dir);
    size_t before = hunt->path.len;
    int result = 0;

    if (!entries) {
        failed(hunt);
        close(dir);
        return -1;
    }
    for (const struct dirent *entry; result == 0 && !hunt->out->more && (entry = sys_next_entry(entries));) {
        text_add(&hunt->path, before ? "/" : "");
        text_add(&hunt->path, entry->d_name);
        result = visit(hunt, dir, entry->d_name);
        text_cut(&hunt->path, before);
        errno = 0;
    }
    return result == 0 && errno ? failed(hunt) : result;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct autorun_place *)a)->path, ((const struct autorun_place *)b)->path);
}

/* The tree itself is what git takes for a repository: then its parts are places. */
static int add_top(struct hunt *hunt, int dir)
{
    static const char *const parts[] = { "HEAD", "commondir", "config", "hooks", "info", "objects", "refs" };
    int result = 0;

    for (size_t i = 0; result == 0 && i < ARRAY_LEN(parts); i++) {
        struct stat status;

        if (fstatat(dir, parts[i], &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        text_add(&hunt->path, parts[i]);
        result = add(hunt, &status);
        text_clear(&hunt->path);
    }
    return result;
}

int autorun_find(int tree, struct autorun *out, struct error *err)
{
    struct autorun found = AUTORUN_NONE;
    struct hunt hunt = { .out = &found, .err = err };
    autoclose int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return failed(&hunt);

    int result = is_bare_repository(fd) ? add_top(&hunt, fd) : 0;

    if (result == 0)
        result = hunt_in(&hunt, steal_fd(&fd));
    if (result == CLOSED) {
        errno = EACCES;
        result = failed(&hunt);
    }
    text_free(&hunt.path);
    if (result < 0) {
        autorun_free(&found);
        return -1;
    }
    if (found.len)
        qsort(found.items, found.len, sizeof *found.items, by_path);
    *out = found;
    return 0;
}

const struct autorun_place *autorun_at(const struct autorun *autorun, const char *path)
{
    struct autorun_place wanted = { .path = (char *)(uintptr_t)path };

    return autorun->len ? bsearch(&wanted, autorun->items, autorun->len, sizeof wanted, by_path) : NULL;
}
