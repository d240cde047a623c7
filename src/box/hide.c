#include "box/hide.h"

#include "base/array.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DEPTH_MAX = 256,     /* each level holds one descriptor */
    FOUND_MAX = 1 << 16, /* each is one white-out at start */
};

struct hunt {
    const struct strings *patterns;
    struct strings *found;
    struct text path; /* of the directory we are in; "" at the top */
    int depth;
    struct error *err;
};

int hide_check_pattern(const char *pattern, struct error *err)
{
    if (!*pattern || strspn(pattern, "/") == strlen(pattern))
        return error_set(err, ERROR_INVALID,
                         "files.hide: an empty pattern hides nothing; name a file, or * for all");
    if (*pattern == '!')
        return error_set(err, ERROR_INVALID,
                         "files.hide: '%.200s': exceptions are not known; for a name that begins so write \\!",
                         pattern);
    return 0;
}

/* GLOB_YES: hidden.  GLOB_ABOVE: something below it could be.  The trailing slash of a pattern is
 * no component, so glob_compare() does not see it. */
static enum glob_place judge(const char *pattern, const char *path, const char *name, bool directory)
{
    const char *slash = strchr(pattern, '/');
    bool only_directories = text_ends(pattern, "/"), anywhere = !slash || !slash[1];
    enum glob_place where;

    if (anywhere) {
        autofree char *plain = text_format("%.*s", (int)strcspn(pattern, "/"), pattern);
        where = glob_match(plain, name) ? GLOB_YES : GLOB_ABOVE;
    } else {
        where = glob_compare(pattern, path);
    }
    return where == GLOB_YES && only_directories && !directory ? GLOB_NO : where;
}

static enum glob_place judge_all(const struct hunt *hunt, const char *name, bool directory)
{
    enum glob_place best = GLOB_NO;

    for (size_t i = 0; i < hunt->patterns->len && best != GLOB_YES; i++) {
        enum glob_place where = judge(hunt->patterns->items[i], text_string(&hunt->path), name, directory);

        if (where == GLOB_YES || (where == GLOB_ABOVE && best == GLOB_NO))
            best = where;
    }
    return best;
}

static int add(struct hunt *hunt)
{
    if (hunt->found->len >= FOUND_MAX)
        return error_set(
            hunt->err, ERROR_INVALID,
            "files.hide matches more than %d files; use a narrower pattern, or hide their directory",
            FOUND_MAX);
    strings_add(hunt->found, text_string(&hunt->path));
    return 0;
}

static bool is_directory(int dir, const struct dirent *entry)
{
    struct stat found;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
}

static int hunt_in(struct hunt *hunt, int dir);

/* Goes into the directory hunt->path, called `name` in `dir`. */
static int descend(struct hunt *hunt, int dir, const char *name)
{
    if (strcmp(name, "objects") == 0 && text_ends(text_string(&hunt->path), ".git/objects"))
        return 0;
    if (hunt->depth >= DEPTH_MAX || hunt->path.len >= PATH_MAX)
        return error_set(hunt->err, ERROR_UNSUPPORTED,
                         "directories are nested too deep to look for files to hide in %.200s",
                         text_string(&hunt->path));

    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == EACCES || errno == EPERM))
        return add(hunt);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) /* replaced meanwhile */
        return 0;
    if (fd < 0)
        return error_sys(hunt->err, "look for files to hide in %.200s", text_string(&hunt->path));

    hunt->depth++;
    int result = hunt_in(hunt, fd);
    hunt->depth--;
    return result;
}

static int visit(struct hunt *hunt, int dir, const struct dirent *entry)
{
    bool directory = is_directory(dir, entry);
    enum glob_place where = judge_all(hunt, entry->d_name, directory);

    if (where == GLOB_YES)
        return add(hunt);
    return where == GLOB_ABOVE && directory ? descend(hunt, dir, entry->d_name) : 0;
}

/* NULL at the end with errno 0, or because of the error in errno. */
static const struct dirent *next_entry(DIR *entries)
{
    errno = 0;
    return readdir(entries);
}

/* Owns `dir`. */
static int hunt_in(struct hunt *hunt, int dir)
{
    autoclosedir DIR *entries = fdopendir(dir);
    size_t before = hunt->path.len;
    int result = 0;

    if (!entries) {
        error_sys(hunt->err, "look for files to hide");
        close(dir);
        return -1;
    }
    for (const struct dirent *entry; result == 0 && (entry = next_entry(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        text_addf(&hunt->path, "%s%s", before ? "/" : "", entry->d_name);
        result = visit(hunt, dir, entry);
        hunt->path.len = before;
        hunt->path.data[before] = '\0';
    }
    if (result == 0 && errno)
        result = error_sys(hunt->err, "look for files to hide in %.200s", text_string(&hunt->path));
    return result;
}

int hide_find(int dir, const struct strings *patterns, struct strings *found, struct error *err)
{
    struct hunt hunt = { .patterns = patterns, .found = found, .err = err };

    if (!patterns->len)
        return 0;
    for (size_t i = 0; i < patterns->len; i++)
        if (hide_check_pattern(patterns->items[i], err) < 0)
            return -1;

    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "look for files to hide");
    int result = hunt_in(&hunt, fd);
    text_free(&hunt.path);
    strings_sort(found);
    return result;
}
